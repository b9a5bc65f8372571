"""Where the written units of a consume queue end, from its files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from storage.files.read_files import FileRow, ReadMap

_LOOK_AHEAD: Final = 200 * CQ_STORE_UNIT_SIZE


def written_units(row: FileRow) -> int:
    """Queue offset behind the last written unit, 0 for a queue without one (ConsumeQueue.recover).

    An all-zero file behind another is passed over: Java takes its first unit for a message.
    """
    units_per_file = row.file_size // CQ_STORE_UNIT_SIZE
    for first in reversed(row.relist()):
        file = row.at(first)
        if file is not None:
            count = units_in_file(file)
            if count:
                return first // CQ_STORE_UNIT_SIZE + min(count, units_per_file)
    return 0


def units_in_file(file: ReadMap) -> int:
    """Number of units up to the last written one; cheap where they end once, in zeros."""
    unpack = CQ_STORE_UNIT.unpack_from
    low, high = 0, file.length // CQ_STORE_UNIT_SIZE
    while low < high:
        middle = (low + high) // 2
        offset, size, _ = unpack(file.view, middle * CQ_STORE_UNIT_SIZE)
        if offset >= 0 and size > 0:
            low = middle + 1
        else:
            high = middle
    end = low * CQ_STORE_UNIT_SIZE
    if any(file.map[end : end + _LOOK_AHEAD]):
        # Damage in the middle misled the search: find the last byte that is not zero.
        used = len(file.map[: file.length].rstrip(b"\0"))
        return -(-used // CQ_STORE_UNIT_SIZE)
    return low
