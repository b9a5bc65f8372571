"""``rmqctl lag``: who is late, by how much, and since when."""

import threading
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import typer

from rmqctl.bulk import no_search_for_cycles
from rmqctl.context import context_of, prints
from rmqctl.errors import UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, MoreGroups, Topics, named
from rmqctl.opening import open_for_reading
from rmqctl.past import AsOf, moment_of, open_at
from rmqctl.rows.lag import LagQueueRow, LagRow, LagTopicRow
from rmqctl.rows.watched import WatchedRateRow, WatchedRow

_LEAST_INTERVAL_MS = 100


class By(StrEnum):
    """What a row of ``lag show`` is about."""

    QUEUE = "queue"
    TOPIC = "topic"
    GROUP = "group"


_ROWS = {By.GROUP: LagRow, By.TOPIC: LagTopicRow, By.QUEUE: LagQueueRow}


def _prints_by(ctx: typer.Context, by: By) -> By:
    """Have ``--by queue -o help`` explain the rows that are asked for."""
    ctx.command.row_type = _ROWS[by]  # type: ignore[attr-defined]
    return by


def _prints_rates(ctx: typer.Context, rate: bool) -> bool:
    if rate:
        ctx.command.row_type = WatchedRateRow  # type: ignore[attr-defined]
    return rate


@prints(LagRow)
def show(
    ctx: typer.Context,
    groups: Groups = None,
    group: MoreGroups = None,
    topic: Topics = None,
    by: Annotated[
        By, typer.Option("--by", help="What a row is about", is_eager=True, callback=_prints_by)
    ] = By.GROUP,
    include_retry: IncludeRetry = False,
    as_of: AsOf = None,
) -> None:
    """Show how far groups are behind: messages, bytes, age, rates, and one word for how they do.

    Reads files only: the store may be in use, or belong to a broker that is dead. Retries and dead
    letters have columns of their own. RocketMQ's own groups are shown where they are named.

    Who is late:               rmqctl lag show --where 'lag > 0' --sort -oldest_unread_age_ms
    Which queue it is:         rmqctl lag show readers --by queue
    An hour ago:               rmqctl lag show --as-of -1h
    """
    cli = context_of(ctx)
    moment = moment_of(cli, as_of)
    with no_search_for_cycles(), open_at(cli, as_of) as broker:
        from analytics.choosing import Choice
        from rmqctl.lag import tables
        from rmqctl.lag.looking import look

        choice = Choice(named(groups, group), topic, include_retry)
        seen = look(broker, moment, choice, now=as_of is None)
        match by:
            case By.GROUP:
                cli.rows(LagRow, tables.group_rows(seen))
            case By.TOPIC:
                cli.rows(LagTopicRow, tables.topic_rows(seen))
            case By.QUEUE:
                cli.rows(LagQueueRow, tables.queue_rows(seen))


@prints(WatchedRow)
def watch(
    ctx: typer.Context,
    groups: Groups = None,
    group: MoreGroups = None,
    topic: Topics = None,
    interval: Annotated[
        str, typer.Option("--interval", "-i", metavar="DUR", help="How often to look")
    ] = "2s",
    until_drained: Annotated[
        bool, typer.Option("--until-drained", help="End when nothing is unread")
    ] = False,
    rate: Annotated[
        bool,
        typer.Option(
            "--rate",
            help="Add rates, when it will be drained, and members needed",
            is_eager=True,
            callback=_prints_rates,
        ),
    ] = False,
    include_retry: IncludeRetry = False,
) -> None:
    """Watch how far groups are behind: in place on a terminal, look below look elsewhere.

    Nothing is written. Rates need looks of 15 seconds, or samples that consumers left.

    Until a group is through:  rmqctl lag watch readers --until-drained && echo done
    As a log:                  rmqctl lag watch -i 1m -o jsonl >> lag.jsonl
    """
    cli = context_of(ctx)
    from rmqctl.text.durations import parse_duration

    pause_ms = cli.parsed("--interval", parse_duration, interval)
    if pause_ms < _LEAST_INTERVAL_MS:
        raise UsageProblem(f"--interval: {interval!r} is less than {_LEAST_INTERVAL_MS}ms")
    with open_for_reading(cli) as broker:
        from analytics.choosing import Choice
        from rmqctl.lag.watching import Screen, Watcher, watch as watch_lag

        choice = Choice(named(groups, group), topic, include_retry)
        watch_lag(
            Watcher(broker, choice, _now()),
            Screen(cli, WatchedRateRow if rate else WatchedRow),
            _now,
            _pauses(pause_ms / 1000),
            with_rates=rate,
            until_drained=until_drained,
        )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _pauses(seconds: float) -> Iterator[bool]:
    """Come back every so many seconds, however long the looks between take."""
    never = threading.Event()
    due = time.monotonic()
    while True:
        due = max(due + seconds, time.monotonic())
        never.wait(due - time.monotonic())
        yield True
