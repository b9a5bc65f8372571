"""From a time to a queue offset: RocketMQ 4.9's rule, and the two bounds of 5.x. And back.

The store time of a message is read from its record in the log; a queue keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage import native
from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles
    from storage.log.record_reader import RecordReader
    from storage.queue.reader import QueueBounds, QueueReader

_PLACE_AND_SIZE: Final = Struct(">qi")
_MISSING: Final = (0, 0, 0)
_FOREVER: Final = 1 << 62
_NOT_SEARCHED: Final = -2
_LOOK_ASIDE: Final = 1000
"""Neighbours that are tried when a message's time cannot be read."""
_NEAR_UNITS: Final = FEW_BYTES // CQ_STORE_UNIT_SIZE
"""Units of which those between some that are wanted are read, too."""


class Boundary(StrEnum):
    """The message for a time at which none was stored."""

    NEAREST49 = "nearest49"
    """The nearest one, as 4.9 finds it (ConsumeQueue.getOffsetInQueueByTime); see TimeSearch."""
    LOWER = "lower"
    """The first message stored at or after the time; the max offset if there is none."""
    UPPER = "upper"
    """The last message stored at or before the time; the min offset if there is none."""


class TimeSearch:
    """Searches queues by store time (ms)."""

    def __init__(self, records: RecordReader, log: ReadOnlyFiles) -> None:
        self._records = records
        self._log = log

    def offset(
        self,
        queue: QueueReader,
        bounds: QueueBounds,
        log_min: int,
        timestamp: int,
        boundary: Boundary,
    ) -> int:
        """Give the queue offset for ``timestamp``.

        NEAREST49 picks one queue file by the files' modification times and bisects only that:
        messages of other files are never considered; of several with the same time any may be
        found. After the last message it gives that one (max - 1). For an empty queue, and when a
        record on its path cannot be read, it gives 0.
        """
        if boundary is Boundary.NEAREST49:
            return self._nearest(queue, bounds, log_min, timestamp)
        if boundary is Boundary.LOWER:
            return self._first_not_before(queue, bounds, timestamp)
        end_offset = self._first_not_before(queue, bounds, timestamp + 1)
        return max(bounds.min_offset, end_offset - 1)

    def _nearest(
        self, queue: QueueReader, bounds: QueueBounds, log_min: int, timestamp: int
    ) -> int:
        end = bounds.max_offset
        segment = queue.segment(timestamp, end)
        if segment is None:
            return 0
        first, end_offset = segment
        # Units within the file, as Java counts them; it divides such that -1 becomes 0.
        low = max(0, bounds.min_offset - first)
        high = end_offset - first - 1
        units = queue.segment_view(first, end_offset)
        log = self._log
        nearest: int | None = _NOT_SEARCHED
        if units is not None and 0 <= timestamp < _FOREVER:
            nearest = _halve(units, low, high, log_min, timestamp, log.file_size, log.at)
        if nearest == _NOT_SEARCHED:
            place_of = _places(queue, first, units)
            time_of = self._records.store_timestamp
            nearest = halve(place_of, time_of, low, high, log_min, timestamp)
        return 0 if nearest is None else max(0, first + nearest)

    def _first_not_before(self, queue: QueueReader, bounds: QueueBounds, timestamp: int) -> int:
        low, high = bounds
        while low < high:
            middle = (low + high) // 2
            at, found = self._readable_from(queue, middle, high)
            if found is None:
                high = middle  # nothing readable from here on: the answer lies before
            elif found < timestamp:
                low = at + 1
            else:
                high = middle
        return self._skip_unreadable(queue, low, bounds.max_offset)

    def _readable_from(self, queue: QueueReader, offset: int, end: int) -> tuple[int, int | None]:
        """The first message from ``offset`` on whose time can be read, and that time."""
        for _ in range(_LOOK_ASIDE):
            if offset >= end:
                break
            unit = queue.unit(offset)
            if unit is None:
                offset = queue.after_gap(offset)
                continue
            if unit[1] != PRE_BLANK_SIZE:
                found = self._records.store_timestamp(*unit[:2])
                if found is not None:
                    return offset, found
            offset += 1
        return end, None

    def _skip_unreadable(self, queue: QueueReader, offset: int, end: int) -> int:
        """Skip messages that cannot be read, but never to the end of the queue."""
        at, found = self._readable_from(queue, offset, end)
        return offset if found is None else at


def _places(
    queue: QueueReader, first: int, units: memoryview | None
) -> Callable[[int], tuple[int, int]]:
    """Log offset and size of message n from ``first`` on; ``units`` begin there, if given."""
    if units is None:
        return lambda number: (queue.unit(first + number) or _MISSING)[:2]
    return lambda number: _PLACE_AND_SIZE.unpack_from(units, number * CQ_STORE_UNIT_SIZE)


def _not_searched(*_: object) -> int:
    return _NOT_SEARCHED


_halve: Final = native.form("halve", _not_searched)
"""The same as :func:`halve` for units that are in memory; _NOT_SEARCHED without compiled code."""


def halve(
    place_of: Callable[[int], tuple[int, int]],
    time_of: Callable[[int, int], int | None],
    low: int,
    high: int,
    log_min: int,
    timestamp: int,
) -> int | None:
    """Number of the message among ``low`` .. ``high`` that is nearest to a time.

    -1 if there is none, None if a record on its path cannot be read.
    """
    left = right = -1
    left_time = right_time = -1
    while high >= low:
        middle = (low + high) // 2
        place, size = place_of(middle)
        if place < log_min:
            low = middle + 1
            left = middle
            continue
        found = time_of(place, size)
        if found is None or found < 0:
            return None
        if found == timestamp:
            return middle
        if found > timestamp:
            high = middle - 1
            right, right_time = middle, found
        else:
            low = middle + 1
            left, left_time = middle, found
    if left_time == -1:
        return right
    if right_time == -1:
        return left
    return right if timestamp - left_time > right_time - timestamp else left


def places_in(
    queue: QueueReader,
    records: RecordReader,
    offsets: Collection[int],
    bounds: tuple[int, int],
) -> dict[int, tuple[int, int | None]]:
    """Log offset and store time (ms) of some messages; see StoreView.places."""
    low, high = bounds
    offsets = [offset for offset in offsets if low <= offset < high]
    found: dict[int, tuple[int, int | None]] = {}
    if not offsets:
        return found
    first, end = min(offsets), max(offsets) + 1
    near = len(offsets) > 1 and end - first <= _NEAR_UNITS
    units = queue.unit_view(first, end - first) if near else None
    if units is not None and len(units) < (end - first) * CQ_STORE_UNIT_SIZE:
        units = None
    for offset in offsets:
        unit: tuple[int, int, int] | None
        if units is None:
            unit = queue.unit(offset)
        else:
            unit = CQ_STORE_UNIT.unpack_from(units, (offset - first) * CQ_STORE_UNIT_SIZE)
        if unit is not None:
            found[offset] = unit[0], records.store_timestamp(unit[0], unit[1])
    return found
