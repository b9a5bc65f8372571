"""``rmqctl store du`` and ``clean``: what fills the disk, and deleting what is old."""

from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_progress
from rmqctl.errors import UsageProblem

from .rows import CleanedFileDone, DiskUseRow

_BY = ("topic", "group", "day")


@prints(DiskUseRow)
def du(
    ctx: typer.Context,
    by: Annotated[
        str,
        typer.Option("--by", metavar="WHAT", help="Each topic, group's retries and dead, or day"),
    ] = "topic",
) -> None:
    """Show what fills the log, who has not read it, and what is deleted next.

    Bytes are exact: every unit of the queues is read (20 bytes a message), no record. Below the
    rows: which files the next clean deletes, when, why the others stay, and how long the disk
    lasts at the rate of the last day. 'rmqctl topic usage' has the files of queues, too.

    The largest first:         rmqctl store du --sort -bytes
    What a group left:         rmqctl store du --by group
    """
    cli = context_of(ctx)
    if by not in _BY:
        raise UsageProblem(f"--by: {by!r} is not one of {', '.join(_BY)}")
    with open_for_progress(cli) as broker:
        from rmqctl.offset.source import offsets_in_force

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
def clean(ctx: typer.Context) -> None:
    """Delete log files whose time is over, and the queue and index files that go with them.

    As a broker does in the hours of deleteWhen: the oldest first, when nobody has written to them
    for fileReservedTime (72 h), read or not; never the newest. A full disk changes nothing. It
    does nothing without --execute.

    Look:      rmqctl store clean
    Do it:     rmqctl store clean --execute
    """
    cli = context_of(ctx)
    with open_for_progress(cli) as broker:
        from rmqctl.offset.source import offsets_in_force

        from .clean import carry_out_clean

        carry_out_clean(cli, broker, offsets_in_force(broker.view, broker, cli.warn).table)
