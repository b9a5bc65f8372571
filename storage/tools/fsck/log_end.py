"""Checking what lies past the log's end; the results are valid only while no process writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storage.format.names import COMMITLOG, file_name
from storage.format.record import CheckKind, check_record, read_head

from .findings import Code, Finding, Severity
from .reported import Reported

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

Emit = Callable[[Finding], None]

_TAIL_BYTES: Final = 1 << 16


class LogEndCheck:
    """Checks the rest of the log's last file and the files after it.

    ``closed``: the store was closed cleanly, so nothing should be there. A finding that names the
    log's end, and files whose length is reported with it, are noted in ``reported``.
    """

    def __init__(
        self, log: ReadOnlyFiles, log_end: int, emit: Emit, reported: Reported, *, closed: bool
    ) -> None:
        self._log = log
        self._log_end = log_end
        self._emit = emit
        self._reported = reported
        self._closed = closed

    def look(self, finished_to: int) -> None:
        """Report what lies there; records up to ``finished_to`` will be taken in."""
        position = self._log_end % self._log.file_size
        first = self._log_end - position
        if finished_to > self._log_end:
            self._not_taken_in(finished_to)
            position = finished_to - first
        if position:
            self._rest(first, position)
        for later in self._log.relist():
            if later > first or (later == first and not position):
                self._later(later)

    def _rest(self, first: int, position: int) -> None:
        """Check the bytes after the last record in its file."""
        file = self._log.at(first)
        if file is None or not any(file.map[position : position + _TAIL_BYTES]):
            return
        found = check_record(file.view, position, file.length)
        if found.kind is CheckKind.BLANK:
            return
        self._reported.tail = True
        size = self._log.file_size
        what = f"after the last whole record: {found.reason or 'left-over bytes'}"
        code = Code.LOG_TORN_TAIL
        effect = "a message that was being written here is lost; recovery cuts it off"
        fix = "rmqctl store repair, or open the store for writing: that recovers it"
        if file.length < size:
            self._reported.files.add(_path(first))
            code = Code.LOG_FILE_LENGTH
            what = f"the file has {file.length} bytes, those of this store {size}; {what}"
            effect = "messages from here on are lost; brokers refuse to open the file"
            fix = "restore the file from a copy, or rmqctl store repair"
        severity = Severity.ERROR if self._closed else Severity.WARNING
        self._tell(code, first + position, what, effect, fix, severity)

    def _later(self, first: int) -> None:
        """Check one of the files after the one with the last record."""
        file = self._log.at(first)
        if file is None:
            return
        if not any(file.map[:_TAIL_BYTES]):
            self._tell(
                Code.LOG_FILE_AHEAD,
                first,
                "an empty file made ahead, as a running or killed Java broker has",
                "none",
                "",
                Severity.INFO,
            )
            return
        surely = self._closed and self._begins_with_record(first)
        # Where the log's end itself is damaged, findings of queues and index say more.
        self._reported.tail |= surely or first > self._log_end
        self._tell(
            Code.LOG_BEHIND_END,
            first,
            "a file past the log's end holds bytes",
            "recovery leaves them out; a Java broker deletes the file",
            "rmqctl store repair, or open the store for writing: that sets it aside",
            Severity.ERROR if surely else Severity.WARNING,
        )

    def _not_taken_in(self, end: int) -> None:
        self._reported.tail = True
        self._tell(
            Code.LOG_NOT_TAKEN_IN,
            self._log_end,
            f"{end - self._log_end} bytes of whole records past the known end",
            "no reader sees them yet, and none was acknowledged",
            "open the store for writing: that takes them in",
            Severity.INFO,
        )

    def _begins_with_record(self, first: int) -> bool:
        file = self._log.at(first)
        if file is None or check_record(file.view, 0, file.length).kind is not CheckKind.MESSAGE:
            return False
        return read_head(file.view, 0).physical_offset == first

    def _tell(
        self, code: Code, offset: int, what: str, effect: str, fix: str, severity: Severity
    ) -> None:
        position = offset % self._log.file_size
        path = _path(offset - position)
        self._emit(Finding(code, severity, path, position, what, effect, fix))


def _path(first: int) -> str:
    return f"{COMMITLOG}/{file_name(first)}"
