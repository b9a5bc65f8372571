"""Distribution of the unread messages of a group over ages and over sizes.

Nothing is sampled. Of a small backlog the time of each message is read; of a large one (see
:mod:`.each_time`) ages take a search by time for each edge and queue, so millions cost as little as
ten. Sizes come from the queues' own units.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK_SIZE
from storage.read.gaps import after_gap
from storage.readonly import Boundary

from .exact_times import EACH_TIME_UP_TO, Part, stored_times
from .queue_position import unread_bytes

if TYPE_CHECKING:
    from storage.readonly import StoreView

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
AGE_EDGES: Final = (10_000, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 3 * DAY)
"""Milliseconds: younger than the first, between two of them, older than the last."""
SIZE_EDGES: Final = (256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
"""Bytes of a record."""
_WORTH_NUMPY: Final = 500_000
"""Units from which importing NumPy is quicker than working without it."""
_LOOK_ASIDE: Final = 1000
"""Neighbours that are read when a message's time cannot be read."""


class Bucket(NamedTuple):
    """Messages from ``low`` on, below ``high``; None: no bound. ``total_bytes`` None: not known."""

    low: int | None
    high: int | None
    messages: int
    total_bytes: int | None


class Ages:
    """Ages of the unread messages at ``as_of`` (ms).

    A message that cannot be read has no age, and is left out; of a backlog above EACH_TIME_UP_TO
    it counts with its neighbours.
    """

    def __init__(self, view: StoreView, parts: Iterable[Part], as_of: int) -> None:
        self._view = view
        self._parts = list(parts)
        self._as_of = as_of
        self._stored: list[tuple[int, int]] | None = None
        """Time and size of each message, by time; None: there are too many."""
        if sum(part.messages for part in self._parts) <= EACH_TIME_UP_TO:
            self._stored = stored_times(view, self._parts)

    def buckets(self, edges: Sequence[int]) -> list[Bucket]:
        """Distribution by age, youngest first. ``edges`` ascend."""
        if self._stored is None:
            return _by_searches(self._view, self._parts, self._as_of, edges)
        return _by_each_age(self._stored, self._as_of, edges)

    def quantiles(self, shares: Iterable[float]) -> list[int | None]:
        """The ages (ms) that these shares of the messages have at most.

        Exact to the millisecond. None if nothing is unread, or nothing of it can be read.
        """
        if self._stored is not None:
            stored = self._stored
            return [_of_each(stored, self._as_of, share) for share in shares]
        queues = [_Queue(self._view, part) for part in self._parts if part.messages]
        total = sum(queue.end - queue.first for queue in queues)
        return [
            _quantile(queues, self._as_of, max(1, -int(-total * share // 1))) for share in shares
        ]


def _by_searches(
    view: StoreView, parts: Iterable[Part], as_of: int, edges: Sequence[int]
) -> list[Bucket]:
    counts = [0] * (len(edges) + 1)
    sizes: list[int | None] = [0] * (len(edges) + 1)
    for topic, queue_id, what in parts:
        first = what.first_unread
        if first is None:
            continue
        # A message is as old as an edge if it was stored at that time or before.
        cuts = [what.max_offset]
        for edge in edges:
            cut = view.offset_in_queue_by_time(topic, queue_id, as_of - edge + 1, Boundary.LOWER)
            cuts.append(min(max(cut, first), cuts[-1]))
        cuts.append(first)
        unread = unread_bytes(view, topic, queue_id, {*cuts} - {what.max_offset}, what.max_offset)
        for number in range(len(counts)):
            high, low = cuts[number], cuts[number + 1]
            counts[number] += high - low
            if low < high:
                total, more = unread[low], unread.get(high, 0)
                known = sizes[number]
                unknown = known is None or total is None or more is None
                sizes[number] = None if unknown else (known or 0) + (total or 0) - (more or 0)
    bounds = [None, *edges, None]
    return [
        Bucket(bounds[number], bounds[number + 1], count, sizes[number])
        for number, count in enumerate(counts)
    ]


def _by_each_age(
    stored: Sequence[tuple[int, int]], as_of: int, edges: Sequence[int]
) -> list[Bucket]:
    # A message is as old as an edge if it was stored at that time or before.
    starts = [bisect_left(stored, (as_of - edge + 1, 0)) for edge in edges]
    bounds = [None, *edges, None]
    return [
        Bucket(low, high, end - first, sum(size for _, size in stored[first:end]))
        for (low, high), (end, first) in zip(
            pairwise(bounds), pairwise([len(stored), *starts, 0]), strict=True
        )
    ]


def by_size(view: StoreView, parts: Iterable[Part], edges: Sequence[int]) -> list[Bucket]:
    """Distribution by the size of records (bytes), smallest first; units without a record are left
    out."""
    counts = [0] * (len(edges) + 1)
    sizes = [0] * (len(edges) + 1)
    parts = list(parts)
    unread = sum(part.messages for part in parts)
    add = _add_many if unread >= _WORTH_NUMPY else _add_few
    for topic, queue_id, what in parts:
        offset = what.first_unread
        while offset is not None and offset < what.max_offset:
            units = view.unit_view(topic, queue_id, offset, what.max_offset)
            if units is None:
                offset = after_gap(view, topic, queue_id, offset, what.max_offset)
                continue
            add(units, edges, counts, sizes)
            offset += len(units) // CQ_STORE_UNIT.size
    bounds = [None, *edges, None]
    return [
        Bucket(bounds[number], bounds[number + 1], count, sizes[number])
        for number, count in enumerate(counts)
    ]


def _add_few(units: memoryview, edges: Sequence[int], counts: list[int], sizes: list[int]) -> None:
    for _, size, _ in CQ_STORE_UNIT.iter_unpack(units):
        if 0 < size < PRE_BLANK_SIZE:
            number = bisect_right(edges, size)
            counts[number] += 1
            sizes[number] += size


def _add_many(units: memoryview, edges: Sequence[int], counts: list[int], sizes: list[int]) -> None:
    import numpy as np

    found = np.frombuffer(units, dtype=[("place", ">i8"), ("size", ">i4"), ("code", ">i8")])["size"]
    found = found[(found > 0) & (found < PRE_BLANK_SIZE)].astype(np.int64)
    numbers = np.searchsorted(np.array(edges, np.int64), found, side="right")
    for number in range(len(counts)):
        here = found[numbers == number]
        counts[number] += len(here)
        sizes[number] += int(here.sum())


def _of_each(stored: Sequence[tuple[int, int]], as_of: int, share: float) -> int | None:
    if not stored:
        return None
    wanted = max(1, -int(-len(stored) * share // 1))
    return max(0, as_of - stored[-wanted][0])


class _Queue:
    """The unread part of a large queue; caches the times that it has read."""

    def __init__(self, view: StoreView, part: Part) -> None:
        self._view = view
        self._topic, self._queue_id, what = part
        self.first = what.first_unread or 0
        self.end = what.max_offset
        self._times: dict[int, int | None] = {}

    def first_at(self, timestamp: int, low: int, high: int) -> int:
        """First message of [low, high) that was stored at a time or later, else ``high``.

        One whose time cannot be read is as old as the next readable one.
        """
        while low < high:
            middle = (low + high) // 2
            at, stored = self._readable_from(middle, high)
            if stored is None or stored >= timestamp:
                high = middle
            else:
                low = at + 1
        return low

    def _readable_from(self, offset: int, end: int) -> tuple[int, int | None]:
        for at in range(offset, min(end, offset + _LOOK_ASIDE)):
            if at not in self._times:
                self._times[at] = self._view.store_timestamp(self._topic, self._queue_id, at)
            stored = self._times[at]
            if stored is not None:
                return at, stored
        return end, None


def _quantile(queues: Sequence[_Queue], as_of: int, wanted: int) -> int | None:
    """The least age that ``wanted`` messages have at most."""
    if not queues:
        return None
    low, high = 0, as_of
    # Where the messages of the age ``high`` begin in each queue, and those of ``low``.
    oldest = [queue.first for queue in queues]
    youngest = [queue.end for queue in queues]
    while low < high:
        age = (low + high) // 2
        cuts = [
            queue.first_at(as_of - age, begin, end) if begin < end else begin
            for queue, begin, end in zip(queues, oldest, youngest, strict=True)
        ]
        young = sum(queue.end - cut for queue, cut in zip(queues, cuts, strict=True))
        if young >= wanted:
            high, oldest = age, cuts
        else:
            low, youngest = age + 1, cuts
    return low
