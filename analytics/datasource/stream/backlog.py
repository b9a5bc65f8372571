"""The messages of queues between two places of a log: what a stream has not read of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.kernels.units import read_units
from storage.format.shapes import time_or_none
from storage.read.log_offsets import first_at
from storage.readonly import StoreView

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.datasource.plan.log_now import LogNow
    from analytics.datasource.query.topics import TopicChoice

    from .positions import Position


_AT_ONCE: Final = 1_000_000
"""Messages whose places are sorted at once."""


class QueueBacklog(NamedTuple):
    """The messages [first, end) of a queue."""

    topic: str
    queue_id: int
    first: int
    end: int


class Backlog(NamedTuple):
    """The messages of a store's selected queues between two offsets of its log."""

    path: str
    begin: int
    end: int
    queues: Sequence[QueueBacklog]

    @property
    def messages(self) -> int:
        """How many."""
        return sum(queue.end - queue.first for queue in self.queues)

    def end_of(self, count: int) -> int:
        """The offset of the log before which the first ``count`` messages lie, or nearly so many.

        If ``count`` is not 0 there is at least one: the messages of a record in light queues are
        not taken apart, nor is one from the units before it that name no record.
        """
        if count >= self.messages:
            return self.end
        if not count:
            return self.begin
        low, high = self.begin, self.end
        before = [queue.first for queue in self.queues]
        after = [queue.end for queue in self.queues]
        with StoreView.open(self.path) as view:
            while sum(after) - sum(before) > _AT_ONCE and high - low > 1:
                middle = (low + high) // 2
                found = [
                    a if a == b else first_at(view, queue.topic, queue.queue_id, middle, a, b)
                    for queue, a, b in zip(self.queues, before, after, strict=True)
                ]
                taken = self._taken(found)
                if taken > count:
                    high, after = middle, found
                else:
                    low, before = middle, found
                if taken == count:
                    return low
            places = self._places(view, before, after, low, high)
        rest = count - self._taken(before)
        end = int(places[rest]) if rest < len(places) else high
        if end > places[0] or self._taken(before):
            return max(low, end)
        others = places[places > places[0]]
        return int(others[0]) if len(others) else high

    def _places(
        self, view: StoreView, before: Sequence[int], after: Sequence[int], low: int, high: int
    ) -> NDArray[np.int64]:
        """Log offsets of the messages between some in each queue, ascending. They lie in [low,
        high): a unit that names no record there counts with the next one, as in ``first_at``."""
        parts = []
        for queue, first, end in zip(self.queues, before, after, strict=True):
            if first < end:
                _, places, sizes, _ = read_units(view, queue.topic, queue.queue_id, first, end)
                odd = (sizes == 0) | (places < low) | (places >= high)
                if odd.any():
                    named = np.where(odd, high, places)
                    following = np.minimum.accumulate(named[::-1])[::-1]
                    places = np.where(odd, following, places)
                parts.append(places)
        return np.sort(np.concatenate(parts))

    def _taken(self, firsts: Sequence[int]) -> int:
        pairs = zip(self.queues, firsts, strict=True)
        return sum(max(0, first - queue.first) for queue, first in pairs)

    def oldest_timestamp(self) -> int | None:
        """Store time (ms) of the oldest message whose store time is known; None without any."""
        with StoreView.open(self.path) as view:
            times = [time_or_none(view.store_timestamp(*queue[:3])) for queue in self.queues]
        return min((time for time in times if time is not None), default=None)


def backlog_of(log: LogNow, position: Position, begin: int, topics: TopicChoice) -> Backlog:
    """The messages that a stream at a position has not read; ``begin`` is where it goes on."""
    queues = []
    if begin < log.end:
        with StoreView.open(log.ref.path) as view:
            for topic, queue_id in view.queues():
                if topics.wants(log.ref.broker, topic, queue_id):
                    low, high = view.queue_bounds(topic, queue_id)
                    first = first_at(view, topic, queue_id, begin, low, high)
                    first = max(first, position.floor(topic, queue_id))
                    end = first_at(view, topic, queue_id, log.end, first, high)
                    if first < end:
                        queues.append(QueueBacklog(topic, queue_id, first, end))
    return Backlog(log.ref.path, begin, max(begin, log.end), queues)


def shares(counts: Sequence[int], most: int) -> list[int]:
    """Divide ``most`` messages among stores in proportion to what they have, the largest first."""
    total = sum(counts)
    if total <= most:
        return list(counts)
    found = [count * most // total for count in counts]
    by_rest = sorted(range(len(counts)), key=lambda at: -(counts[at] * most % total))
    for at in by_rest[: most - sum(found)]:
        found[at] += 1
    return found
