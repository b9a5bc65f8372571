"""``rmqctl store du`` and ``clean``: disk usage, and deleting expired files."""

from typing import Annotated

import typer

from rmqctl.admin.store.rows import CleanedFileDone
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_progress, open_for_writing
from rmqctl.errors import UsageProblem

from .rows import DiskUseRow

_BY = ("topic", "group", "day")


@prints(DiskUseRow)
def du(
    ctx: typer.Context,
    by: Annotated[
        str,
        typer.Option("--by", metavar="WHAT", help="topic, group (retries and dead letters) or day"),
    ] = "topic",
) -> None:
    """Show the disk usage of the log, the groups with unread messages, and the next deletions.

    Bytes are exact: every unit of the queues is read (20 bytes per message), but no record. Below
    the rows: the files that the next clean deletes and when, why the others stay, and when the disk
    is full at the rate of the last day. 'rmqctl topic usage' also counts the files of queues.

    Largest first:             rmqctl store du --sort -bytes
    Retries and dead letters:  rmqctl store du --by group
    """
    cli = context_of(ctx)
    if by not in _BY:
        raise UsageProblem(f"--by: {by!r} is not one of {', '.join(_BY)}")
    with open_for_progress(cli) as broker:
        from rmqctl.admin.offsets.committed import offsets_in_force

        from .usage import DiskUse

        use = DiskUse(broker, offsets_in_force(broker.view, broker, cli.warn).table, cli.now_ms)
        if by == "group":
            rows = use.by_group()
        elif by == "day":
            rows = use.by_day(cli.zone)
        else:
            rows = use.by_topic()
        cli.rows(DiskUseRow, rows)
        for sentence in use.sentences():
            cli.say(sentence)


@prints(CleanedFileDone)
@changes(Changes.ASKS)
def clean(ctx: typer.Context) -> None:
    """Delete expired log files, and the queue and index files that belong to them.

    Deletes as a broker does in the hours of deleteWhen: the oldest first, if they were not written
    for fileReservedTime (72 h), whether read or not; never the newest file. Disk usage has no
    influence. It shows the plan and asks first.

    Preview:   rmqctl store clean -n
    Delete:    rmqctl store clean
    """
    cli = context_of(ctx)
    with open_for_progress(cli) as broker:
        from rmqctl.admin import store
        from rmqctl.cli.change_steps import run_change

        change = store.clean(
            broker.view,
            broker,
            now_ms=cli.now_ms,
            warn=cli.warn,
            open_writer=lambda: open_for_writing(cli),
        )
        run_change(cli, change)
