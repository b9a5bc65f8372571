"""Checking the log: every record whole, in its place, in sequence to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.counted import counted
from storage.format.layout import BLANK_SIZE, TWO_INTS
from storage.format.names import COMMITLOG, file_name
from storage.format.record import RecordError, decode_record
from storage.log.walk import LogWalk, Segment, StretchKind
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import RecordBatch, read_block

from .bodies import empty_bodies, packed_rows, unreadable_body
from .deletions import Deletions
from .findings import Checked, Code, Finding, Severity
from .log_part import LogPart
from .reported import Reported
from .unconfirmed import Mask, damaged_properties, replaced_records

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

Emit = Callable[[Finding], None]

_MAX_EXAMPLES: Final = 8
_BACK: Final = "a search by time may give a wrong message there"


class LogCheck:
    """Walks the log from ``start`` to ``log_end`` and gives its records in blocks.

    Places that a finding names are noted in ``reported``; None if findings are dropped. Files that
    ``deletions`` knows of are passed without a finding. The walk may go on where a walk through
    another part has ended (:meth:`absorb`).
    """

    def __init__(
        self,
        log: ReadOnlyFiles,
        topics: TopicNames,
        emit: Emit,
        checked: Checked,
        *,
        start: int,
        log_end: int,
        check_crc: bool,
        reported: Reported | None,
        deletions: Deletions,
    ) -> None:
        self._log = log
        self._deletions = deletions
        self._topics = topics
        self._emit = self.emit = emit
        self._checked = checked
        self._log_end = log_end
        self.start = start
        """Commit log offset that the walk begins at."""
        self.position = start
        """The log offset up to which was walked."""
        self._last_record: int | None = None
        self._check_crc = check_crc
        self._reported = reported or Reported()
        self._misplaced = (0, 0, 0, 0)  # first and end of a run, how far off, how many
        self._has_misplaced = False
        self._begins_well: bool | None = None
        self._first_timestamp = 0
        self._records_seen = 0
        self._last_timestamp = 0
        self._back_steps = 0
        self.last_store_timestamp = 0
        """Store time of the newest record (ms)."""
        self._replaced: list[int] = []
        self._empty: list[int] = []

    def another(self, start: int, emit: Emit, reported: Reported) -> LogCheck:
        """A walk through the same log that begins elsewhere, for a part of it."""
        return LogCheck(
            self._log,
            self._topics,
            emit,
            Checked(),
            start=start,
            log_end=self._log_end,
            check_crc=self._check_crc,
            reported=reported,
            deletions=self._deletions,
        )

    def blocks(self, until: int) -> Iterator[tuple[RecordBatch, Mask]]:
        """Give whole records in log order and those of them whose tags and keys are unknown; emits
        findings on the way.

        Ends at ``until`` where a record begins there, else after the record that covers it.
        """
        while self.position < until:
            walk = LogWalk(
                self._log,
                self.position,
                limit=self._log_end,
                check_crc=self._check_crc,
                search_all=True,
                last_record=self._last_record,
                until=until,
            )
            while walk.position < until and (stretch := walk.next()) is not None:
                whole = stretch.kind is StretchKind.RECORDS
                if self._begins_well is None:
                    self._begins_well = whole
                if whole:
                    block, unsure = self._records(stretch)
                    self.position, self._last_record = walk.position, walk.last_record
                    if len(block):
                        yield block, unsure
                else:
                    self._not_records(stretch)
            self.position, self._last_record = walk.position, walk.last_record
            if self.position < until:  # no record follows that the walk could go on with
                start, file_size = self.position, self._log.file_size
                past_end = min(self._log_end, start - start % file_size + file_size)
                self._lost(start, past_end - start, walk.stop_reason)
                self.position, self._last_record = past_end, None

    def part(self) -> LogPart:
        """The results from ``start`` up to here, for the walk through the part before."""
        return LogPart(
            start=self.start,
            end=self.position,
            last_record=self._last_record,
            reported=self._reported,
            records=self._checked.records,
            begins_well=bool(self._begins_well) and self._records_seen > 0,
            first_timestamp=self._first_timestamp,
            last_timestamp=self._last_timestamp,
            newest_timestamp=self.last_store_timestamp,
            back_steps=self._back_steps,
            misplaced=self._misplaced,
            has_misplaced=self._has_misplaced,
            replaced=self._replaced,
            empty=self._empty,
        )

    def absorb(self, part: LogPart) -> bool:
        """Add a part that another walk has checked.

        False, with nothing changed, where this walk might have found something else in it: where it
        does not reach the part's beginning, or findings of both may be one. A walk that has not
        begun takes every part that begins where it does.
        """
        if part.start != self.position:
            return False
        if self.position == self.start:
            self._take(part)
            return True
        if not part.begins_well:
            return False
        if part.first_timestamp < self._last_timestamp or part.first_timestamp < 0:
            return False
        if part.back_steps and self._back_steps + part.back_steps > _MAX_EXAMPLES:
            return False
        if self._misplaced[3] and part.has_misplaced:
            return False
        self._take(part)
        return True

    def _take(self, part: LogPart) -> None:
        self.position, self._last_record = part.end, part.last_record
        self._reported.absorb(part.reported)
        self._checked.records += part.records
        self._last_timestamp = part.last_timestamp
        self.last_store_timestamp = max(self.last_store_timestamp, part.newest_timestamp)
        self._back_steps += part.back_steps
        if part.has_misplaced:
            self._misplaced, self._has_misplaced = part.misplaced, True
        self._replaced += part.replaced
        self._empty += part.empty

    def finish(self) -> None:
        """Report what is only known after the whole walk."""
        self._end_misplaced()
        if self._replaced:
            count = len(self._replaced)
            self._at_record(
                Code.RECORD_REPLACED,
                self._replaced[0],
                f"{count} records of zeros stand where damaged ones were"
                if count > 1
                else "a record of zeros stands where a damaged one was",
                "rmqctl passes over them, a Java broker delivers the zeros",
                "",
                Severity.INFO,
            )
        if self._empty:
            count = len(self._empty)
            self._at_record(
                Code.BODY_EMPTY,
                self._empty[0],
                f"{count} messages from here on have empty bodies"
                if count > 1
                else "the message has an empty body",
                "RocketMQ's consumers fail at such a message: what they pull with it never reaches "
                "a listener, and the progress of their groups stays there until it is moved",
                "",
                Severity.WARNING,
            )
        if self._back_steps > _MAX_EXAMPLES:
            self._emit(
                Finding(
                    Code.STORE_TIME_BACK,
                    Severity.INFO,
                    COMMITLOG,
                    None,
                    f"store times go back {self._back_steps} times in all",
                    _BACK,
                    "",
                )
            )

    def _records(self, stretch: Segment) -> tuple[RecordBatch, Mask]:
        position = stretch.start % self._log.file_size
        first = stretch.start - position
        file = self._log.at(first)
        assert file is not None  # the walk has just read it
        block = read_block(file.view, first, position, stretch.sizes, self._topics)
        self._checked.records += len(block)
        offset = block.offset
        misplaced = block.physical_offset != offset
        if misplaced.any():
            for row in np.flatnonzero(misplaced).tolist():
                claimed = int(block.physical_offset[row])
                self._misplaced_record(int(offset[row]), int(block.size[row]), claimed)
            block = block.take(np.flatnonzero(~misplaced))
        replaced = replaced_records(block)
        damaged = damaged_properties(block)
        if not len(block):
            return block, replaced
        for row in np.flatnonzero(damaged).tolist():
            self._at_record(
                Code.PROPERTIES_DAMAGED,
                int(block.offset[row]),
                "its properties end in zero bytes or are not UTF-8; no checksum covers them",
                "tags, keys or other properties of this message are wrong",
                "rmqctl store repair",
            )
        if replaced.any():
            self._replaced += block.offset[replaced].tolist()
        self._look_at_bodies(file.view, block, replaced)
        self._look_at_times(block)
        self._records_seen += len(block)
        return block, replaced | damaged

    def _look_at_bodies(self, view: memoryview, block: RecordBatch, replaced: Mask) -> None:
        empty = empty_bodies(view, block) & ~replaced
        if empty.any():
            self._empty += block.offset[empty].tolist()
        for row in packed_rows(block):
            what = unreadable_body(view, int(block.place[row]), int(block.size[row]))
            if what is not None and not replaced[row]:
                self._at_record(
                    Code.BODY_UNREADABLE,
                    int(block.offset[row]),
                    what,
                    "readers leave it out, groups make a dead letter of it",
                    "",
                    Severity.WARNING,
                )

    def _look_at_times(self, block: RecordBatch) -> None:
        times = block.store_timestamp
        before = np.concatenate(([self._last_timestamp], times[:-1]))
        for row in np.flatnonzero(times < before).tolist():
            self._back_steps += 1
            if self._back_steps <= _MAX_EXAMPLES:
                self._reported.odd_times.add(int(block.offset[row]))
                self._at_record(
                    Code.STORE_TIME_BACK,
                    int(block.offset[row]),
                    f"the store time goes back from {before[row]} to {times[row]}",
                    _BACK,
                    "",
                    Severity.INFO,
                )
        self._last_timestamp = int(times[-1])
        if not self._records_seen:
            self._first_timestamp = int(times[0])
        self.last_store_timestamp = max(self.last_store_timestamp, int(times.max()))

    def _misplaced_record(self, offset: int, size: int, claimed: int) -> None:
        """Note a record that names another place; neighbours at the same distance are one
        finding."""
        self._has_misplaced = True
        self._reported.add(offset, offset + size)
        first, end, off, count = self._misplaced
        same_file = first // self._log.file_size == offset // self._log.file_size
        if count and (end, off) == (offset, claimed - offset) and same_file:
            self._misplaced = (first, offset + size, off, count + 1)
        else:
            self._end_misplaced()
            self._misplaced = (offset, offset + size, claimed - offset, 1)

    def _end_misplaced(self) -> None:
        first, _, off, count = self._misplaced
        self._misplaced = (0, 0, 0, 0)
        if count:
            several = f"{count} records from here on say they lie"
            self._at_record(
                Code.RECORD_MISPLACED,
                first,
                f"{several if count > 1 else 'the record says it lies'} at {first + off}",
                "it is not handed out, and a Java broker rebuilds its unit to the wrong place",
                "rmqctl store repair",
            )

    def _not_records(self, stretch: Segment) -> None:
        if stretch.kind is StretchKind.DAMAGED:
            self._damaged_record(stretch)
        elif stretch.kind is StretchKind.LOST:
            self._lost(stretch.start, stretch.sizes[0], stretch.reason)
        else:
            self._blank(stretch)

    def _damaged_record(self, stretch: Segment) -> None:
        position = stretch.start % self._log.file_size
        file = self._log.at(stretch.start - position)
        what = stretch.reason
        self._reported.add(stretch.start, stretch.start + stretch.sizes[0])
        if file is not None:
            try:
                message = decode_record(file.view, position, stretch.sizes[0])
            except RecordError:
                pass
            else:
                queue = f"{message.topic} queue {message.queue_id}"
                what = f"{queue} offset {message.queue_offset}: {what}"
        self._at_record(
            Code.RECORD_DAMAGED,
            stretch.start,
            what,
            "this message is never handed out; a Java broker that recovers cuts the log here",
            "restore the file from a copy, or rmqctl store repair",
        )

    def _blank(self, stretch: Segment) -> None:
        if self._misplaced[1] == stretch.start:  # all of the file is another one
            self._reported.add(stretch.start, stretch.start + stretch.sizes[0])
        position = stretch.start % self._log.file_size
        file = self._log.at(stretch.start - position)
        if file is None or position + BLANK_SIZE > file.length:
            return
        claimed = TWO_INTS.unpack_from(file.view, position)[0]
        remaining = self._log.file_size - position
        if claimed != remaining:
            self._at_record(
                Code.BLANK_WRONG,
                stretch.start,
                f"the blank record says {claimed} bytes are left, there are {remaining}",
                "none for readers",
                "rmqctl store repair",
                Severity.WARNING,
            )

    def _lost(self, start: int, length: int, reason: str) -> None:
        file_size = self._log.file_size
        position = start % file_size
        file = self._log.at(start - position)
        at_end = position + length == file_size
        if file is not None and at_end and not np.frombuffer(file.view[position:], np.uint8).any():
            self._at_record(
                Code.BLANK_MISSING,
                start,
                f"the file ends without its blank record ({length} bytes are zero)",
                "a Java broker that recovers ends the log here and deletes all later files",
                "rmqctl store repair",
                Severity.WARNING,
            )
            return
        self._reported.add(start, start + length)  # units and keys of deleted records, too
        if file is None:
            there = min(max(start, self._deletions.log_min()), start + length)
            start, length = there, start + length - there
            if not length:
                return
        code, what = Code.LOG_BYTES_LOST, f"{length} bytes are no records: {reason}"
        if file is None:
            position = start % file_size
            code, what = Code.LOG_FILE_MISSING, self._absence(start - position)
            if length > file_size:
                what = f"{counted(length // file_size, 'file')} from here on missing"
        elif file.length < file_size and at_end:
            code, what = (
                Code.LOG_FILE_LENGTH,
                f"the file has {file.length} bytes, those of this store {file_size}; "
                "what came after is lost",
            )
        self._reported.files.add(self._path(start - position))
        self._at_record(
            code,
            start,
            what,
            "messages that were here are lost; a Java broker ends the log here",
            "restore the file from a copy, or rmqctl store repair",
        )

    def _absence(self, first: int) -> str:
        there = Path(self._log.path(first)).is_file()
        return "the file has 0 bytes" if there else "the file is missing"

    def _at_record(
        self,
        code: Code,
        offset: int,
        what: str,
        effect: str,
        fix: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        position = offset % self._log.file_size
        path = self._path(offset - position)
        self._emit(Finding(code, severity, path, position, what, effect, fix))

    def _path(self, first: int) -> str:
        return f"{COMMITLOG}/{file_name(first)}"
