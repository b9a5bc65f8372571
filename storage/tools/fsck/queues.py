"""Checking the consume queues against the records of the log, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET, PRE_BLANK_SIZE
from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name
from storage.format.record import CheckKind, check_record, read_head
from storage.record_batch.arrays import Longs

from .deletions import Deletions
from .findings import Checked, Code, Finding, Severity
from .offset_runs import OffsetRuns
from .orphan_records import OrphanRecord, QueueKey
from .queue_compare import Queue, QueueComparison
from .reported import Reported
from .units import units_at

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles, StoreFiles

Emit = Callable[[Finding], None]
Filled = Callable[[QueueKey, int, int], bool]
"""Whether readers have the messages between two offsets of a queue without its files' units."""

_REBUILD: Final = "rmqctl store rebuild queue"
_BLOCK_UNITS: Final = 1 << 16


class QueueCheck:
    """Reports the comparison with the records, and finds units that no record has.

    ``comparison`` collects while the log is read. ``next_offsets`` is each queue's end when the
    check began, taken after the log's end. ``closed``: the store was closed cleanly.
    """

    def __init__(
        self,
        files: StoreFiles,
        comparison: QueueComparison,
        emit: Emit,
        checked: Checked,
        next_offsets: dict[QueueKey, int],
        *,
        start: int,
        log_min: int,
        log_end: int,
        emit_if_quiet: Emit,
        reported: Reported,
        holes: list[tuple[str, int, int]],
        closed: bool,
        filled: Filled,
        deletions: Deletions,
    ) -> None:
        self._files = files
        self._comparison = comparison
        self._reported = reported
        self._holes = holes
        self._closed = closed
        self._filled = filled
        self._deletions = deletions
        self._emit = emit
        self._emit_if_quiet = emit_if_quiet
        self._checked = checked
        self._start = max(start, log_min)
        self._log_min = log_min
        self._log_end = log_end
        self._past_end: list[tuple[QueueKey, int, int]] = []  # written meanwhile, or left over
        self.past_end: list[Finding] = []
        """Findings of units past the log's end, after :meth:`left_over`."""
        for key in next_offsets:
            comparison.queue(key)

    def _at_record(self, code: Code, offset: int, what: str, effect: str) -> None:
        position = offset % self._files.log.file_size
        path = f"{COMMITLOG}/{file_name(offset - position)}"
        fix = "rmqctl store repair"
        self._emit(Finding(code, Severity.ERROR, path, position, what, effect, fix))

    # -- records without their unit ---------------------------------------------------------------

    def _resolve(self) -> None:
        """Decide for each record without a unit in its place which of the two is wrong."""
        if not self._comparison.claims:
            return
        for key, queue in self._comparison.queues.items():
            first, files = self._first_in_range(queue), _of_files(queue.row)
            for start, end in queue.runs.well.missing(first, queue.next_offset):
                for numbers, units in _read_units(queue.row, files, start, end):
                    self._comparison.claims.note_units(key, numbers, units)
        for first, count in self._comparison.claims.foreign_files():
            size = self._files.log.file_size
            self._reported.add(first, first + size)
            self._at_record(
                Code.LOG_FILE_FOREIGN,
                first,
                f"no queue knows any record of it ({count}), and queues know others in it",
                "the file is of another log: its messages are not handed out, those of this log "
                "are lost",
            )
        for odd in self._comparison.claims.odd():
            self._judge_claim(odd)

    def _judge_claim(self, odd: OrphanRecord) -> None:
        """Decide by what is at the place that the record claims, and where its unit is."""
        if self._reported.has(np.array([odd.offset]))[0]:
            return
        key, queue_offset = odd.key, odd.queue_offset
        if odd.offset < self._deletions.records_gone_to(key):
            return
        queue = self._comparison.queue(key)
        possible = queue is not None and queue.row is not None and queue_offset >= 0
        possible &= queue_offset < MAX_QUEUE_OFFSET
        taken = possible and queue is not None and queue_offset in queue.runs.well
        unit = None
        if possible and queue is not None:
            (unit,) = units_at(queue.row, np.array([queue_offset]))
        filled = unit is not None and unit["size"] > 0 and unit["offset"] >= 0
        where = f"{key[0]} queue {key[1]} offset {queue_offset}"
        if odd.own is not None and (taken or not filled):
            own_key, own_offset = odd.own
            own = self._comparison.queues[own_key].damaged
            own.add(own_offset, own_offset + 1)
            self._reported.add(odd.offset, odd.offset + 1)
            self._at_record(
                Code.RECORD_MISPLACED,
                odd.offset,
                f"the record says it is {where}, its unit is {own_key[0]} queue {own_key[1]} "
                f"offset {own_offset}",
                "it is never handed out",
            )
        elif taken:
            self._at_record(
                Code.RECORD_REPEATED,
                odd.offset,
                f"a second record claims {where}",
                "this message cannot be reached through its queue",
            )
        elif not possible:
            what = f"the record says it is {where}, which cannot be"
            self._at_record(Code.RECORD_MISPLACED, odd.offset, what, "it is never handed out")
        else:
            assert queue is not None
            queue.runs.present.add(queue_offset, queue_offset + 1)
            if filled:
                queue.runs.wrong.add(queue_offset, queue_offset + 1)

    # -- units to records ---------------------------------------------------------------------

    def left_over(self, written: dict[QueueKey, int]) -> None:
        """Find units of records past the log's end, also past the queues' ends.

        After :meth:`finish`; the results are valid only while no process writes.
        """
        self._emit = self._emit_if_quiet
        for key, end in sorted(written.items()):
            queue = self._comparison.queue(key)
            if queue is not None and end > queue.next_offset:
                files = _of_files(queue.row)
                for start, past_end in _claimed(queue).missing(queue.next_offset, end):
                    self._judge_run(key, queue.row, files, start, past_end)
        for key, start, end in self._past_end:
            self._unclaimed(Code.UNIT_BEHIND_END, key, start, end)

    def finish(self) -> None:
        """Report what was collected, and check the units that no record has claimed."""
        self._checked.units += self._comparison.units
        self._resolve()
        for key in sorted(self._comparison.queues):
            queue = self._comparison.queues[key]
            for start, end in queue.runs.tags_wrong:
                self._report(
                    Code.TAG_HASH_WRONG,
                    key,
                    (start, end),
                    "the unit's tag hash is not that of the record",
                    "subscriptions by tag miss these messages, or get them without asking",
                )
            self._tell_lacking(key, queue)
            self._tell_short_files(key, queue)
            self._check_unclaimed(key, queue)

    def _tell_lacking(self, key: QueueKey, queue: Queue) -> None:
        """Report records that have no right unit."""
        for start, end in self._lacking(key, queue):
            if any(queue.runs.wrong.missing(start, end)):
                code, what = Code.UNIT_MISSING, "the records have no unit"
            else:
                code, what = Code.UNIT_WRONG, "the units do not point at their records"
            self._report(code, key, (start, end), what, *self._hole_harms(key, start, end))

    def _hole_harms(self, key: QueueKey, start: int, end: int) -> tuple[str, Severity]:
        """Effect and severity of records without a right unit.

        After an abnormal end such holes are expected after the checkpoint: rmqctl's readers fill
        them from the log, and recovery rebuilds the units. No other reader fills a hole.
        """
        if not self._closed and self._filled(key, start, end):
            return (
                "rmqctl reads these messages from the log, Java consumers do not get them; "
                "recovery, when the store is opened for writing, makes the units again"
            ), Severity.WARNING
        return "consumers do not get these messages; repair makes the units again", Severity.ERROR

    def _tell_short_files(self, key: QueueKey, queue: Queue) -> None:
        """Report for files that were cut short which units were in the missing part."""
        folder = f"{CONSUMEQUEUE}/{key[0]}/{key[1]}"
        for named, start, end in self._holes:
            if named != folder or queue.row is None:
                continue
            size = queue.row.file_size
            first = start - start % size
            path = f"{folder}/{file_name(first)}"
            if not Path(queue.row.path(first)).is_file():
                continue  # a missing file, which is reported
            lacking = OffsetRuns()
            cut = start // CQ_STORE_UNIT_SIZE, -(-end // CQ_STORE_UNIT_SIZE)
            for run in queue.runs.present.within(*cut):
                for gap in queue.runs.well.missing(*run):
                    lacking.add(*gap)
            spans = [_span(*run) for run in lacking]
            if not spans:
                continue
            harms = [self._hole_harms(key, *run) for run in lacking]
            errors = [one for one in harms if one[1] is Severity.ERROR]
            harm, severity = (errors or harms)[0]
            more = f" and {len(spans) - 1} more stretches" if len(spans) > 1 else ""
            self._reported.files.add(path)
            self._emit(
                Finding(
                    Code.QUEUE_FILE_LENGTH,
                    severity,
                    path,
                    None,
                    f"the file has {start - first} bytes, those of this store {size}: "
                    f"{key[0]} queue {key[1]}: {spans[0]}{more}: the records have no unit",
                    f"{harm}; a Java broker does not start with it",
                    f"{_REBUILD} -t {key[0]}",
                )
            )

    def _lacking(self, key: QueueKey, queue: Queue) -> OffsetRuns:
        """Queue offsets of records without a right unit, except those of reported files."""
        folder = f"{CONSUMEQUEUE}/{key[0]}/{key[1]}"
        known = OffsetRuns()
        for run in queue.runs.well:
            known.add(*run)
        for named, start, end in self._holes:
            if named == folder:
                known.add(start // CQ_STORE_UNIT_SIZE, -(-end // CQ_STORE_UNIT_SIZE))
        lacking = OffsetRuns()
        for start, end in queue.runs.present:
            for gap in known.missing(start, end):
                lacking.add(*gap)
        return lacking

    def _check_unclaimed(self, key: QueueKey, queue: Queue) -> None:
        first, files = self._first_in_range(queue), _of_files(queue.row)
        for start, end in _claimed(queue).missing(first, queue.next_offset):
            self._judge_run(key, queue.row, files, start, end)

    def _judge_run(
        self, key: QueueKey, row: ReadOnlyFiles | None, files: OffsetRuns, start: int, end: int
    ) -> None:
        gaps = OffsetRuns()
        for without in files.missing(start, end):
            gaps.add(*without)
        for numbers, units in _read_units(row, files, start, end):
            self._checked.units += len(units)
            gaps.add_all(self._judge_units(key, numbers, units))
        for gap in gaps:
            self._unclaimed(Code.QUEUE_GAP, key, *gap)

    def _judge_units(self, key: QueueKey, numbers: Longs, units: NDArray[Any]) -> Longs:
        """Report units that no record has claimed; gives the queue offsets without a unit."""
        offsets, sizes = units["offset"], units["size"]
        filler = sizes == PRE_BLANK_SIZE
        empty = (sizes <= 0) | (offsets < 0)
        outside = offsets < self._start
        past_end = offsets + sizes > self._log_end
        inside = ~empty & ~filler & ~outside & ~past_end
        inside[inside] &= ~self._reported.has(offsets[inside].astype(np.int64))
        astray = inside.copy()
        for row in np.flatnonzero(inside).tolist():
            astray[row] = self._is_record(int(offsets[row]), int(sizes[row]))
        lost = inside & ~astray & (offsets >= self._deletions.log_min())
        kinds = (
            (~empty & ~filler & ~outside & past_end, Code.UNIT_BEHIND_END),
            (astray, Code.UNIT_WRONG),
            (lost, Code.UNIT_WITHOUT_RECORD),
        )
        for rows, code in kinds:
            runs = OffsetRuns()
            runs.add_all(numbers[rows])
            for start, end in runs:
                if code is Code.UNIT_BEHIND_END:
                    self._past_end.append((key, start, end))
                else:
                    self._unclaimed(code, key, start, end)
        return numbers[empty]

    def _is_record(self, offset: int, size: int) -> bool:
        """Whether a whole record with the right offset lies in the log."""
        position = offset % self._files.log.file_size
        file = self._files.log.at(offset - position)
        if file is None:
            return False
        found = check_record(file.view, position, file.length, check_crc=False)
        whole = found.kind is CheckKind.MESSAGE and found.size == size
        return whole and bool(read_head(file.view, position).physical_offset == offset)

    def _unclaimed(self, code: Code, key: QueueKey, start: int, end: int) -> None:
        if code is Code.QUEUE_GAP:
            what, effect = "neither unit nor record", "the queue has a gap that consumers pass"
        elif code is Code.UNIT_WRONG:
            what = "the units point at records that say they are elsewhere"
            effect = "consumers pass them; nothing is lost"
        elif code is Code.UNIT_BEHIND_END:
            what = "the units point past the log's end"
            effect = "the messages do not exist; recovery cuts the units"
        else:
            what = "the log holds no whole record for the units"
            effect = "these messages cannot be read"
        severity = Severity.ERROR if code is Code.UNIT_WITHOUT_RECORD else Severity.WARNING
        self._report(code, key, (start, end), what, effect, severity)

    def _first_in_range(self, queue: Queue) -> int:
        """First queue offset whose unit points at or after where the check began."""
        if queue.row is None:
            return queue.next_offset
        files = queue.row.relist()
        low = files[0] // CQ_STORE_UNIT_SIZE if files else queue.next_offset
        claimed = [run[0] for runs in (queue.runs.well, queue.runs.present) for run in [*runs][:1]]
        high: int = min([*claimed, queue.next_offset])
        if self._start <= self._log_min:
            # Deleted messages come first; anything else before the first record is checked.
            while low < high:
                numbers = np.arange(low, min(high, low + _BLOCK_UNITS))
                units = units_at(queue.row, numbers)
                gone = (units["offset"] < self._log_min) & (units["size"] > 0)
                if not gone.all():
                    return low + int(gone.argmin())
                low += len(numbers)
        return high

    # -- inside -------------------------------------------------------------------------------

    def _report(
        self,
        code: Code,
        key: QueueKey,
        span: tuple[int, int],
        what: str,
        effect: str,
        severity: Severity = Severity.WARNING,
    ) -> None:
        start, end = max(span[0], self._deletions.units_gone_to(key)), span[1]
        if start >= end:
            return
        what = f"{key[0]} queue {key[1]}: {_span(start, end)}: {what}"
        row = self._files.queue(*key)
        byte = start * CQ_STORE_UNIT_SIZE
        within = byte % row.file_size if row is not None else 0
        path = f"{CONSUMEQUEUE}/{key[0]}/{key[1]}/{file_name(byte - within)}"
        fix = f"{_REBUILD} -t {key[0]}"
        finding = Finding(code, severity, path, within, what, effect, fix)
        if code is Code.UNIT_BEHIND_END:
            self.past_end.append(finding)
        else:
            self._emit(finding)


def _claimed(queue: Queue) -> OffsetRuns:
    """Queue offsets that a record claims, or that are reported."""
    found = OffsetRuns()
    for runs in (queue.runs.well, queue.runs.present, queue.damaged):
        for run in runs:
            found.add(*run)
    return found


def _of_files(row: ReadOnlyFiles | None) -> OffsetRuns:
    """Queue offsets for which a queue has files, as they were listed last."""
    found = OffsetRuns()
    if row is not None:
        each = row.file_size // CQ_STORE_UNIT_SIZE
        for first in row.offsets():
            number = first // CQ_STORE_UNIT_SIZE
            found.add(number, number + each)
    return found


def _read_units(
    row: ReadOnlyFiles | None, files: OffsetRuns, start: int, end: int
) -> Iterator[tuple[Longs, Any]]:
    """Units of [start, end) where there are files: a damaged queue offset can be anywhere."""
    for first, last in files.within(start, end):
        for offset in range(first, last, _BLOCK_UNITS):
            numbers = np.arange(offset, min(last, offset + _BLOCK_UNITS))
            yield numbers, units_at(row, numbers)


def _span(start: int, end: int) -> str:
    return f"offset {start}" if end == start + 1 else f"offsets {start} to {end - 1}"
