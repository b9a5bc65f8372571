"""``rmqctl retry``: messages that a group will consume again."""

from typing import Annotated

import typer

from rmqctl.admin.retries.rows import AgendaRow, AttemptRow, DelayedRow, RetryRow, SentNowRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter, message_selection
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import open_for_progress, open_for_reading, open_for_writing
from rmqctl.errors import UsageProblem

_Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group")]


@prints(RetryRow)
@filters_messages
@most_used("--all", "--from", "--to", "--tag", "--key", "--json-path", "--regex")
def browse(
    ctx: typer.Context,
    group: _Group,
    everything: Annotated[
        bool, typer.Option("--all", help="Include messages that were consumed since")
    ] = False,
) -> None:
    """List the messages that a group will consume again, in the order in which they are due.

    Messages that wait for their delay are in the delay topic, the others in the group's retry
    topic.

    The next ten:              rmqctl retry browse readers --limit 10
    Close to dead letters:     rmqctl retry browse readers --attempts 14.. -o wide
    """
    cli = context_of(ctx)
    wanted = message_filter(cli)
    with open_for_progress(cli) as broker:
        from rmqctl.admin import retries as admin

        retries = admin.Retries(broker.view, broker, group, cli.now_ms)
        cli.rows(RetryRow, retries.rows(wanted, cli.left_out, consumed=everything))
        if retries.unreadable:
            from rmqctl.admin.left_out import tell_unreadable

            tell_unreadable(cli.left_out, retries.unreadable, retries.bodies, "retries")


@prints(AttemptRow)
def show(
    ctx: typer.Context,
    group: _Group,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="A unique or offset id")],
) -> None:
    """Show every attempt of a message: when and why it failed, and when it was retried.

    With all fields:           rmqctl retry show readers 7F000001000ABC... -o wide
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin import retries

        message = retries.find(broker.view, broker, group, message_id)
        cli.rows(AttemptRow, retries.life(broker.view, group, message))


@prints(AgendaRow, DelayedRow)
@filters_messages
@most_used("--each", "--from", "--to", "--tag", "--key", "--json-path", "--regex")
def agenda(
    ctx: typer.Context,
    each: Annotated[
        bool, typer.Option("--each", help="Print a row per message; allows filters")
    ] = False,
) -> None:
    """Show when delayed messages and retries are due, by delay level and target.

    Overdue messages:          rmqctl retry agenda --where 'overdue > 0'
    Of one group:              rmqctl retry agenda --where 'group = readers'
    The next messages:         rmqctl retry agenda --each --limit 10
    """
    cli = context_of(ctx)
    wanted = message_filter(cli)
    if not each and wanted.is_given:
        raise UsageProblem("filters select messages: add --each")
    with open_for_reading(cli) as broker:
        from rmqctl.admin import retries
        from rmqctl.admin.retries.due_list import STRANDED, stranded_sentence

        if each:
            cli.rows(DelayedRow, retries.delayed_messages(broker.view, wanted, cli.left_out))
            return
        rows = list(retries.agenda(broker.view, cli.now_ms))
        cli.rows(AgendaRow, rows)
        lost: dict[int, int | None] = {}
        for row in rows:
            if row.state == STRANDED:
                lost[row.level] = (lost.get(row.level) or 0) + (row.messages or 0)
            elif row.delay_ms is None and row.messages is None:
                lost[row.level] = None
        if lost:
            cli.warn(stranded_sentence(lost))
        if any(row.state == "OVERDUE" for row in rows):
            cli.say("no rmqctl process delivers messages; 'rmqctl broker start' does")


_Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="Unique or offset ids of retries")
]
_Everything = Annotated[bool, typer.Option("--all", help="All waiting retries")]


@prints(SentNowRow)
@filters_messages
@changes(Changes.ASKS)
@most_used("--all", "--from", "--tag", "--key", "--json-path")
def now(
    ctx: typer.Context, group: _Group, ids: _Ids = None, everything: _Everything = False
) -> None:
    """Deliver waiting retries to the group now, before they are due.

    The waiting copy is skipped later by rmqctl; a Java broker would deliver it, too.

    One message:               rmqctl retry now readers 7F000001000ABC...
    All, after a fix:          rmqctl retry now readers --all
    """
    _end_waits(ctx, group, ids, dead=False, everything=everything)


@prints(SentNowRow)
@filters_messages
@changes(Changes.ASKS)
@most_used("--all", "--from", "--tag", "--key", "--json-path")
def dead(
    ctx: typer.Context, group: _Group, ids: _Ids = None, everything: _Everything = False
) -> None:
    """Turn waiting retries into dead letters now, without another attempt.

    They keep their last failure reason. The waiting copy is skipped later by rmqctl; a Java broker
    would deliver it, too.

    One message:               rmqctl retry dead readers 7F000001000ABC...
    Those of one producer:     rmqctl retry dead readers --born-host 10.0.0.7
    """
    _end_waits(ctx, group, ids, dead=True, everything=everything)


def _end_waits(
    ctx: typer.Context, group: str, ids: list[str] | None, *, dead: bool, everything: bool
) -> None:
    from rmqctl.admin import retries
    from rmqctl.cli.change_steps import begin_java_check, run_change

    cli = context_of(ctx)
    wanted = message_filter(cli, changes=True)
    chosen = message_selection(ids, wanted, "retries", everything=everything)
    java_check = begin_java_check(cli, cli.store.path)
    with open_for_reading(cli) as broker:
        change = (retries.make_dead if dead else retries.send_now)(
            broker.view,
            broker,
            group,
            chosen,
            now_ms=cli.now_ms,
            warn=cli.warn,
            left_out=cli.left_out,
            java_check=java_check,
            open_writer=lambda: open_for_writing(cli),
        )
    run_change(cli, change)
