"""Where messages of a queue lie in the log, and when they were stored."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from storage.log.record_reader import RecordReader
    from storage.queue.reader import QueueReader

_NEAR_UNITS: Final = FEW_BYTES // CQ_STORE_UNIT_SIZE
"""Units of which those between some that are wanted are read, too."""


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
