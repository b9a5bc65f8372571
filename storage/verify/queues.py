"""Checking the consume queues against the records of the log, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag
from storage.format.unit import CQ_STORE_UNIT_SIZE, MAX_EXT_ADDR, PRE_BLANK_SIZE
from storage.model import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    SCHEDULE_TOPIC,
)
from storage.writing.dispatch import read_request

from .findings import Checked, Code, Finding, Severity
from .offset_runs import OffsetRuns
from .records import Longs, RecordBlock, TopicNames
from .units import MAX_QUEUE_OFFSET, find_unit, units_at

if TYPE_CHECKING:
    from storage.configs.deleted_topics import DeletedTopics
    from storage.files.read_files import FileRow, StoreFiles
    from storage.model import MessageExt
    from storage.reading.queue_ext import ConsumeQueueExt

Emit = Callable[[Finding], None]
QueueKey = tuple[str, int]

_INNER_MULTI_DISPATCH: Final = f"\x02{PROPERTY_INNER_MULTI_DISPATCH}\x01".encode()
_DELAY: Final = f"\x02{PROPERTY_DELAY_TIME_LEVEL}\x01".encode()
_REBUILD: Final = "rmqctl store rebuild queue"
_BLOCK_UNITS: Final = 1 << 16


class _Queue:
    """What is known of one queue while the log is read."""

    __slots__ = ("damaged", "next_offset", "present", "row", "tags_wrong", "well", "wrong")

    def __init__(self, row: FileRow | None, next_offset: int) -> None:
        self.row = row
        self.next_offset = next_offset
        self.present = OffsetRuns()  # queue offsets that a whole record has
        self.well = OffsetRuns()  # those of them whose unit is right
        self.wrong = OffsetRuns()  # those of them whose unit says something else
        self.damaged = OffsetRuns()  # those of records reported as damaged
        self.tags_wrong = OffsetRuns()


class QueueCheck:
    """Compares blocks of records with the queues, then looks for units that no record has.

    ``next_offsets`` is each queue's end when the check began, taken after the log's end.
    """

    def __init__(
        self,
        files: StoreFiles,
        ext: ConsumeQueueExt,
        topics: TopicNames,
        emit: Emit,
        checked: Checked,
        next_offsets: dict[QueueKey, int],
        *,
        start: int,
        log_min: int,
        log_end: int,
        emit_if_quiet: Emit,
        wanted: frozenset[str] | None,
        deleted: DeletedTopics,
    ) -> None:
        self._files = files
        self._deleted = deleted
        self._ext = ext
        self._topics = topics
        self._emit = emit
        self._emit_if_quiet = emit_if_quiet
        self._checked = checked
        self._start = max(start, log_min)
        self._log_min = log_min
        self._log_end = log_end
        self._wanted = wanted
        self._known_tags: dict[bytes, int] = {b"": 0}
        self._behind_end: list[tuple[QueueKey, int, int]] = []  # written meanwhile, or left over
        self._queues = {
            key: _Queue(files.queue(*key), following)
            for key, following in next_offsets.items()
            if self._is_wanted(key[0])
        }

    def compare(self, block: RecordBlock) -> None:
        """Look up the unit of each record of a block."""
        codes = block.tags_codes(self._known_tags)
        has_unit = block.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
        queue_numbers = block.topic << 32 | block.queue_id & 0xFFFFFFFF
        for number in np.unique(queue_numbers[has_unit]).tolist():
            topic = self._topics.names[number >> 32]
            if not self._is_wanted(topic):
                continue
            rows = np.flatnonzero(has_unit & (queue_numbers == number))
            if topic in self._deleted:
                rows = rows[block.offset[rows] >= self._deleted[topic]]
            expected = codes[rows]
            if topic == SCHEDULE_TOPIC:
                expected = self._delivery_times(block, rows, expected)
            # Nobody knows any more what tags a replaced record had.
            replaced = block.sys_flag[rows] & REPLACED_FLAG != 0
            expected = np.where(replaced, _ANY_CODE, expected)
            self._compare_queue(
                (topic, number & 0xFFFFFFFF),
                block.queue_offset[rows],
                block.offset[rows],
                block.size[rows],
                expected,
            )
        for row, text in enumerate(block.properties):
            if _INNER_MULTI_DISPATCH in text:
                self._compare_light_queues(block, row)

    def damaged(self, message: MessageExt) -> None:
        """Note a record that the log check has reported, so that its unit is not reported too."""
        queue = self._queue((message.topic, message.queue_id))
        if message.commitlog_offset < self._deleted.get(message.topic, 0):
            return
        if queue is not None and 0 <= message.queue_offset < queue.next_offset:
            queue.damaged.add(message.queue_offset, message.queue_offset + 1)

    # -- records to units ---------------------------------------------------------------------

    def _compare_queue(
        self,
        key: QueueKey,
        queue_offsets: Longs,
        offsets: Longs,
        sizes: Longs,
        codes: Longs,
    ) -> None:
        queue = self._queue(key)
        if queue is None:
            return
        units = units_at(queue.row, queue_offsets)
        well = (units["offset"] == offsets) & (units["size"] == sizes)
        present = (units["offset"] >= 0) & (units["size"] > 0)
        self._checked.units += int(present.sum())
        queue.well.add_all(queue_offsets[well])
        claims = np.ones(len(well), np.bool_)
        for row in np.flatnonzero(~well).tolist():
            claims[row] = self._may_claim(key, queue, int(queue_offsets[row]), int(offsets[row]))
        queue.present.add_all(queue_offsets[claims])
        queue.wrong.add_all(queue_offsets[present & ~well & claims])
        found = units["tags_code"].astype(np.int64)
        differs = well & (found != codes) & (codes != _ANY_CODE)
        for row in np.flatnonzero(differs & (found <= MAX_EXT_ADDR)).tolist():
            resolved = self._ext.tags_code(*key, int(found[row]))
            differs[row] = resolved != codes[row]
        queue.tags_wrong.add_all(queue_offsets[differs])

    def _compare_light_queues(self, block: RecordBlock, row: int) -> None:
        position = int(block.offset[row]) % self._files.log.file_size
        file = self._files.log.at(int(block.offset[row]) - position)
        if file is None:
            return
        request = read_request(file.view, position, int(block.size[row]), ())
        for topic, queue_id, queue_offset in request.units[1:]:
            gone = request.commitlog_offset < self._deleted.get(topic, 0)
            if self._is_wanted(topic) and not gone and queue_offset < MAX_QUEUE_OFFSET:
                self._compare_queue(
                    (topic, queue_id),
                    np.array([queue_offset]),
                    np.array([request.commitlog_offset]),
                    np.array([request.size]),
                    np.array([request.tags_code]),
                )

    def _delivery_times(self, block: RecordBlock, rows: Longs, codes: Longs) -> Longs:
        """Units of delayed messages hold a delivery time, which depends on the broker's levels."""
        delayed = [_DELAY in block.properties[row] for row in rows.tolist()]
        return np.where(delayed, _ANY_CODE, codes)

    def _may_claim(self, key: QueueKey, queue: _Queue, queue_offset: int, offset: int) -> bool:
        """Whether a record's queue offset can be true although its unit is not there."""
        where = f"{key[0]} queue {key[1]} offset {queue_offset}"
        if queue_offset in queue.well:
            self._at_record(
                Code.RECORD_REPEATED,
                offset,
                f"a second record claims {where}",
                "this message can not be reached through its queue",
            )
            return False
        own = find_unit(queue.row, queue.next_offset, offset)
        if own is not None and own != queue_offset:
            queue.damaged.add(own, own + 1)
        elif 0 <= queue_offset < MAX_QUEUE_OFFSET:
            return True
        self._at_record(
            Code.RECORD_MISPLACED,
            offset,
            f"the record says it is {where}, "
            + ("which can not be" if own is None else f"its unit is at {own}"),
            "it is never handed out",
        )
        return False

    def _at_record(self, code: Code, offset: int, what: str, effect: str) -> None:
        position = offset % self._files.log.file_size
        path = f"{COMMITLOG}/{file_name(offset - position)}"
        self._emit(Finding(code, Severity.ERROR, path, position, what, effect, ""))

    # -- units to records ---------------------------------------------------------------------

    def left_over(self, emit: Emit, written: dict[QueueKey, int]) -> None:
        """Report units of records behind the log's end, also those behind the queues' ends.

        After :meth:`finish`; means nothing while somebody is writing.
        """
        self._emit = emit
        for key, end in sorted(written.items()):
            queue = self._queue(key)
            if queue is not None and end > queue.next_offset:
                self._judge_run(key, queue, queue.next_offset, end)
        for key, start, end in self._behind_end:
            self._unclaimed(Code.UNIT_BEHIND_END, key, start, end)

    def finish(self) -> None:
        """Report what was collected, and look at the units that no record has claimed."""
        for key in sorted(self._queues):
            queue = self._queues[key]
            where = f"{key[0]} queue {key[1]}"
            for start, end in queue.tags_wrong:
                self._report(
                    Code.TAG_HASH_WRONG,
                    key,
                    start,
                    f"{where}: {_span(start, end)}: the unit's tag hash is not that of the record",
                    "subscriptions by tag miss these messages, or get them without asking",
                )
            lacking = OffsetRuns()
            for start, end in queue.present:
                for gap in queue.well.missing(start, end):
                    lacking.add(*gap)
            for start, end in lacking:
                if any(queue.wrong.missing(start, end)):
                    code, what = Code.UNIT_MISSING, "the records have no unit"
                else:
                    code, what = Code.UNIT_WRONG, "the units do not point at their records"
                self._report(
                    code,
                    key,
                    start,
                    f"{where}: {_span(start, end)}: {what}",
                    "consumers do not get these messages",
                )
            self._check_unclaimed(key, queue)

    def _check_unclaimed(self, key: QueueKey, queue: _Queue) -> None:
        claimed = OffsetRuns()
        for runs in (queue.present, queue.damaged):
            for run in runs:
                claimed.add(*run)
        first = self._first_in_range(queue)
        for start, end in claimed.missing(first, queue.next_offset):
            self._judge_run(key, queue, start, end)

    def _judge_run(self, key: QueueKey, queue: _Queue, start: int, end: int) -> None:
        for offset in range(start, end, _BLOCK_UNITS):
            numbers = np.arange(offset, min(end, offset + _BLOCK_UNITS))
            units = units_at(queue.row, numbers)
            self._checked.units += len(units)
            self._judge_units(key, numbers, units)

    def _judge_units(self, key: QueueKey, numbers: Longs, units: NDArray[Any]) -> None:
        offsets, sizes = units["offset"], units["size"]
        filler = sizes == PRE_BLANK_SIZE
        empty = (sizes <= 0) | (offsets < 0)
        outside = offsets < self._start
        behind = offsets + sizes > self._log_end
        kinds = (
            (empty, Code.QUEUE_GAP),
            (~empty & ~filler & ~outside & behind, Code.UNIT_BEHIND_END),
            (~empty & ~filler & ~outside & ~behind, Code.UNIT_WITHOUT_RECORD),
        )
        for rows, code in kinds:
            runs = OffsetRuns()
            runs.add_all(numbers[rows])
            for start, end in runs:
                if code is Code.UNIT_BEHIND_END:
                    self._behind_end.append((key, start, end))
                else:
                    self._unclaimed(code, key, start, end)

    def _unclaimed(self, code: Code, key: QueueKey, start: int, end: int) -> None:
        where, span = f"{key[0]} queue {key[1]}", _span(start, end)
        if code is Code.QUEUE_GAP:
            what, effect = "neither unit nor record", "the queue has a gap that consumers pass"
        elif code is Code.UNIT_BEHIND_END:
            what = "the units point behind the log's end"
            effect = "the messages do not exist; recovery cuts the units"
        else:
            what = "the log holds no whole record for the units"
            effect = "these messages can not be read"
        severity = Severity.ERROR if code is Code.UNIT_WITHOUT_RECORD else Severity.WARNING
        self._report(code, key, start, f"{where}: {span}: {what}", effect, severity)

    def _first_in_range(self, queue: _Queue) -> int:
        """First queue offset whose unit points at or behind where the check began."""
        if queue.row is None:
            return queue.next_offset
        files = queue.row.relist()
        low = files[0] // CQ_STORE_UNIT_SIZE if files else queue.next_offset
        claimed = next(iter(queue.present), None)
        high = queue.next_offset if claimed is None else min(claimed[0], queue.next_offset)
        if self._start <= self._log_min:
            # Deleted messages come first; anything else in front of the first record is looked at.
            while low < high:
                numbers = np.arange(low, min(high, low + _BLOCK_UNITS))
                units = units_at(queue.row, numbers)
                gone = (units["offset"] < self._log_min) & (units["size"] > 0)
                if not gone.all():
                    return low + int(gone.argmin())
                low += len(numbers)
        return high

    # -- inside -------------------------------------------------------------------------------

    def _is_wanted(self, topic: str) -> bool:
        return self._wanted is None or topic in self._wanted

    def _queue(self, key: QueueKey) -> _Queue | None:
        """A queue by name; one that has no folder lacks all its units."""
        found = self._queues.get(key)
        if found is None and self._is_wanted(key[0]):
            found = self._queues[key] = _Queue(self._files.queue(*key), 0)
        return found

    def _report(
        self,
        code: Code,
        key: QueueKey,
        queue_offset: int,
        what: str,
        effect: str,
        severity: Severity = Severity.WARNING,
    ) -> None:
        row = self._files.queue(*key)
        byte = queue_offset * CQ_STORE_UNIT_SIZE
        within = byte % row.file_size if row is not None else 0
        path = f"{CONSUMEQUEUE}/{key[0]}/{key[1]}/{file_name(byte - within)}"
        # A writer's units are there a moment before the log's end moves over their records.
        emit = self._emit_if_quiet if code is Code.UNIT_BEHIND_END else self._emit
        emit(Finding(code, severity, path, within, what, effect, _REBUILD))


_ANY_CODE: Final = -(1 << 63)
"""Stands for a tags code that is not compared; as an ext address it would be that of offset 0."""


def _span(start: int, end: int) -> str:
    return f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"
