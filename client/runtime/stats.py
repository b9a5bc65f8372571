"""Counters with rates over the last minute, hour and day (org.apache.rocketmq.common.stats).

A counter is sampled each 10 s, 10 min and hour; the last 7, 7 and 25 samples are kept, so that the
oldest is a minute, an hour and a day old. A sample of zero is assumed one interval before the first
one. A number is up to one interval old.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from client.timing import Cancellable, Clock, Scheduler


class StatsSnapshot(NamedTuple):
    """What happened in a span: ``sum`` of the values, how many ``times``; all 0 before a sample.

    ``tps`` is the sum per second, ``average`` the sum per time (0.0 if there was none).
    """

    sum: int = 0
    tps: float = 0.0
    times: int = 0
    average: float = 0.0


class Span(NamedTuple):
    """A time span: a counter is sampled each ``interval_ms``, and the last samples are kept."""

    interval_ms: int
    kept: int


MINUTE: Final = Span(10_000, 7)
"""samplingInSeconds."""
HOUR: Final = Span(600_000, 7)
"""samplingInMinutes."""
DAY: Final = Span(3_600_000, 25)
"""samplingInHour."""
SPANS: Final = (MINUTE, HOUR, DAY)


class _Sample(NamedTuple):
    timestamp: int
    times: int
    value: int


class StatsItem:
    """One counter. Safe for threads."""

    __slots__ = ("_lock", "_samples", "_times", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards everything
        self._value = self._times = 0
        self._samples: dict[Span, deque[_Sample]] = {
            span: deque(maxlen=span.kept) for span in SPANS
        }

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

    def sample(self, span: Span, now_ms: int) -> None:
        """Take a sample; due each ``span.interval_ms``."""
        with self._lock:
            samples = self._samples[span]
            if not samples:
                samples.append(_Sample(now_ms - span.interval_ms, 0, 0))
            samples.append(_Sample(now_ms, self._times, self._value))

    def last(self, span: Span) -> StatsSnapshot:
        """What happened in the last minute, hour or day."""
        with self._lock:
            samples = self._samples[span]
            if not samples:
                return StatsSnapshot()
            first, last = samples[0], samples[-1]
        total, times = last.value - first.value, last.times - first.times
        span_ms = last.timestamp - first.timestamp
        return StatsSnapshot(
            total,
            total * 1000 / span_ms if span_ms > 0 else 0.0,
            times,
            total / times if times > 0 else 0.0,
        )


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

    def last(self, span: Span, key: str) -> StatsSnapshot:
        """What happened in the last minute, hour or day; nothing under an unknown key."""
        item = self._items.get(key)
        return StatsSnapshot() if item is None else item.last(span)

    def items(self) -> list[StatsItem]:
        """Give all counters."""
        return list(self._items.values())


def start_sampling(
    sets: Iterable[StatsItemSet], clock: Clock, scheduler: Scheduler
) -> list[Cancellable]:
    """Sample the counters of sets at their intervals, at once for the first time."""
    observed = list(sets)

    def sample(span: Span) -> None:
        now_ms = clock.now_ms()
        for item_set in observed:
            for item in item_set.items():
                item.sample(span, now_ms)

    return [scheduler.call_every(0, span.interval_ms, partial(sample, span)) for span in SPANS]


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

    def consume_status(self, group: str, topic: str) -> ConsumeStatus:
        """Give the last minute's rates; the time to consume is the hour's if the minute has none.

        Messages of retries count under their retry topic (ConsumerStatsManager.consumeStatus).
        """
        key = stats_key(group, topic)
        consume_rt = self.consume_rt.last(MINUTE, key)
        if consume_rt.sum == 0:
            consume_rt = self.consume_rt.last(HOUR, key)
        return ConsumeStatus(
            self.pull_rt.last(MINUTE, key).average,
            self.pull_tps.last(MINUTE, key).tps,
            consume_rt.average,
            self.consume_ok_tps.last(MINUTE, key).tps,
            self.consume_failed_tps.last(MINUTE, key).tps,
            self.consume_failed_tps.last(HOUR, key).sum,
        )
