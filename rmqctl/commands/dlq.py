"""``rmqctl dlq``: dead letters, messages that a group gave up."""

from typing import Annotated

import typer

from rmqctl.context import context_of, prints
from rmqctl.errors import UsageProblem
from rmqctl.filtering.options import filters_messages, message_filter
from rmqctl.opening import open_for_reading
from rmqctl.rows.deadletters import DeadLetterRow, DlqRow

_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")]
_Unhandled = Annotated[bool, typer.Option("--unhandled", help="Only unhandled ones (the default)")]
_All = Annotated[bool, typer.Option("--all", help="Those that were handled, too")]


@prints(DlqRow)
def list_dlqs(ctx: typer.Context) -> None:
    """List the groups that have dead letters, and how many are unhandled.

    Who needs somebody now:    rmqctl dlq list --where 'unhandled > 0' --sort -unhandled
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.deadletters.letters import dlq_rows

        cli.rows(DlqRow, dlq_rows(broker))


@prints(DeadLetterRow)
@filters_messages
def browse(
    ctx: typer.Context, group: _Group, unhandled: _Unhandled = False, everything: _All = False
) -> None:
    """Show the dead letters of a group, oldest first. Nothing is consumed.

    Those of the last hour:    rmqctl dlq browse readers --from -1h
    With all their fields:     rmqctl dlq browse readers --all -o json
    """
    cli = context_of(ctx)
    if unhandled and everything:
        raise UsageProblem("--unhandled and --all exclude each other")
    wanted = message_filter(cli)
    with open_for_reading(cli) as broker:
        from rmqctl.deadletters.letters import DeadLetters, dead_letter_row

        letters = DeadLetters(broker, group)
        found = letters.messages(wanted, unhandled=not everything)
        cli.rows(
            DeadLetterRow, (dead_letter_row(letters, message, cli.now_ms) for message in found)
        )
        if letters.unreadable:
            cli.warn(f"{letters.unreadable} dead letters can not be read; see 'rmqctl store fsck'")
        if not everything and (handled := letters.marked()):
            cli.say(f"{handled} of {letters.depth()} are handled and not shown; --all shows them")
