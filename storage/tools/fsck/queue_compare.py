"""Comparing blocks of records with the units of the consume queues.

Results are collected for one part of the log after the other, maybe by several processes, and
combined in the order of the log (:meth:`QueueComparison.absorb`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage import native
from storage.format.cq_unit import MAX_EXT_ADDR, MAX_QUEUE_OFFSET
from storage.format.dispatch import read_request
from storage.format.message import SCHEDULE_TOPIC
from storage.format.sys_flag import MessageSysFlag
from storage.record_batch.arrays import Longs
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import MARK_DELAY, MARK_LIGHT, RecordBatch

from .deletions import Deletions
from .offset_runs import OffsetRuns
from .orphan_records import ClaimsPart, OrphanRecords, QueueKey
from .unconfirmed import Mask
from .units import distinct, units_at, units_in_row

if TYPE_CHECKING:
    from storage.configs.deleted_topics import DeletedTopics
    from storage.files.read_files import ReadOnlyFiles, StoreFiles
    from storage.queue.ext import ConsumeQueueExt

_ANY_CODE: Final = -(1 << 63)
units_match: Final = native.form("units_match", native.nothing)
"""Whether all units are those of their records; None where it is not compiled."""
"""Replaces a tags code that is not compared; as an ext address it would be that of offset 0."""


class QueueRuns(NamedTuple):
    """Queue offsets of the records of one queue."""

    well: OffsetRuns
    """Of whole records whose unit is right."""
    present: OffsetRuns
    """Of whole records whose unit is wrong or missing."""
    wrong: OffsetRuns
    """Of those of them whose unit is wrong."""
    tags_wrong: OffsetRuns


class QueuePart(NamedTuple):
    """Results of a part of the log."""

    runs: dict[QueueKey, QueueRuns]
    claims: ClaimsPart
    units: int


class Queue:
    """Data of one queue while the log is read."""

    __slots__ = ("damaged", "next_offset", "row", "runs")

    def __init__(self, row: ReadOnlyFiles | None, next_offset: int) -> None:
        self.row = row
        self.next_offset = next_offset
        self.runs = QueueRuns(OffsetRuns(), OffsetRuns(), OffsetRuns(), OffsetRuns())
        self.damaged = OffsetRuns()  # queue offsets of units whose record was reported


class QueueComparison:
    """Looks up the units of records, block by block.

    ``next_offsets`` is each queue's end when the check began; ``topics`` may be of another
    comparison.
    """

    def __init__(
        self,
        files: StoreFiles,
        ext: ConsumeQueueExt,
        topics: TopicNames,
        next_offsets: dict[QueueKey, int],
        *,
        wanted: frozenset[str] | None,
        deleted: DeletedTopics,
        deletions: Deletions,
    ) -> None:
        self._files = files
        self._ext = ext
        self._topics = topics
        self._next_offsets = next_offsets
        self._wanted = wanted
        self._deleted = deleted
        self._deletions = deletions
        self.claims = OrphanRecords(files.log.file_size)
        self.queues: dict[QueueKey, Queue] = {}
        self.units = 0
        """Number of units that were checked."""

    def is_wanted(self, topic: str) -> bool:
        """Whether this topic is checked."""
        return self._wanted is None or topic in self._wanted

    def queue(self, key: QueueKey) -> Queue | None:
        """A queue by name; one that has no folder lacks all its units."""
        found = self.queues.get(key)
        if found is None and self.is_wanted(key[0]):
            following = self._next_offsets.get(key, 0)
            found = self.queues[key] = Queue(self._files.queue(*key), following)
        return found

    def part(self) -> QueuePart:
        """The results, for the comparison of the part before."""
        runs = {key: queue.runs for key, queue in self.queues.items()}
        return QueuePart(runs, self.claims.part(), self.units)

    def absorb(self, part: QueuePart) -> None:
        """Add the results of the part of the log that follows."""
        for key, runs in part.runs.items():
            queue = self.queue(key)
            assert queue is not None
            for own, other in zip(queue.runs, runs, strict=True):
                for start, end in other:
                    own.add(start, end)
        for key, queue_offsets, offsets, filled in self.claims.absorb(part.claims):
            self._give_up(key, queue_offsets, offsets, filled)
        self.units += part.units

    def compare(self, block: RecordBatch, unsure: Mask) -> None:
        """Look up the unit of each record of a block; tags of ``unsure`` are not compared."""
        codes = np.where(unsure, _ANY_CODE, block.tags_code)
        offset = block.offset
        has_unit = block.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
        queue_numbers = block.topic << 32 | block.queue_id & 0xFFFFFFFF
        for number in distinct(queue_numbers[has_unit]):
            topic = self._topics.names[number >> 32]
            if not self.is_wanted(topic):
                continue
            rows = np.flatnonzero(has_unit & (queue_numbers == number))
            if topic in self._deleted:
                rows = rows[offset[rows] >= self._deleted[topic]]
            key = (topic, number & 0xFFFFFFFF)
            if self._all_match(key, rows, block, offset, codes):
                continue
            expected = codes[rows]
            if topic == SCHEDULE_TOPIC:  # delivery times, which depend on the broker's levels
                expected = np.where(block.marks[rows] & MARK_DELAY, _ANY_CODE, expected)
            self._compare_queue(
                key,
                block.queue_offset[rows],
                offset[rows],
                block.size[rows],
                expected,
            )
        for row in block.marked(MARK_LIGHT):
            self._compare_lmq_queues(block, row, has_code=not unsure[row])

    def _all_match(
        self, key: QueueKey, rows: Longs, block: RecordBatch, offset: Longs, codes: Longs
    ) -> bool:
        """Whether the units of ``rows`` are all right, and notes it if they are.

        Where there is a compiled form; :meth:`_compare_queue` handles all other cases.
        """
        queue = self.queue(key)
        if queue is None or not len(rows):
            return False
        queue_offsets = block.queue_offset[rows]
        units = units_in_row(queue.row, queue_offsets)
        if units is None or not units_match(
            units, rows.data, offset.data, block.size.data, codes.data
        ):
            return False
        self.units += len(rows)
        queue.runs.well.add(int(queue_offsets[0]), int(queue_offsets[-1]) + 1)
        self.claims.seen_well(int(offset[rows[0]]), len(rows))
        return True

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
            rows = ~well & (offsets >= self._deletions.records_gone_to(key))
            odd = queue_offsets[rows], offsets[rows], present[rows]
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
        """Too many to find the cause of each: the unit counts as wrong."""
        queue = self.queue(key)
        assert queue is not None
        usable = (queue_offsets >= 0) & (queue_offsets < MAX_QUEUE_OFFSET)
        queue.runs.present.add_all(queue_offsets[usable])
        queue.runs.wrong.add_all(queue_offsets[usable & filled])

    def _compare_lmq_queues(self, block: RecordBatch, row: int, *, has_code: bool) -> None:
        file = self._files.log.at(block.first)
        if file is None:
            return
        request = read_request(
            file.view, int(block.place[row]), int(block.size[row]), (), first=block.first
        )
        code = request.tags_code if has_code else _ANY_CODE
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
