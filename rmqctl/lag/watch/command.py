"""``rmqctl lag watch``: the lag, at intervals."""

import threading
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from rmqctl.admin.lag.watch_rows import WatchedRateRow, WatchedRow
from rmqctl.cli.context import Cli, context_of, prints, prints_instead
from rmqctl.cli.opening import open_for_reading
from rmqctl.errors import UsageProblem
from rmqctl.lag.options import Groups, IncludeRetry, Topics

_LEAST_INTERVAL_MS = 100


def _prints_rates(ctx: typer.Context, rate: bool) -> bool:
    if rate:
        prints_instead(ctx, WatchedRateRow)
    return rate


@prints(WatchedRow)
def watch(
    ctx: typer.Context,
    groups: Groups = None,
    topic: Topics = None,
    interval: Annotated[
        str, typer.Option("--interval", "-i", metavar="DUR", help="Time between readings")
    ] = "2s",
    until_drained: Annotated[
        bool, typer.Option("--until-drained", help="End when no message is unread")
    ] = False,
    rate: Annotated[
        bool,
        typer.Option(
            "--rate",
            help="Add rates, the drain time and the members needed",
            is_eager=True,
            callback=_prints_rates,
        ),
    ] = False,
    include_retry: IncludeRetry = False,
) -> None:
    """Watch the lag of groups: updated in place on a terminal, appended elsewhere.

    Writes nothing to the store. Rates need 15 seconds of readings, or samples from consumers.
    --until-drained waits while a queue has messages and a group has no progress in it. If no
    message is known to be unread, but some values are unknown (progress beyond the end, offsets
    read from a .bak, no group at all), it ends with exit code 3. In a table, or with --sort,
    --limit N is N rows of each reading; otherwise it ends after N rows of all.

    Wait for a group:          rmqctl lag watch readers --until-drained && echo done
    As a log:                  rmqctl lag watch -i 1m -o jsonl >> lag.jsonl
    """
    cli = context_of(ctx)
    from storage.parse.durations import parse_duration

    pause_ms = cli.parsed("--interval", parse_duration, interval)
    if pause_ms < _LEAST_INTERVAL_MS:
        raise UsageProblem(f"--interval: {interval!r} is less than {_LEAST_INTERVAL_MS}ms")
    if until_drained:
        _check_nothing_is_hidden(cli)
    with open_for_reading(cli) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin.lag.watcher import Watcher
        from storage.clock import now_ms

        from .watch import Screen, watch as watch_lag

        choice = Choice(groups or [], topic, include_retry)
        watch_lag(
            Watcher(broker.view, broker, choice, now_ms(), cli.warn),
            Screen(cli, WatchedRateRow if rate else WatchedRow),
            now_ms,
            _pauses(pause_ms / 1000),
            with_rates=rate,
            until_drained=until_drained,
        )


def _check_nothing_is_hidden(cli: Cli) -> None:
    """Refuse options that hide groups or topics from --until-drained."""
    if "limit" in cli.given:
        raise UsageProblem(
            "--until-drained ends when no message is unread, and --limit may end it earlier; "
            "give one of them"
        )
    if "where" in cli.given:
        raise UsageProblem(
            "--until-drained also waits for rows that --where hides; name the groups instead"
        )


def _pauses(seconds: float) -> Iterator[bool]:
    """Yield at a fixed interval, however long the readings take."""
    from storage.deadlines import waitable

    never = threading.Event()
    due = time.monotonic()
    while True:
        due = max(due + seconds, time.monotonic())
        never.wait(waitable(due - time.monotonic()))
        yield True
