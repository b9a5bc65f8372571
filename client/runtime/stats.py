"""Counters with rates over the last minute, hour and day (org.apache.rocketmq.common.stats).

A counter is sampled each 10 s, 10 min and hour; the last 7, 7 and 25 samples are kept, so that the
oldest is a minute, an hour and a day old. A sample of zero is assumed one interval before the first
one. A number is up to one interval old.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from client.timing import Cancellable, Clock, Scheduler

SAMPLE_MINUTE_MS: Final = 10_000
SAMPLE_HOUR_MS: Final = 600_000
SAMPLE_DAY_MS: Final = 3_600_000


class StatsSnapshot(NamedTuple):
    """What happened in a span: ``sum`` of the values, how many ``times``; all 0 before a sample.

    ``tps`` is the sum per second, ``average`` the sum per time (0.0 if there was none).
    """

    sum: int = 0
    tps: float = 0.0
    times: int = 0
    average: float = 0.0


class _Look(NamedTuple):
    timestamp: int
    times: int
    value: int


class _Span:
    """Samples of a counter, ``interval_ms`` apart, at most ``kept`` of them."""

    __slots__ = ("_interval_ms", "_looks")

    def __init__(self, interval_ms: int, kept: int) -> None:
        self._interval_ms = interval_ms
        self._looks: deque[_Look] = deque(maxlen=kept)

    def look(self, look: _Look) -> None:
        if not self._looks:
            self._looks.append(_Look(look.timestamp - self._interval_ms, 0, 0))
        self._looks.append(look)

    def snapshot(self) -> StatsSnapshot:
        if not self._looks:
            return StatsSnapshot()
        first, last = self._looks[0], self._looks[-1]
        total, times = last.value - first.value, last.times - first.times
        span_ms = last.timestamp - first.timestamp
        return StatsSnapshot(
            total,
            total * 1000 / span_ms if span_ms > 0 else 0.0,
            times,
            total / times if times > 0 else 0.0,
        )


class StatsItem:
    """One counter. Safe for threads."""

    __slots__ = ("_day", "_hour", "_lock", "_minute", "_times", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards everything
        self._value = self._times = 0
        self._minute = _Span(SAMPLE_MINUTE_MS, 7)
        self._hour = _Span(SAMPLE_HOUR_MS, 7)
        self._day = _Span(SAMPLE_DAY_MS, 25)

    @property
    def value(self) -> int:
        """The sum of everything that was added."""
        return self._value

    @property
    def times(self) -> int:
        """How often something was added."""
        return self._times

    def add(self, value: int, times: int = 1) -> None:
        """Add to the counter."""
        with self._lock:
            self._value += value
            self._times += times

    def sample_minute(self, now_ms: int) -> None:
        """Take a sample for the minute; due each 10 s (samplingInSeconds)."""
        self._sample(self._minute, now_ms)

    def sample_hour(self, now_ms: int) -> None:
        """Take a sample for the hour; due each 10 min (samplingInMinutes)."""
        self._sample(self._hour, now_ms)

    def sample_day(self, now_ms: int) -> None:
        """Take a sample for the day; due each hour (samplingInHour)."""
        self._sample(self._day, now_ms)

    def minute(self) -> StatsSnapshot:
        """What happened in the last minute."""
        return self._snapshot(self._minute)

    def hour(self) -> StatsSnapshot:
        """What happened in the last hour."""
        return self._snapshot(self._hour)

    def day(self) -> StatsSnapshot:
        """What happened in the last day."""
        return self._snapshot(self._day)

    def _sample(self, span: _Span, now_ms: int) -> None:
        with self._lock:
            span.look(_Look(now_ms, self._times, self._value))

    def _snapshot(self, span: _Span) -> StatsSnapshot:
        with self._lock:
            return span.snapshot()


class StatsItemSet:
    """Counters of one kind, by key. Safe for threads."""

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self._items: dict[str, StatsItem] = {}

    def add_value(self, key: str, value: int, times: int = 1) -> None:
        """Count under a key, which is made where it is new."""
        item = self._items.get(key)
        if item is None:
            item = self._items.setdefault(key, StatsItem())
        item.add(value, times)

    def delete(self, key: str) -> None:
        """Remove a key."""
        self._items.pop(key, None)

    def keys(self) -> list[str]:
        """Give the keys, sorted."""
        return sorted(self._items)

    def item(self, key: str) -> StatsItem | None:
        """Give a key's counter; None if nothing was counted."""
        return self._items.get(key)

    def minute(self, key: str) -> StatsSnapshot:
        """What happened in the last minute."""
        return (self._items.get(key) or StatsItem()).minute()

    def hour(self, key: str) -> StatsSnapshot:
        """What happened in the last hour."""
        return (self._items.get(key) or StatsItem()).hour()

    def day(self, key: str) -> StatsSnapshot:
        """What happened in the last day."""
        return (self._items.get(key) or StatsItem()).day()

    def items(self) -> list[StatsItem]:
        """Give all counters."""
        return list(self._items.values())


def start_sampling(
    sets: Iterable[StatsItemSet], clock: Clock, scheduler: Scheduler
) -> list[Cancellable]:
    """Sample the counters of sets at their intervals, at once for the first time."""
    observed = list(sets)

    def sampling(interval_ms: int, look: Callable[[StatsItem, int], None]) -> Cancellable:
        def sample() -> None:
            now_ms = clock.now_ms()
            for item_set in observed:
                for item in item_set.items():
                    look(item, now_ms)

        return scheduler.call_every(0, interval_ms, sample)

    return [
        sampling(SAMPLE_MINUTE_MS, StatsItem.sample_minute),
        sampling(SAMPLE_HOUR_MS, StatsItem.sample_hour),
        sampling(SAMPLE_DAY_MS, StatsItem.sample_day),
    ]


def stats_key(group: str, topic: str) -> str:
    """Name the counters of a group with a topic."""
    return f"{topic}@{group}"


class ConsumeStatus(NamedTuple):
    """A group's consumption of a topic: ms on average, messages per second (ConsumeStatus)."""

    pull_rt: float
    pull_tps: float
    consume_rt: float
    consume_ok_tps: float
    consume_failed_tps: float
    consume_failed_msgs: int
    """Failures of the last hour."""


class ConsumerStatsManager:
    """What the consumers of a client pull and consume, by ``topic@group``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.consume_ok_tps: Final = StatsItemSet("CONSUME_OK_TPS")
        self.consume_failed_tps: Final = StatsItemSet("CONSUME_FAILED_TPS")
        self.consume_rt: Final = StatsItemSet("CONSUME_RT")
        self.pull_tps: Final = StatsItemSet("PULL_TPS")
        self.pull_rt: Final = StatsItemSet("PULL_RT")

    @property
    def sets(self) -> tuple[StatsItemSet, ...]:
        """All kinds of counters."""
        return (
            self.consume_ok_tps,
            self.consume_failed_tps,
            self.consume_rt,
            self.pull_tps,
            self.pull_rt,
        )

    def start(self, scheduler: Scheduler) -> list[Cancellable]:
        """Begin to sample the counters."""
        return start_sampling(self.sets, self._clock, scheduler)

    def inc_pull_rt(self, group: str, topic: str, rt_ms: int) -> None:
        """Count a pull that brought messages and took ``rt_ms``."""
        self.pull_rt.add_value(stats_key(group, topic), rt_ms)

    def inc_pull_tps(self, group: str, topic: str, messages: int) -> None:
        """Count messages that a pull brought."""
        self.pull_tps.add_value(stats_key(group, topic), messages)

    def inc_consume_rt(self, group: str, topic: str, rt_ms: int) -> None:
        """Count a listener's call that took ``rt_ms``."""
        self.consume_rt.add_value(stats_key(group, topic), rt_ms)

    def inc_consume_ok_tps(self, group: str, topic: str, messages: int) -> None:
        """Count messages that were consumed."""
        self.consume_ok_tps.add_value(stats_key(group, topic), messages)

    def inc_consume_failed_tps(self, group: str, topic: str, messages: int) -> None:
        """Count messages that failed."""
        self.consume_failed_tps.add_value(stats_key(group, topic), messages)

    def consume_status(self, group: str, topic: str) -> ConsumeStatus:
        """Give the last minute's rates; the time to consume is the hour's if the minute has none.

        Messages of retries count under their retry topic (ConsumerStatsManager.consumeStatus).
        """
        key = stats_key(group, topic)
        consume_rt = self.consume_rt.minute(key)
        if consume_rt.sum == 0:
            consume_rt = self.consume_rt.hour(key)
        return ConsumeStatus(
            self.pull_rt.minute(key).average,
            self.pull_tps.minute(key).tps,
            consume_rt.average,
            self.consume_ok_tps.minute(key).tps,
            self.consume_failed_tps.minute(key).tps,
            self.consume_failed_tps.hour(key).sum,
        )
