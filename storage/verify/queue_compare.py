"""Comparing blocks of records with the units of the consume queues.

What is found is collected for one part of the log after the other, maybe by several processes, and
put together in the order of the log (:meth:`QueueComparison.absorb`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.format.sys_flag import MessageSysFlag
from storage.format.unit import MAX_EXT_ADDR
from storage.model import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    SCHEDULE_TOPIC,
)
from storage.writing.dispatch import read_request

from .claims import Claims, ClaimsPart, QueueKey
from .offset_runs import OffsetRuns
from .records import Longs, RecordBlock, TopicNames
from .units import MAX_QUEUE_OFFSET, distinct, units_at

if TYPE_CHECKING:
    from storage.configs.deleted_topics import DeletedTopics
    from storage.files.read_files import FileRow, StoreFiles
    from storage.reading.queue_ext import ConsumeQueueExt

_INNER_MULTI_DISPATCH: Final = f"\x02{PROPERTY_INNER_MULTI_DISPATCH}\x01".encode()
_DELAY: Final = f"\x02{PROPERTY_DELAY_TIME_LEVEL}\x01".encode()
_ANY_CODE: Final = -(1 << 63)
"""Stands for a tags code that is not compared; as an ext address it would be that of offset 0."""


class QueueRuns(NamedTuple):
    """Queue offsets of the records of one queue."""

    well: OffsetRuns
    """Of whole records whose unit is right."""
    present: OffsetRuns
    """Of whole records whose unit is not."""
    wrong: OffsetRuns
    """Of those of them whose unit says something else."""
    tags_wrong: OffsetRuns


class QueuePart(NamedTuple):
    """What was found in a part of the log."""

    runs: dict[QueueKey, QueueRuns]
    claims: ClaimsPart
    units: int


class Queue:
    """What is known of one queue while the log is read."""

    __slots__ = ("damaged", "next_offset", "row", "runs")

    def __init__(self, row: FileRow | None, next_offset: int) -> None:
        self.row = row
        self.next_offset = next_offset
        self.runs = QueueRuns(OffsetRuns(), OffsetRuns(), OffsetRuns(), OffsetRuns())
        self.damaged = OffsetRuns()  # queue offsets of units whose record was reported


class QueueComparison:
    """Looks up the units of records, block by block.

    ``next_offsets`` is each queue's end when the check began; ``topics`` and ``tags_codes`` are
    what was learnt of names and tags, and may be of another comparison.
    """

    def __init__(
        self,
        files: StoreFiles,
        ext: ConsumeQueueExt,
        topics: TopicNames,
        tags_codes: dict[bytes, int],
        next_offsets: dict[QueueKey, int],
        *,
        wanted: frozenset[str] | None,
        deleted: DeletedTopics,
    ) -> None:
        self._files = files
        self._ext = ext
        self._topics = topics
        self._tags_codes = tags_codes
        self._next_offsets = next_offsets
        self._wanted = wanted
        self._deleted = deleted
        self.claims = Claims(files.log.file_size)
        self.queues: dict[QueueKey, Queue] = {}
        self.units = 0
        """Units that were looked at."""

    def is_wanted(self, topic: str) -> bool:
        """Whether the check is about this topic."""
        return self._wanted is None or topic in self._wanted

    def queue(self, key: QueueKey) -> Queue | None:
        """A queue by name; one that has no folder lacks all its units."""
        found = self.queues.get(key)
        if found is None and self.is_wanted(key[0]):
            following = self._next_offsets.get(key, 0)
            found = self.queues[key] = Queue(self._files.queue(*key), following)
        return found

    def part(self) -> QueuePart:
        """What was found, for the comparison that goes on in front of it."""
        runs = {key: queue.runs for key, queue in self.queues.items()}
        return QueuePart(runs, self.claims.part(), self.units)

    def absorb(self, part: QueuePart) -> None:
        """Go on behind what was found in the part of the log that follows."""
        for key, runs in part.runs.items():
            queue = self.queue(key)
            assert queue is not None
            for own, other in zip(queue.runs, runs, strict=True):
                for start, end in other:
                    own.add(start, end)
        for key, queue_offsets, offsets, filled in self.claims.absorb(part.claims):
            self._give_up(key, queue_offsets, offsets, filled)
        self.units += part.units

    def compare(self, block: RecordBlock) -> None:
        """Look up the unit of each record of a block."""
        codes = block.tags_codes(self._tags_codes)
        has_unit = block.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
        queue_numbers = block.topic << 32 | block.queue_id & 0xFFFFFFFF
        for number in distinct(queue_numbers[has_unit]):
            topic = self._topics.names[number >> 32]
            if not self.is_wanted(topic):
                continue
            rows = np.flatnonzero(has_unit & (queue_numbers == number))
            if topic in self._deleted:
                rows = rows[block.offset[rows] >= self._deleted[topic]]
            expected = codes[rows]
            if topic == SCHEDULE_TOPIC:
                expected = _delivery_times(block, rows, expected)
            expected = np.where(block.unsure[rows], _ANY_CODE, expected)
            self._compare_queue(
                (topic, number & 0xFFFFFFFF),
                block.queue_offset[rows],
                block.offset[rows],
                block.size[rows],
                expected,
            )
        for row in block.loose:
            if _INNER_MULTI_DISPATCH in block.properties[row]:
                self._compare_light_queues(block, row)

    def _compare_queue(
        self,
        key: QueueKey,
        queue_offsets: Longs,
        offsets: Longs,
        sizes: Longs,
        codes: Longs,
    ) -> None:
        queue = self.queue(key)
        if queue is None:
            return
        units = units_at(queue.row, queue_offsets)
        well = (units["offset"] == offsets) & (units["size"] == sizes)
        present = (units["offset"] >= 0) & (units["size"] > 0)
        self.units += int(present.sum())
        queue.runs.well.add_all(queue_offsets[well])
        self.claims.seen(offsets, well)
        if not well.all():
            odd = queue_offsets[~well], offsets[~well], present[~well]
            if not self.claims.add(key, *odd):
                self._give_up(key, *odd)
        found = units["tags_code"].astype(np.int64)
        differs = well & (found != codes) & (codes != _ANY_CODE)
        for row in np.flatnonzero(differs & (found <= MAX_EXT_ADDR)).tolist():
            resolved = self._ext.tags_code(*key, int(found[row]))
            differs[row] = resolved != codes[row]
        queue.runs.tags_wrong.add_all(queue_offsets[differs])

    def _give_up(
        self, key: QueueKey, queue_offsets: Longs, offsets: Longs, filled: NDArray[np.bool_]
    ) -> None:
        """Too many to ask for each why: its unit is taken for what is wrong."""
        queue = self.queue(key)
        assert queue is not None
        usable = (queue_offsets >= 0) & (queue_offsets < MAX_QUEUE_OFFSET)
        queue.runs.present.add_all(queue_offsets[usable])
        queue.runs.wrong.add_all(queue_offsets[usable & filled])

    def _compare_light_queues(self, block: RecordBlock, row: int) -> None:
        position = int(block.offset[row]) % self._files.log.file_size
        file = self._files.log.at(int(block.offset[row]) - position)
        if file is None:
            return
        request = read_request(file.view, position, int(block.size[row]), ())
        code = _ANY_CODE if block.unsure[row] else request.tags_code
        for topic, queue_id, queue_offset in request.units[1:]:
            gone = request.commitlog_offset < self._deleted.get(topic, 0)
            if self.is_wanted(topic) and not gone and queue_offset < MAX_QUEUE_OFFSET:
                self._compare_queue(
                    (topic, queue_id),
                    np.array([queue_offset]),
                    np.array([request.commitlog_offset]),
                    np.array([request.size]),
                    np.array([code]),
                )


def _delivery_times(block: RecordBlock, rows: Longs, codes: Longs) -> Longs:
    """Units of delayed messages hold a delivery time, which depends on the broker's levels."""
    delayed = [_DELAY in block.properties[row] for row in rows.tolist()]
    return np.where(delayed, _ANY_CODE, codes)
