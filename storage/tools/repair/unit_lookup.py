"""Units of all queues that point into given parts of the log, as evidence of lost records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET, PRE_BLANK_SIZE
from storage.format.dispatch import is_possible_topic
from storage.format.message import LMQ_PREFIX
from storage.tools.fsck.units import UNIT

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles


class UnitAt(NamedTuple):
    """One unit: the record that it points at, and its queue and queue offset."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    is_last: bool
    """Whether no later unit follows in its queue."""
    tags_code: int | None = None
    """What it says of the record's tags, or of its delivery; None where no unit was read."""

    @property
    def end(self) -> int:
        """Commit log offset after its record."""
        return self.offset + self.size


def own_first(units: Iterable[UnitAt]) -> list[UnitAt]:
    """Sort units of one record: a light queue's unit names a record of another topic."""
    return sorted(units, key=lambda unit: (unit.topic.startswith(LMQ_PREFIX), unit))


def units_into(files: StoreFiles, ranges: list[tuple[int, int]]) -> list[UnitAt]:
    """Give the units that point into one of ``ranges`` of the log, by log offset.

    ``ranges`` do not overlap. Reads all units of the store once, a file at a time.
    """
    if not ranges:
        return []
    ranges = sorted(ranges)
    starts = np.array([start for start, _ in ranges], np.int64)
    ends = np.array([end for _, end in ranges], np.int64)
    found: list[UnitAt] = []
    for topic, queue_id in files.queue_folders():
        row = files.queue(topic, queue_id)
        if row is None or not is_possible_topic(topic):
            continue
        of_queue: list[tuple[int, int, int, int]] = []
        last = -1
        for first in row.relist():
            file = row.at(first)
            number = first // CQ_STORE_UNIT_SIZE
            if file is None or number >= MAX_QUEUE_OFFSET:
                continue
            whole = file.length // CQ_STORE_UNIT_SIZE * CQ_STORE_UNIT_SIZE
            units = np.frombuffer(file.view[:whole], UNIT)
            offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
            present = (offsets >= 0) & (sizes > 0) & (sizes != PRE_BLANK_SIZE)
            rows = np.flatnonzero(present)
            if not len(rows):
                continue
            last = number + int(rows[-1])
            at = np.searchsorted(starts, offsets, "right") - 1
            inside = present & (at >= 0)
            inside &= offsets + sizes <= ends[np.maximum(at, 0)]
            of_queue += [
                (int(offsets[i]), int(sizes[i]), number + i, int(units["tags_code"][i]))
                for i in np.flatnonzero(inside).tolist()
            ]
        found += [
            UnitAt(offset, size, topic, queue_id, number, number == last, code)
            for offset, size, number, code in of_queue
        ]
    return sorted(found)
