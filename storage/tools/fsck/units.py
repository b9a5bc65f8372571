"""Looking up units of a queue's files by the thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET
from storage.record_batch.arrays import Longs

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap, ReadOnlyFiles

UNIT: Final = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_BYTES: Final = np.dtype(f"V{UNIT.itemsize}")


def distinct(numbers: Longs) -> list[int]:
    """Each of some numbers once, ascending: of thousands that are mostly equal or few."""
    if not len(numbers):
        return []
    ordered = np.sort(numbers)
    first = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    found: list[int] = ordered[np.concatenate(([0], first))].tolist()
    return found


def units_at(row: ReadOnlyFiles | None, queue_offsets: Longs) -> NDArray[Any]:
    """The units at some queue offsets, zeros where there is none."""
    units = np.zeros(len(queue_offsets), _BYTES)
    if row is None or not len(queue_offsets):
        return units.view(UNIT)
    per_file = row.file_size // CQ_STORE_UNIT_SIZE
    numbers = queue_offsets // per_file
    usable = (queue_offsets >= 0) & (queue_offsets < MAX_QUEUE_OFFSET)
    for number in distinct(numbers[usable]):
        rows = np.flatnonzero(usable & (numbers == number))
        places = queue_offsets[rows] - number * per_file
        span = int(places.max() - places.min() + 1) * CQ_STORE_UNIT_SIZE
        file = _opened(row, number * row.file_size, span)
        if file is None:
            continue
        whole = file.length // CQ_STORE_UNIT_SIZE * CQ_STORE_UNIT_SIZE
        table = np.frombuffer(file.view[:whole], _BYTES)  # copied as a whole, not field by field
        inside = places < len(table)
        units[rows[inside]] = table[places[inside]]
    return units.view(UNIT)


def units_in_row(row: ReadOnlyFiles | None, queue_offsets: Longs) -> memoryview | None:
    """The units at queue offsets that are consecutive and lie in one file; None if they do not."""
    first = int(queue_offsets[0])
    count = len(queue_offsets)
    if row is None or not 0 <= first < MAX_QUEUE_OFFSET:
        return None
    if int(queue_offsets[-1]) != first + count - 1 or (np.diff(queue_offsets) != 1).any():
        return None
    start = first * CQ_STORE_UNIT_SIZE
    within = start % row.file_size
    end = within + count * CQ_STORE_UNIT_SIZE
    file = _opened(row, start - within, end - within)
    if file is None or end > min(file.length, row.file_size):
        return None
    return file.view[within:end]


def _opened(row: ReadOnlyFiles, file_from_offset: int, size: int) -> ReadMap | None:
    """A file from which so many bytes are read."""
    return row.look(file_from_offset) if size <= FEW_BYTES else row.at(file_from_offset)
