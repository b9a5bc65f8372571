"""``rmqctl topic stats`` and ``usage``: size and growth of topics."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.topics.rows import TopicStatsRow, TopicUsageRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .figures import TopicFigures

_Names = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
_MoreNames = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="A topic, as an option; repeatable"),
]
_BY = ("topic", "queue", "hour")


@prints(TopicStatsRow)
def stats(
    ctx: typer.Context,
    topics: _Names = None,
    topic: _MoreNames = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="One row per topic, queue or hour")
    ] = "topic",
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
        cli.rows(TopicStatsRow, _stats(cli, broker, topics, topic, by))


@prints(TopicUsageRow)
def usage(ctx: typer.Context, topics: _Names = None, topic: _MoreNames = None) -> None:
    """Show the bytes of the log that each topic uses, and the files of its queues.

    Bytes are exact: every unit of the queues is read (20 bytes per message), but no record. Without
    topic names, a last row without a topic is the rest of the log: ends of files, deleted topics.

    Largest first:             rmqctl topic usage --sort -bytes
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
