"""Records whose unit is not in its place, and unclaimed units: which of them belong together.

A record with a wrong place is distinguished from a queue with misplaced units by what is at the
place that the record names; a file of another log by its records, none of which a queue has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.record_batch.arrays import Longs

QueueKey = tuple[str, int]

_MOST: Final = 1 << 21
"""Claims that are kept, with 25 bytes each."""

Filled = NDArray[np.bool_]
OddRecords = tuple[QueueKey, Longs, Longs, Filled]
"""Queue, queue offsets, log offsets, and whose place another unit has."""


class ClaimsPart(NamedTuple):
    """Results of a part of the log."""

    records: list[OddRecords]
    well_in: Counter[int]


class OrphanRecord(NamedTuple):
    """A record without a unit in its place; ``own`` is the place of a unit that points at it."""

    offset: int
    key: QueueKey
    queue_offset: int
    own: tuple[QueueKey, int] | None


class OrphanRecords:
    """Collects orphan records while the log is read, then the units that no record has."""

    def __init__(self, file_size: int) -> None:
        self._file_size = file_size
        self._keys: list[QueueKey] = []
        self._numbers: dict[QueueKey, int] = {}
        self._parts: list[tuple[int, Longs, Longs, Filled]] = []
        self._count = 0
        self._well_in: Counter[int] = Counter()
        self._units_in: Counter[int] = Counter()
        self._own: dict[int, tuple[QueueKey, int]] = {}
        self._sorted: tuple[Longs, Longs, Longs] | None = None

    def __bool__(self) -> bool:
        return self._count > 0

    def seen(self, offsets: Longs, well: NDArray[np.bool_]) -> None:
        """Note records of one log file and which of them have their unit."""
        if len(offsets):
            self.seen_well(int(offsets[0]), int(well.sum()))

    def seen_well(self, offset: int, count: int) -> None:
        """Note how many records of the log file that holds ``offset`` have their unit."""
        self._well_in[offset - offset % self._file_size] += count

    def part(self) -> ClaimsPart:
        """The results up to here, for the claims of the part before."""
        records = [(self._keys[part[0]], part[1], part[2], part[3]) for part in self._parts]
        return ClaimsPart(records, self._well_in)

    def absorb(self, part: ClaimsPart) -> list[OddRecords]:
        """Add the results of the part of the log that follows; gives records of it that are too
        many to keep."""
        self._well_in.update(part.well_in)
        return [odd for odd in part.records if not self.add(*odd)]

    def add(self, key: QueueKey, queue_offsets: Longs, offsets: Longs, filled: Filled) -> bool:
        """Note records that have no unit in their place; False if there are too many to keep."""
        if self._count + len(offsets) > _MOST:
            return False
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        self._parts.append((number, queue_offsets, offsets, filled))
        self._count += len(offsets)
        return True

    def note_units(self, key: QueueKey, numbers: Longs, units: NDArray[Any]) -> None:
        """Find unclaimed units that point at one of the records."""
        offsets, _, _ = self._table()
        filled = (units["size"] > 0) & (units["offset"] >= 0)
        places = units["offset"][filled].astype(np.int64)
        self._units_in.update((places - places % self._file_size).tolist())
        at = np.minimum(np.searchsorted(offsets, places), len(offsets) - 1)
        for row in np.flatnonzero(offsets[at] == places).tolist():
            self._own.setdefault(int(places[row]), (key, int(numbers[filled][row])))

    def foreign_files(self) -> Iterator[tuple[int, int]]:
        """First offsets of log files without a record in any queue although queues have others
        there, and how many records they have."""
        offsets, _, _ = self._table()
        firsts, counts = np.unique(offsets - offsets % self._file_size, return_counts=True)
        # The first records of two files of one number lie at the same place.
        own = Counter(offset - offset % self._file_size for offset in self._own)
        for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
            known = self._well_in[first] or 2 * own[first] >= count
            if not known and count >= 2 and self._units_in[first] >= 2:
                yield first, count

    def odd(self) -> Iterator[OrphanRecord]:
        """All orphan records in the order of the log."""
        for offset, number, queue_offset in zip(
            *(column.tolist() for column in self._table()), strict=True
        ):
            yield OrphanRecord(offset, self._keys[number], queue_offset, self._own.get(offset))

    def _table(self) -> tuple[Longs, Longs, Longs]:
        """Log offset, number of the queue and queue offset, by log offset."""
        if self._sorted is None:
            offsets = np.concatenate([part[2] for part in self._parts])
            numbers = np.concatenate([np.full(len(part[2]), part[0]) for part in self._parts])
            queue_offsets = np.concatenate([part[1] for part in self._parts])
            order = np.argsort(offsets, kind="stable")
            self._sorted = offsets[order], numbers[order], queue_offsets[order]
        return self._sorted
