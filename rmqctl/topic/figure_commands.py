"""``rmqctl topic stats`` and ``usage``: size and growth of topics."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.topics.rows import TopicStatsRow, TopicUsageRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.system_rows import All, print_rows
from rmqctl.errors import UsageProblem

from .options import Topics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqctl.admin.topics.figures import TopicFigures
    from rmqctl.cli.context import Cli

_BY = ("topic", "queue", "hour")


@prints(TopicStatsRow)
def stats(
    ctx: typer.Context,
    topics: Topics = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="One row per topic, queue or hour")
    ] = "topic",
    everything: All = False,
) -> None:
    """Show the number, size and rate of messages by topic.

    Rates are averages from the first to the last stored message, with --by hour over the hour.
    Empty topics are left out unless they are named.

    By queue:                  rmqctl topic stats orders --by queue
    The busiest hours:         rmqctl topic stats orders --by hour --sort -messages --limit 3
    """
    cli = context_of(ctx)
    if by not in _BY:
        raise UsageProblem(f"--by: {by!r} is not one of {', '.join(_BY)}")
    with open_for_reading(cli) as broker:
        from rmqctl.admin import topics as admin

        names = topics or []
        rows = _stats(admin.stats(broker.view, broker, names), by, cli)
        print_rows(cli, TopicStatsRow, rows, broker.view, everything=everything or bool(names))


@prints(TopicUsageRow)
def usage(ctx: typer.Context, topics: Topics = None) -> None:
    """Show the bytes of the log that each topic uses, and the files of its queues.

    Bytes are exact: every unit of the queues is read (20 bytes per message), but no record. Without
    topic names, a last row without a topic is the rest of the log: ends of files, deleted topics.

    Largest first:             rmqctl topic usage --sort -bytes
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin import topics as admin

        names = topics or []
        whole = admin.log_bytes(broker.view)
        rows = [found.usage(whole) for found in admin.stats(broker.view, broker, names)]
        rest = None if names else admin.rest_of_log(broker.view, rows)
        cli.rows(TopicUsageRow, [*rows, rest] if rest is not None else rows)
        units = sum(row.messages or 0 for row in rows)
        cli.detail(f"read {units} units ({20 * units} bytes) and no records")


def _stats(found: "Iterable[TopicFigures]", by: str, cli: "Cli") -> Iterator[TopicStatsRow]:
    for figures in found:
        if by == "queue":
            yield from figures.by_queue()
        elif by == "hour":
            yield from figures.by_hour(cli.zone, cli.left_out)
        else:
            yield figures.whole()
