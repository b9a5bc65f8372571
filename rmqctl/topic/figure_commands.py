"""``rmqctl topic stats`` and ``usage``: how much topics hold, how fast they grow."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem

from .rows import TopicStatsRow, TopicUsageRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .figures import TopicFigures

_Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="The same as an option; repeatable"),
]
_BY = ("topic", "queue", "hour")


@prints(TopicStatsRow)
def stats(
    ctx: typer.Context,
    topics: _Names = None,
    topic: _MoreNames = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="A row for each topic, queue or hour")
    ] = "topic",
) -> None:
    """Show how many messages topics hold, how large they are and how fast they came.

    Rates count over the time from the first to the last message that is stored; by hour over the
    hour. Topics that hold nothing are left out unless they are named.

    Which queues are fuller:   rmqctl topic stats orders --by queue
    The busiest hours:         rmqctl topic stats orders --by hour --sort -messages --limit 3
    """
    cli = context_of(ctx)
    if by not in _BY:
        raise UsageProblem(f"--by: {by!r} is not one of {', '.join(_BY)}")
    with open_for_reading(cli) as broker:
        cli.rows(TopicStatsRow, _stats(cli, broker, topics, topic, by))


@prints(TopicUsageRow)
def usage(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show how many bytes of the log each topic takes, and the files of its queues.

    Exact, and paid for: every unit of the queues is read (20 bytes a message), no record. Without
    names a last row without a topic is what no queue tells of: the ends of files, deleted topics.

    The largest first:         rmqctl topic usage --sort -bytes
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from .figures import log_bytes, rest_of_log

        whole = log_bytes(broker.view)
        rows = [figures.usage(whole) for figures in _figures(broker, topics, topic)]
        rest = None if topics or topic else rest_of_log(broker.view, rows)
        cli.rows(TopicUsageRow, [*rows, rest] if rest is not None else rows)
        units = sum(row.messages or 0 for row in rows)
        cli.detail(f"read {units} units ({20 * units} bytes) and no records")


def _stats(
    cli: Cli, broker: "EmbeddedBroker", topics: list[str] | None, more: list[str] | None, by: str
) -> Iterator[TopicStatsRow]:
    for figures in _figures(broker, topics, more):
        if by == "queue":
            yield from figures.by_queue()
        elif by == "hour":
            yield from figures.by_hour(cli.zone)
        else:
            yield figures.whole()


def _figures(
    broker: "EmbeddedBroker", topics: list[str] | None, more: list[str] | None
) -> "Iterator[TopicFigures]":
    from .facts import chosen_topics, queues_by_topic
    from .figures import TopicFigures

    used, configs = queues_by_topic(broker), broker.topics()
    named = bool(topics or more)
    for name in chosen_topics(broker, topics, more):
        config = configs[name]
        if named or used.get(name):
            queues = {*used.get(name, ()), *(range(config.read_queue_nums) if named else ())}
            yield TopicFigures(broker.view, name, queues)
