"""``rmqctl lag watch``: the same, again and again."""

import threading
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints, prints_instead
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, MoreGroups, Topics, named

from .rows import WatchedRateRow, WatchedRow

_LEAST_INTERVAL_MS = 100


def _prints_rates(ctx: typer.Context, rate: bool) -> bool:
    if rate:
        prints_instead(ctx.command, WatchedRateRow)
    return rate


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
    --until-drained goes on while messages lie in a queue in which a group has no progress. Where
    nothing that is known is unread, and not all is known (progress beyond the end, offsets read
    from a .bak, no group at all), it ends with exit code 3.

    Until a group is through:  rmqctl lag watch readers --until-drained && echo done
    As a log:                  rmqctl lag watch -i 1m -o jsonl >> lag.jsonl
    """
    cli = context_of(ctx)
    from rmqctl.parse.durations import parse_duration

    pause_ms = cli.parsed("--interval", parse_duration, interval)
    if pause_ms < _LEAST_INTERVAL_MS:
        raise UsageProblem(f"--interval: {interval!r} is less than {_LEAST_INTERVAL_MS}ms")
    if until_drained:
        _check_nothing_is_hidden(cli)
    with open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from storage.clock import now_ms

        from .watch import Screen, Watcher, watch as watch_lag

        choice = Choice(named(groups, group), topic, include_retry)
        watch_lag(
            Watcher(broker, choice, now_ms(), cli.warn),
            Screen(cli, WatchedRateRow if rate else WatchedRow),
            now_ms,
            _pauses(pause_ms / 1000),
            with_rates=rate,
            until_drained=until_drained,
        )


def _check_nothing_is_hidden(cli: Cli) -> None:
    """Whether all is drained is about all groups and topics that are watched, and says so by 0."""
    if "limit" in cli.given:
        raise UsageProblem(
            "--until-drained ends when nothing is unread, and --limit would end it before; "
            "give one of them"
        )
    if "where" in cli.given:
        raise UsageProblem(
            "--until-drained waits for what --where hides, too; name the groups instead"
        )


def _pauses(seconds: float) -> Iterator[bool]:
    """Come back every so many seconds, however long the looks between take."""
    never = threading.Event()
    due = time.monotonic()
    while True:
        due = max(due + seconds, time.monotonic())
        never.wait(due - time.monotonic())
        yield True
