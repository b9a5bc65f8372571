"""Avoiding slow and failing brokers for a while (MQFaultStrategy, LatencyFaultToleranceImpl).

latency of a send, ms   < 100    100 ..   550 ..     1000 ..    2000 ..    3000 ..    15000 ..
avoided for, ms          0         0    30,000     60,000    120,000    180,000     600,000

A send that failed counts as 30,000 ms, so its broker is avoided for 600,000 ms.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.message import MessageQueue

from .config import LATENCY_MAX, NOT_AVAILABLE_DURATION

if TYPE_CHECKING:
    from client.timing import Clock

ISOLATION_LATENCY_MS: Final = 30_000
_WORST: Final = ""
_POSITIVE_MASK: Final = 0x7FFFFFFF


class _Turns(threading.local):
    def __init__(self) -> None:
        self.by_topic: dict[str, Iterator[int]] = {}


class ThreadLocalIndex:
    """A counter per thread and topic; each begins anywhere, else all single sends would use queue
    0.

    ``start`` gives the number to begin with, 0 .. 2^31 - 1.
    """

    def __init__(self, start: int | None = None) -> None:
        self._start = start
        self._local = _Turns()

    def turn(self, topic: str) -> Iterator[int]:
        """Give this thread's counter, which counts up with each ``next``: 0 .. 2^31 - 1,
        then from 0 again."""
        turns = self._local.by_topic
        turn = turns.get(topic)
        if turn is None:
            start = random.getrandbits(31) if self._start is None else self._start
            turn = turns[topic] = map(_POSITIVE_MASK.__and__, itertools.count(start + 1))
        return turn

    def increment_and_get(self, topic: str) -> int:
        """Count up and give the number."""
        return next(self.turn(topic))


class QueueChoice:
    """Round robin over the queues of a topic, thread by thread."""

    def __init__(self, index: ThreadLocalIndex | None = None) -> None:
        self.index: Final = index or ThreadLocalIndex()

    def select(
        self, queues: Sequence[MessageQueue], last_broker_name: str | None = None
    ) -> MessageQueue:
        """Give the next queue; after a failure the next one of another broker, if there is one.

        ``queues`` are those of one topic, at least one.
        """
        if last_broker_name is not None:
            for _ in queues:
                queue = self.select(queues)
                if queue.broker_name != last_broker_name:
                    return queue
        return queues[next(self.index.turn(queues[0].topic)) % len(queues)]


class FaultItem(NamedTuple):
    """Last measurement of a broker; ``start_timestamp`` is when it is used again, ms."""

    name: str
    current_latency: int
    start_timestamp: int


class LatencyTable:
    """Latencies of brokers, by name. Safe for threads."""

    def __init__(self, clock: Clock, index: ThreadLocalIndex | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards the items
        self._items: dict[str, FaultItem] = {}
        self._which_worst = index or ThreadLocalIndex()

    def update(self, name: str, current_latency: int, not_available_ms: int) -> None:
        """Note a broker's latency, and for how long it is avoided from now on."""
        item = FaultItem(name, current_latency, self._clock.now_ms() + not_available_ms)
        with self._lock:
            self._items[name] = item

    def remove(self, name: str) -> None:
        """Remove a broker."""
        with self._lock:
            self._items.pop(name, None)

    def is_available(self, name: str) -> bool:
        """Return whether a broker may be used; an unknown one may."""
        item = self._items.get(name)
        return item is None or self._clock.now_ms() >= item.start_timestamp

    def pick_one_at_least(self) -> str | None:
        """Give one of the better half of the known brokers, in turn; None if none is known.

        Available ones are better, then faster ones, then those that become available earlier.
        """
        with self._lock:
            items = list(self._items.values())
        if not items:
            return None
        now = self._clock.now_ms()
        items.sort(
            key=lambda it: (now < it.start_timestamp, it.current_latency, it.start_timestamp)
        )
        half = len(items) // 2
        if half == 0:
            return items[0].name
        return items[self._which_worst.increment_and_get(_WORST) % half].name

    def items(self) -> list[FaultItem]:
        """Give all measurements, by name."""
        with self._lock:
            return sorted(self._items.values())


class FaultStrategy:
    """Chooses queues, and learns from the results of sends; switched off, it is a plain
    QueueChoice."""

    def __init__(
        self,
        clock: Clock,
        *,
        enabled: bool = False,
        latency_max: Sequence[int] = LATENCY_MAX,
        not_available_duration: Sequence[int] = NOT_AVAILABLE_DURATION,
        choice: QueueChoice | None = None,
    ) -> None:
        self.enabled: Final = enabled
        self.table: Final = LatencyTable(clock)
        self.choice: Final = choice or QueueChoice()
        self._steps = tuple(zip(latency_max, not_available_duration, strict=True))

    def select(self, queues: Sequence[MessageQueue], last_broker_name: str | None) -> MessageQueue:
        """Choose a queue of a topic, at least one; ``last_broker_name`` has just failed.

        With the strategy on: the next queue whose broker is available; else one of a broker that
        is not too bad (QueueChoice decides if that one has no queue of the topic).
        """
        if not self.enabled:
            return self.choice.select(queues, last_broker_name)
        topic = queues[0].topic
        start = self.choice.index.increment_and_get(topic)
        for step in range(len(queues)):
            queue = queues[(start + step) % len(queues)]
            if self.table.is_available(queue.broker_name):
                return queue
        not_best = self.table.pick_one_at_least()
        if not_best is None:
            return self.choice.select(queues)
        write_queue_nums = sum(queue.broker_name == not_best for queue in queues)
        if write_queue_nums == 0:
            self.table.remove(not_best)
            return self.choice.select(queues)
        # RocketMQ counts twice here; counting once would leave out every other queue.
        self.choice.select(queues)
        queue_id = self.choice.index.increment_and_get(topic) % write_queue_nums
        return MessageQueue(topic, not_best, queue_id)

    def update(self, broker_name: str, latency_ms: int, *, isolation: bool) -> None:
        """Learn from a send; ``isolation``: it failed. Does nothing if the strategy is off."""
        if self.enabled:
            judged = ISOLATION_LATENCY_MS if isolation else latency_ms
            self.table.update(broker_name, latency_ms, self.not_available_ms(judged))

    def not_available_ms(self, latency_ms: int) -> int:
        """Give how long a broker of that latency is avoided (computeNotAvailableDuration)."""
        for threshold, duration in reversed(self._steps):
            if latency_ms >= threshold:
                return duration
        return 0
