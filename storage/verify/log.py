"""Checking the log: every record whole, in its place, one behind the other to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.format.layout import BLANK_SIZE, TWO_INTS
from storage.format.names import COMMITLOG, file_name, parse_file_name
from storage.format.record import CheckKind, RecordError, check_record, decode_record, read_head
from storage.reading.log_walk import LogWalk, Stretch, StretchKind

from .findings import Checked, Code, Finding, Severity
from .records import RecordBlock, TopicNames, read_block

if TYPE_CHECKING:
    from storage.files.read_files import FileRow
    from storage.model import MessageExt

Emit = Callable[[Finding], None]

_TAIL_BYTES: Final = 1 << 16
_MAX_EXAMPLES: Final = 8


class LogCheck:
    """Walks the log from ``start`` to ``log_end`` and gives its records in blocks.

    ``damaged`` is called with each damaged record whose head can still be read.
    """

    def __init__(
        self,
        log: FileRow,
        topics: TopicNames,
        emit: Emit,
        checked: Checked,
        *,
        start: int,
        log_end: int,
        check_crc: bool,
        damaged: Callable[[MessageExt], None],
    ) -> None:
        self._log = log
        self._topics = topics
        self._emit = emit
        self._checked = checked
        self._log_end = log_end
        self.start = start
        """Commit log offset that the walk begins at."""
        self._check_crc = check_crc
        self._damaged = damaged
        self._last_timestamp = 0
        self._back_steps = 0
        self.last_store_timestamp = 0
        """Store time of the newest record seen (ms)."""
        self.first_store_timestamp = 0

    def blocks(self) -> Iterator[RecordBlock]:
        """Give all whole records in log order; emits findings on the way."""
        start = self.start
        while start < self._log_end:
            walk = LogWalk(
                self._log,
                start,
                limit=self._log_end,
                check_crc=self._check_crc,
                search_all=True,
            )
            while (stretch := walk.next()) is not None:
                if stretch.kind is StretchKind.RECORDS:
                    yield self._records(stretch)
                else:
                    self._not_records(stretch)
            start = walk.position
            if start < self._log_end:  # nothing follows that the walk could go on with
                file_size = self._log.file_size
                behind = min(self._log_end, start - start % file_size + file_size)
                self._lost(start, behind - start, walk.stop_reason)
                start = behind
        if self._back_steps:
            self._emit(
                Finding(
                    Code.STORE_TIME_BACK,
                    Severity.INFO,
                    COMMITLOG,
                    None,
                    f"store times go back {self._back_steps} times",
                    "searching by time may land beside the right message there",
                    "",
                )
            )

    def _records(self, stretch: Stretch) -> RecordBlock:
        file_size = self._log.file_size
        first = stretch.start - stretch.start % file_size
        file = self._log.at(first)
        assert file is not None  # the walk has just read it
        block = read_block(file, first, stretch.start, stretch.sizes, self._topics)
        self._checked.records += len(block)
        for row in np.flatnonzero(block.physical_offset != block.offset)[:_MAX_EXAMPLES].tolist():
            self._at_record(
                Code.RECORD_MISPLACED,
                int(block.offset[row]),
                f"the record says it lies at {block.physical_offset[row]}",
                "it is not handed out, and a Java broker rebuilds its unit to the wrong place",
                "rmqctl store repair",
            )
        for row, text in enumerate(block.properties):
            if text[-1:] == b"\0" or not (text.isascii() or _is_utf8(text)):
                self._at_record(
                    Code.PROPERTIES_DAMAGED,
                    int(block.offset[row]),
                    "its properties end in zero bytes or are not UTF-8; no checksum covers them",
                    "tags, keys or other properties of this message are wrong",
                    "",
                )
        times = block.store_timestamp
        steps = np.diff(times, prepend=self._last_timestamp)
        self._back_steps += int((steps < 0).sum())
        self._last_timestamp = int(times[-1])
        self.first_store_timestamp = self.first_store_timestamp or int(times[0])
        self.last_store_timestamp = max(self.last_store_timestamp, int(times.max()))
        return block

    def _not_records(self, stretch: Stretch) -> None:
        if stretch.kind is StretchKind.DAMAGED:
            self._damaged_record(stretch)
        elif stretch.kind is StretchKind.LOST:
            self._lost(stretch.start, stretch.sizes[0], stretch.reason)
        else:
            self._blank(stretch)

    def _damaged_record(self, stretch: Stretch) -> None:
        position = stretch.start % self._log.file_size
        file = self._log.at(stretch.start - position)
        what = stretch.reason
        if file is not None:
            try:
                message = decode_record(file.view, position, stretch.sizes[0])
            except RecordError:
                pass
            else:
                self._damaged(message)
                queue = f"{message.topic} queue {message.queue_id}"
                what = f"{queue} offset {message.queue_offset}: {what}"
        self._at_record(
            Code.RECORD_DAMAGED,
            stretch.start,
            what,
            "this message is never handed out; a Java broker that recovers cuts the log here",
            "restore the file from a copy, or rmqctl store repair",
        )

    def _blank(self, stretch: Stretch) -> None:
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
        if file is not None and at_end and not any(file.map[position:]):
            self._at_record(
                Code.BLANK_MISSING,
                start,
                f"the file ends without its blank record ({length} bytes are zero)",
                "a Java broker that recovers ends the log here and deletes all later files",
                "rmqctl store repair",
                Severity.WARNING,
            )
            return
        missing = file is None
        self._at_record(
            Code.LOG_FILE_MISSING if missing else Code.LOG_BYTES_LOST,
            start,
            "the file is missing" if missing else f"{length} bytes are no records: {reason}",
            "messages that were here are lost; a Java broker ends the log here",
            "restore the file from a copy, or rmqctl store repair",
        )

    # -- behind the end -----------------------------------------------------------------------

    def behind_end(self, emit: Emit, *, closed: bool) -> None:
        """Look at what lies behind the log's end; means nothing while somebody is writing.

        ``closed``: the store was closed cleanly, so nothing should be there.
        """
        self._emit = emit
        file_size = self._log.file_size
        position = self._log_end % file_size
        first = self._log_end - position
        file = self._log.at(first)
        if file is not None and position and any(file.map[position : position + _TAIL_BYTES]):
            found = check_record(file.view, position, file.length)
            if found.kind is not CheckKind.BLANK:
                self._at_record(
                    Code.LOG_TORN_TAIL,
                    self._log_end,
                    f"behind the last whole record: {found.reason or 'left-over bytes'}",
                    "a message that was being written here is lost; recovery cuts it off",
                    "opening the store for writing recovers it",
                    Severity.ERROR if closed else Severity.WARNING,
                )
        for later in self._log.relist():
            if later < self._log_end or (later == first and position):
                continue
            file = self._log.at(later)
            if file is None:
                continue
            if any(file.map[:_TAIL_BYTES]):
                self._at_record(
                    Code.LOG_BEHIND_END,
                    later,
                    "a file behind the log's end holds bytes",
                    "recovery leaves them out; a Java broker deletes the file",
                    "opening the store for writing sets it aside",
                    Severity.ERROR
                    if closed and self._begins_with_record(later)
                    else Severity.WARNING,
                )
            else:
                self._at_record(
                    Code.LOG_FILE_AHEAD,
                    later,
                    "an empty file made ahead, as a running or killed Java broker has",
                    "none",
                    "",
                    Severity.INFO,
                )

    def _begins_with_record(self, first: int) -> bool:
        file = self._log.at(first)
        if file is None or check_record(file.view, 0, file.length).kind is not CheckKind.MESSAGE:
            return False
        return read_head(file.view, 0).physical_offset == first

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
        path = f"{COMMITLOG}/{file_name(offset - position)}"
        self._emit(Finding(code, severity, path, position, what, effect, fix))


def is_log_name(name: str, file_size: int) -> bool:
    """Tell whether a name in the log's folder can be one of its files."""
    offset = parse_file_name(name)
    return offset is not None and offset % file_size == 0


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
