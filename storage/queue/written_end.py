"""Where the written units of a consume queue end, from its files alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.log.record_reader import QueueKey

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap, ReadOnlyFiles, StoreFiles

_LOOK_AHEAD: Final = 200 * CQ_STORE_UNIT_SIZE


class QueueTail:
    """The end of one queue's files. ``next_offset`` counts units that are part of the store."""

    __slots__ = ("hole", "key", "next_offset", "row")

    def __init__(self, row: ReadOnlyFiles, key: QueueKey, next_offset: int) -> None:
        self.row = row
        self.key = key
        self.next_offset = next_offset
        self.hole: int | None = None
        """The queue offset of the first hole, if that is why no unit from there on is counted."""

    def cut_to(self, units: int, hole: int) -> None:
        """Count the first ``units``; ``hole`` is where the first unit is missing."""
        if units < self.next_offset:
            self.next_offset = units
            self.hole = hole

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        """One unit of the files, zeros where it is missing."""
        if queue_offset < 0:
            return 0, 0, 0
        data = self.row.peek(queue_offset * CQ_STORE_UNIT_SIZE, CQ_STORE_UNIT_SIZE)
        if len(data) < CQ_STORE_UNIT_SIZE:
            return 0, 0, 0
        unit: tuple[int, int, int] = CQ_STORE_UNIT.unpack(data)
        return unit


def tails_of(files: StoreFiles) -> Iterator[QueueTail]:
    """The ends of all queues that have a folder, with all units that are written."""
    for topic, queue_id in files.queue_folders():
        row = files.queue(topic, queue_id)
        if row is not None:
            yield QueueTail(row, QueueKey(topic, queue_id), written_units(row))


def written_units(row: ReadOnlyFiles) -> int:
    """Queue offset after the last written unit, 0 for a queue without one (ConsumeQueue.recover).

    An all-zero file after another is skipped: Java takes its first unit for a message.
    """
    units_per_file = row.file_size // CQ_STORE_UNIT_SIZE
    for first in reversed(row.relist()):
        file = row.look(first)
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
