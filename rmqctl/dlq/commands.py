"""``rmqctl dlq``: dead letters, the messages that a group gave up."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.dead_letters.rows import DeadLetter, DeadLetterGroupRow, DeadLetterRow, DlqRow
from rmqctl.admin.retries.rows import AttemptRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter
from rmqctl.cli.marks import most_used
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import PartlyDone, UsageProblem
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.output.view import Format
from storage.counted import counted

if TYPE_CHECKING:
    from rmqctl.admin.dead_letters import DeadLetters
    from rmqctl.admin.message_filter import MessageFilter
    from storage.format.message import MessageExt

_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")]
_Unhandled = Annotated[bool, typer.Option("--unhandled", help="Only unhandled ones (default)")]
_All = Annotated[bool, typer.Option("--all", help="Include handled ones")]


@prints(DlqRow)
def list_dlqs(ctx: typer.Context) -> None:
    """List the groups that have dead letters, with the number of unhandled ones.

    Groups with unhandled ones: rmqctl dlq list --where 'unhandled > 0' --sort -unhandled
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.dead_letters import list_groups

        cli.rows(DlqRow, list_groups(broker.view, broker))


@prints(DeadLetterRow)
@filters_messages
@most_used("--all", "--from", "--to", "--tag", "--key", "--json-path", "--regex")
def browse(
    ctx: typer.Context, group: _Group, unhandled: _Unhandled = False, everything: _All = False
) -> None:
    """List the dead letters of a group, oldest first. Nothing is consumed.

    Of the last hour:          rmqctl dlq browse readers --from -1h
    All, with all fields:      rmqctl dlq browse readers --all -o json
    """
    cli = context_of(ctx)
    with _chosen(cli, group, unhandled, everything) as (dead_letters, wanted):
        cli.rows(
            DeadLetterRow,
            dead_letters.rows(wanted, unhandled=not everything, now_ms=cli.now_ms),
        )
        _warn_of_unreadable(cli, dead_letters.unreadable, dead_letters.bodies)
        if not everything and (handled := dead_letters.marked()):
            cli.say(
                f"{handled} of {dead_letters.depth()} {'is' if handled == 1 else 'are'} handled "
                "and not shown; --all shows all"
            )


@prints(DeadLetter, AttemptRow)
def show(
    ctx: typer.Context,
    group: _Group,
    message_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="An id or a queue offset, as shown by 'dlq browse'"),
    ],
) -> None:
    """Show one dead letter: body, properties, origin, failure reason and history.

    The newest with an id:     rmqctl dlq show readers 7F000001000ABC...
    By queue offset:           rmqctl dlq show readers 17 -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.dead_letters import DeadLetters, describe
        from rmqctl.admin.dead_letters.description import body_error

        dead_letters = DeadLetters(broker.view, broker, group)
        message = dead_letters.find(message_id)
        found = describe(dead_letters, message, cli.now_ms)
        if cli.view.columns or cli.view.format not in (Format.TABLE, Format.WIDE):
            cli.one(found)
        else:
            from rmqctl.admin.retries import life

            cli.one(found._replace(life=None))
            cli.out.write("\n")
            cli.rows(AttemptRow, life(broker.view, group, message))
        error = body_error(message)
        if error is not None:
            raise PartlyDone(f"the body is not shown: {error}")


@prints(DeadLetterGroupRow)
@filters_messages
@most_used("--by", "--all", "--from", "--to", "--tag", "--key", "--json-path")
def groups(
    ctx: typer.Context,
    group: _Group,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="reason, tag, key, host, hour, age or shape")
    ] = "reason",
    unhandled: _Unhandled = False,
    everything: _All = False,
) -> None:
    """Count dead letters by a common property, the most frequent first.

    --by shape: the reason without numbers, ids and quoted texts; without a reason, the form of
    the body.

    The main failures:         rmqctl dlq groups readers
    Failures over time:        rmqctl dlq groups readers --by hour --sort value
    """
    cli = context_of(ctx)
    with _chosen(cli, group, unhandled, everything) as (dead_letters, wanted):
        from rmqctl.admin.dead_letters import grouped

        found = dead_letters.messages(wanted, unhandled=not everything)
        cli.rows(DeadLetterGroupRow, grouped(found, by, cli.zone, cli.now_ms))
        _warn_of_unreadable(cli, dead_letters.unreadable, dead_letters.bodies)


@prints(MessageRow)
@filters_messages
@most_used("--all", "--from", "--to", "--tag", "--key", "--json-path", "--regex")
def export(
    ctx: typer.Context, group: _Group, unhandled: _Unhandled = False, everything: _All = False
) -> None:
    """Export dead letters as whole messages, with every property.

    To a file:                 rmqctl dlq export readers --all -o jsonl > dead.jsonl
    To another topic:          rmqctl dlq export readers -o jsonl | rmqctl produce t --input jsonl
    """
    cli = context_of(ctx)
    with _chosen(cli, group, unhandled, everything) as (dead_letters, wanted):
        found = dead_letters.messages(wanted, unhandled=not everything)
        bad: list[str] = []
        cli.rows(MessageRow, _rows(found, bad))
        left = dead_letters.unreadable + len(bad)
        _warn_of_unreadable(cli, left, [*dead_letters.bodies, *bad])
        if left:
            raise PartlyDone(f"left out of the export: {counted(left, 'dead letter')}")


@contextmanager
def _chosen(
    cli: Cli,
    group: str,
    unhandled: bool,
    everything: bool,
) -> "Iterator[tuple[DeadLetters, MessageFilter]]":
    """The dead letters of a group and the filter of the call, with the store open."""
    if unhandled and everything:
        raise UsageProblem("--unhandled and --all exclude each other")
    wanted = message_filter(cli)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.dead_letters import DeadLetters

        yield DeadLetters(broker.view, broker, group), wanted


def _rows(messages: "Iterable[MessageExt]", bad: list[str]) -> "Iterator[MessageRow]":
    """The rows; ``bad`` collects the messages whose bodies cannot be unpacked, and the reason."""
    from storage.format.errors import BodyError

    for message in messages:
        try:
            yield message_row(message)
        except BodyError as error:
            bad.append(str(error))


def _warn_of_unreadable(cli: Cli, count: int, bodies: Sequence[str]) -> None:
    if count:
        from rmqctl.admin.left_out import tell_unreadable

        tell_unreadable(cli.left_out, count, bodies)
