"""Prepared records whose columns are NumPy arrays; same answers as PreparedRecords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .cq_unit import CQ_STORE_UNIT_SIZE
from .layout import QUEUE_OFFSET_POSITION, SYS_FLAG_POSITION
from .prepared import PreparedRecords

if TYPE_CHECKING:
    from .prepared import Ints

Longs = NDArray[np.int64]

PLACE: Final = np.dtype([("queue_offset", ">i8"), ("physical_offset", ">i8")])
"""Two adjacent fields of a record that are known last."""
_UNIT: Final = np.dtype([("commitlog_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_BORN_V6: Final = 0x10


def at_any_byte(buffer: bytearray, item: np.dtype[Any]) -> NDArray[Any]:
    """View a buffer as items that begin at each of its bytes, to write some of them at once."""
    count = max(0, len(buffer) - item.itemsize + 1)
    return np.ndarray((count,), item, buffer, 0, (1,))


class PreparedColumns(PreparedRecords):
    """Records prepared in bulk: every sequence but ``queues`` is an array, or None, or an int."""

    __slots__ = ("_by_queue",)

    starts: Longs
    sizes: Longs
    queue_index: Longs | None
    has_unit: NDArray[np.bool_] | None
    tags_codes: Longs
    delays_ms: Longs | None
    key_hashes: Longs
    key_counts: Longs | int

    def largest(self) -> int:
        """Give the bytes of the largest record."""
        return int(self.sizes.max(initial=0))

    def __init__(self, *columns: Any) -> None:
        """Take the columns in PreparedRecords' order."""
        super().__init__(*columns)
        # The records that get units, queue by queue. Sorted here, not under the write lock; NumPy
        # sorts numbers of 16 bits by counting.
        self._by_queue: Longs | None = None
        if len(self.queues) > 1:
            numbers = self._queue_of_units()
            small = numbers.astype(np.uint16) if len(self.queues) < 1 << 16 else numbers
            self._by_queue = np.argsort(small, kind="stable")

    def _queue_of_units(self) -> Longs:
        """Give the queue number of each record that gets a unit."""
        index = self.queue_index
        if index is None:
            index = np.zeros(len(self.starts), np.int64)
        return index if self.has_unit is None else index[self.has_unit]

    def queue_counts(self) -> Sequence[int]:
        """Count how many queue offsets each queue of ``queues`` uses."""
        counts: list[int] = np.bincount(self._queue_of_units(), minlength=len(self.queues)).tolist()
        return counts

    def record_queue_offsets(self, queue_offsets: Sequence[int]) -> Ints:
        """Give each record's queue offset, from the next offset of every queue in ``queues``."""
        numbers = self._queue_of_units()
        first = np.asarray(queue_offsets, np.int64)
        given: Longs
        if len(self.queues) == 1:
            given = np.arange(len(numbers), dtype=np.int64) + first[0]
        else:
            counts = np.bincount(numbers, minlength=len(self.queues))
            group_starts = np.cumsum(counts) - counts
            given = np.empty(len(numbers), np.int64)
            given[self._by_queue] = np.arange(len(numbers)) + np.repeat(
                first - group_starts, counts
            )
        if self.has_unit is None:
            return given
        offsets = np.zeros(len(self.starts), np.int64)
        offsets[self.has_unit] = given
        return offsets

    def place(
        self, commitlog_offset: int, queue_offsets: Sequence[int], store_timestamp: int
    ) -> Ints:
        """Write queue offsets, commit log offsets and the store timestamp (ms) into ``buffer``."""
        starts = self.starts
        place = np.empty(len(starts), PLACE)
        own_offsets = self.record_queue_offsets(queue_offsets)
        place["queue_offset"] = own_offsets
        place["physical_offset"] = starts + commitlog_offset
        at_any_byte(self.buffer, np.dtype("V16"))[starts + QUEUE_OFFSET_POSITION] = place.view(
            "V16"
        )
        sys_flags = np.frombuffer(self.buffer, np.uint8)[starts + SYS_FLAG_POSITION + 3]
        positions = starts + 56
        if (sys_flags & _BORN_V6).any():
            positions += np.where(sys_flags & _BORN_V6, 12, 0)
        timestamp = np.frombuffer(store_timestamp.to_bytes(8, "big"), "V8")
        at_any_byte(self.buffer, np.dtype("V8"))[positions] = timestamp
        return own_offsets

    def units(self, commitlog_offset: int, store_timestamp: int) -> list[tuple[int, int, bytes]]:
        """Make the consume queue units: per queue (number in ``queues``, count, units in order)."""
        units = np.empty(len(self.starts), _UNIT)
        units["commitlog_offset"] = self.starts + commitlog_offset
        units["size"] = self.sizes
        units["tags_code"] = self.tags_codes
        if self.delays_ms is not None:
            delayed = self.delays_ms >= 0
            units["tags_code"][delayed] = store_timestamp + self.delays_ms[delayed]
        if self.has_unit is not None:
            units = units[self.has_unit]
        if len(self.queues) == 1:
            return [(0, len(units), units.tobytes())] if len(units) else []
        buffer = units.view("V20")[self._by_queue].tobytes()
        blocks = []
        start = 0
        for number, count in enumerate(self.queue_counts()):
            end = start + count * CQ_STORE_UNIT_SIZE
            if count:
                blocks.append((number, count, buffer[start:end]))
            start = end
        return blocks

    def log_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset; after :meth:`place`."""
        return self.starts + commitlog_offset

    def key_offsets(self, commitlog_offset: int) -> Ints:
        """Give each record's commit log offset as often as it has keys."""
        offsets = self.starts + commitlog_offset
        return np.repeat(offsets, self.key_counts)

    @staticmethod
    def _rebased(starts: Ints, base: int) -> Ints:
        return np.asarray(starts) - base
