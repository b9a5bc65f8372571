"""Walking the log record by record, past damage where whole records follow.

RocketMQ's recovery ends the log at the first bytes that are no record. This walk goes on where
whole messages surely follow: after a record of which only the body is damaged; after bytes that
are no record, if a record follows that holds its own offset and is no older; and into the next
file, if it begins with such a record. So a lost blank record, or one bad byte, hides one message
at most. Bytes left over from an earlier, longer log are older than the log's end and are skipped.

RocketMQ ends a file at any blank magic code. A blank record holds the size of its file's rest. One
with another size is a damaged record if a whole one follows, or if it is whole but for that code.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.layout import (
    BLANK_MAGIC,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    MIN_RECORD_SIZE,
)
from storage.format.record import CheckKind, check_record, read_head, scan_records

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.format.check import RecordScan

_CHUNK_RECORDS: Final = 1 << 13
"""So few that they are still in the processor's cache when the caller reads them."""
_SEARCH_STEP: Final = 1 << 20
_MAGICS: Final = tuple(
    magic.to_bytes(4, "big", signed=True)
    for magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2, BLANK_MAGIC)
)


class StretchKind(Enum):
    """The kind of a stretch of the log."""

    RECORDS = auto()
    DAMAGED = auto()  # one record of known length that fails a check; whole records follow
    LOST = auto()  # bytes in which no record can be found; whole records follow
    BLANK = auto()  # the blank record and the rest of the file


class Segment(NamedTuple):
    """A piece of one log file: [``start``, ``end``) of the log; ``sizes`` sum to its length."""

    kind: StretchKind
    start: int
    sizes: MutableSequence[int]
    end: int
    reason: str = ""


class LogWalk:
    """One walk, from ``position`` on. ``position`` is the end of the last stretch that was given.

    ``limit`` None walks to the end of what is written; else no stretch ends after it.
    ``search_all`` searches the whole rest of a file for records after damage; without it some MiB,
    which is where the next record lies after a single damaged one. ``last_record`` is the offset of
    a record before ``position``, if one is known. No stretch that begins before ``until`` crosses
    it where a record begins there. ``as_broker``: any blank magic code ends its file, as in
    RocketMQ's recovery and dispatch.
    """

    def __init__(
        self,
        log: ReadOnlyFiles,
        position: int,
        *,
        limit: int | None = None,
        check_crc: bool = True,
        search_all: bool = False,
        last_record: int | None = None,
        until: int | None = None,
        as_broker: bool = False,
        max_record: int = (4 << 20) + (64 << 10),
    ) -> None:
        self.position = position
        self._log = log
        self._limit = limit
        self._check_crc = check_crc
        self._search_all = search_all
        self._window = log.file_size if search_all else 2 * max_record
        self.last_record = last_record
        """Offset of the last record that was given, also if its body is damaged."""
        self._until = until
        self._as_broker = as_broker
        self.stop_reason = ""
        """What lies at ``position`` after the end of the walk."""

    def next(self) -> Segment | None:
        """Give the next stretch, None at the end. May be called again when the log has grown."""
        if self._limit is not None and self.position >= self._limit:
            return None
        position = self.position % self._log.file_size
        first = self.position - position
        file = self._log.at(first)
        if file is None:
            return self._enter_next_file(first, position, "the file is missing")
        limit = file.length
        if self._limit is not None:
            limit = min(limit, self._limit - first)
        scan = self._scan_to(file.view, position, limit, first)
        if scan.sizes:
            self.last_record = first + scan.end - scan.sizes[-1]
            return self._give(StretchKind.RECORDS, scan.sizes, first + scan.end)
        if scan.stop is not None and scan.stop.kind is CheckKind.BLANK:
            return self._pass_blank(file, first, position, limit, scan.stop.size)
        reason = scan.stop.reason if scan.stop is not None else ""
        return self._pass_damage(file, first, position, limit, reason)

    def _scan_to(self, view: memoryview, position: int, limit: int, first: int) -> RecordScan:
        """Take the next whole records up to the border, if it lies before ``limit``."""
        border = limit if self._until is None else self._until - first
        if position < border < limit:
            scan = self._scan(view, position, border)
            if scan.sizes:
                return scan
            return scan_records(view, position, limit, check_crc=self._check_crc, max_count=1)
        return self._scan(view, position, limit)

    def _scan(self, view: memoryview, position: int, limit: int) -> RecordScan:
        """Take the next whole records, up to _CHUNK_RECORDS."""
        return scan_records(
            view, position, limit, check_crc=self._check_crc, max_count=_CHUNK_RECORDS
        )

    def _pass_blank(
        self, file: ReadMap, first: int, position: int, limit: int, size: int
    ) -> Segment:
        """Pass a blank record, or a damaged one that has its magic code."""
        remaining = self._log.file_size - position
        if size != remaining and not self._as_broker:
            end = self._search(file, first, position, limit)
            if end is None and self._is_record_but_for_magic(file, first, position, size):
                end = position + size
            if end is not None:
                reason = f"a blank record of {size} bytes that does not end the file"
                return self._pass(StretchKind.LOST, end - position, reason)
        return self._pass(StretchKind.BLANK, remaining)

    def _is_record_but_for_magic(self, file: ReadMap, first: int, position: int, size: int) -> bool:
        """Whether a whole record lies here, but for its magic code: the last one of a file or log
        has none after it."""
        if not MIN_RECORD_SIZE <= size <= file.length - position:
            return False
        record = bytearray(file.view[position : position + size])
        for magic in _MAGICS:
            record[4:8] = magic
            if check_record(record, 0, size).kind is CheckKind.MESSAGE:
                return read_head(record, 0).physical_offset == first + position
        return False

    # -- after damage ------------------------------------------------------------------------

    def _pass_damage(
        self, file: ReadMap, first: int, position: int, limit: int, reason: str
    ) -> Segment | None:
        view = file.view
        found = check_record(view, position, limit, check_crc=False)
        if found.kind is CheckKind.MESSAGE and self._goes_on(
            file, first, position + found.size, limit
        ):
            if check_record(view, position, limit, self._check_crc).kind is CheckKind.MESSAGE:
                return self.next()  # a writer has completed it meanwhile
            self.last_record = first + position
            return self._pass(StretchKind.DAMAGED, found.size, reason)
        end = self._search(file, first, position, limit)
        if end is not None:
            if check_record(view, position, limit, self._check_crc).kind is CheckKind.MESSAGE:
                return self.next()
            return self._pass(StretchKind.LOST, end - position, reason)
        return self._enter_next_file(first, position, reason)

    def _goes_on(self, file: ReadMap, first: int, position: int, limit: int) -> bool:
        """Whether a whole record that holds its own offset, or a right blank record, lies here."""
        found = check_record(file.view, position, limit)
        if found.kind is CheckKind.BLANK:
            return found.size == self._log.file_size - position
        if found.kind is not CheckKind.MESSAGE:
            return False
        head = read_head(file.view, position)
        return head.physical_offset == first + position and self._is_no_older(head.store_timestamp)

    def _search(self, file: ReadMap, first: int, position: int, limit: int) -> int | None:
        """Find where the log goes on after bytes that are no record, by magic codes."""
        if not self._search_all and not any(file.map[position : position + 8]):
            # Where nothing was written a search would read a file of zeros. A zeroed stretch
            # between records is passed by means of the queues (see scan_bounds).
            return None
        end = min(limit, position + self._window)
        start = position + 1
        while start < end:
            block = file.map[start : min(end, start + _SEARCH_STEP) + 3]
            places = sorted({place for magic in _MAGICS for place in _find_all(block, magic)})
            for place in places:
                candidate = start + place - 4
                if candidate > position and self._goes_on(file, first, candidate, limit):
                    return candidate
            start += _SEARCH_STEP
        return None

    def _enter_next_file(self, first: int, position: int, reason: str) -> Segment | None:
        """Go to the next existing file, if it begins with a record that can follow."""
        following = self._next_file(first)
        if following is None or not self._follows(following):
            self.stop_reason = reason
            return None
        return self._pass(StretchKind.LOST, following - first - position, reason)

    def _next_file(self, first: int) -> int | None:
        """Where the next file begins, or the walk's limit if that comes first."""
        following = first + self._log.file_size
        if self._limit is not None and following >= self._limit:
            return self._limit
        if self._log.at(following) is not None:
            return following
        return next((offset for offset in self._log.relist() if offset > first), None)

    def _follows(self, following: int) -> bool:
        """Whether the file that begins at ``following`` begins with a record."""
        if following == self._limit:
            return True
        file = self._log.at(following)
        return file is not None and self._goes_on(file, following, 0, file.length)

    def _is_no_older(self, timestamp: int) -> bool:
        """Whether a record may follow the last one that was given, by its time."""
        if self.last_record is None:
            return True
        position = self.last_record % self._log.file_size
        file = self._log.at(self.last_record - position)
        return file is None or timestamp >= read_head(file.view, position).store_timestamp

    def _pass(self, kind: StretchKind, size: int, reason: str = "") -> Segment:
        return self._give(kind, [size], self.position + size, reason)

    def _give(
        self, kind: StretchKind, sizes: MutableSequence[int], end: int, reason: str = ""
    ) -> Segment:
        stretch = Segment(kind, self.position, sizes, end, reason)
        self.position = end
        return stretch


def _find_all(block: bytes, pattern: bytes) -> list[int]:
    found = []
    at = block.find(pattern)
    while at >= 0:
        found.append(at)
        at = block.find(pattern, at + 1)
    return found
