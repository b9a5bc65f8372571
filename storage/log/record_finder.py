"""From a byte of the log to the record that holds it.

A search of the log as plain bytes finds positions, not messages. Magic codes mark records, but
bodies may hold anything, another record too. So a candidate counts only if it is whole, holds its
own offset, and either its unit in the queue names it or it begins at the end of a known record.
Where that does not decide, the log is walked from a known offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.layout import (
    BLANK_MAGIC,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    MIN_RECORD_SIZE,
    TWO_INTS,
)
from storage.format.record import CheckKind, check_record, decode_record
from storage.format.tombstone import is_replaced

from .record_reader import UNUSUAL, read_at
from .walk import LogWalk, Segment, StretchKind

if TYPE_CHECKING:
    from mmap import mmap

    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.format.message import MessageExt

_MAGICS: Final = tuple(
    magic.to_bytes(4, "big", signed=True) for magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
)
_MAGIC_AT: Final = 4
_TRIES: Final = 32
"""Candidates without a unit that are passed before the log is walked instead."""

UnitOf = Callable[[str, int, int], tuple[int, int, int] | None]


class FoundRecord(NamedTuple):
    """A piece of the log from ``start`` on; without a message it is damaged, unless ``replaced``:
    a repair has put a tombstone there."""

    start: int
    size: int
    message: MessageExt | None
    replaced: bool = False

    @property
    def end(self) -> int:
        """Commit log offset of the end of the piece."""
        return self.start + self.size


class RecordFinder:
    """Finds records around bytes, quickest in ascending order. For one thread.

    ``end`` is the log's end, ``unit_of`` gives the unit of topic, queue id and queue offset.
    """

    def __init__(self, log: ReadOnlyFiles, end: int, unit_of: UnitOf, max_record: int) -> None:
        self._log = log
        self._end = end
        self._unit_of = unit_of
        self._max_record = max_record
        self._last: FoundRecord | None = None
        self._known = -1  # end of the last certain record; a record or a rest begins here
        self._stretch = Segment(StretchKind.BLANK, -1, [], -1)
        self._ends: list[int] = []

    def containing(self, offset: int) -> FoundRecord | None:
        """The record that holds the byte at ``offset``; None where none does: a file's rest."""
        last = self._last
        if last is not None and last.start <= offset < last.end:
            return last
        first = offset - offset % self._log.file_size
        file = self._log.at(first) if 0 <= offset < self._end else None
        if file is None:
            return None
        if not self._stretch.start <= offset < self._known_end():
            certain = self._following(file, first, offset)
            if certain is not None:
                certain = self._without_others(file, first, certain, offset)
            else:
                certain = self._certain_before(file, first, offset)
            if certain is not None:
                self._known = certain.end
                if offset < certain.end:
                    self._last = certain
                    return certain
        found = self._walked(file, first, offset)
        if found is not None:
            found = self._without_others(file, first, found, offset)
            self._last, self._known = found, found.end
        return found

    def records(self, start: int, end: int) -> Iterator[FoundRecord]:
        """All records that begin in a part of one log file, in order; damaged ones too."""
        for stretch in self.stretches(start, end):
            yield from self.records_of(stretch, end)

    def stretches(self, start: int, end: int) -> Iterator[Segment]:
        """The same as stretches of the log, the last of which may go on after ``end``."""
        found = self.containing(start)
        if found is None:
            return
        position = start if found.start == start else found.end
        walk = self._walk(position)
        while walk.position < end and (stretch := walk.next()) is not None:
            yield stretch

    # -- by magic codes -----------------------------------------------------------------------

    def _following(self, file: ReadMap, first: int, offset: int) -> FoundRecord | None:
        """The record after the last certain one, if that is long enough to hold the byte."""
        known = self._known
        if not first <= known <= offset or known + MIN_RECORD_SIZE > first + file.length:
            return None
        size, magic = TWO_INTS.unpack_from(file.view, known - first)
        if known + size <= offset or magic == BLANK_MAGIC:
            return None
        return self._at(file, first, known - first)

    def _certain_before(self, file: ReadMap, first: int, offset: int) -> FoundRecord | None:
        """The nearest certain record that begins at or before ``offset``."""
        position = offset - first
        least = max(0, position - self._max_record)
        before = position + _MAGIC_AT + len(_MAGICS[0])
        for _ in range(_TRIES):
            at = _last_magic(file.map, least, before)
            if at < 0:
                return None
            found = self._at(file, first, at - _MAGIC_AT) if at >= _MAGIC_AT else None
            if found is not None and found.message is not None and self._is_certain(found):
                return found
            before = at + len(_MAGICS[0]) - 1
        return None

    def _is_certain(self, found: FoundRecord) -> bool:
        return found.start == self._known or self._has_unit(found)

    def _has_unit(self, found: FoundRecord) -> bool:
        """Whether the unit that its message names is that of this very record."""
        message = found.message
        if message is None:
            return False
        unit = self._unit_of(message.topic, message.queue_id, message.queue_offset)
        return unit is not None and unit[:2] == (found.start, found.size)

    def _without_others(
        self, file: ReadMap, first: int, found: FoundRecord, offset: int
    ) -> FoundRecord:
        """What holds the byte at ``offset`` if ``found`` claims other records.

        A size that is too large does so: no checksum covers it. A record that its unit names counts
        more than one that no unit names, which is damaged then, and ends where that begins.
        """
        if found.message is None or self._has_unit(found):
            return found
        others = self._named_inside(file, first, found)
        start = next(others, None)
        if start is None:
            return found
        if offset < start.start:
            return FoundRecord(found.start, start.start - found.start, None)
        for other in chain((start,), others):
            if other.start <= offset < other.end:
                return other
        return FoundRecord(start.end, found.end - start.end, None)

    def _named_inside(self, file: ReadMap, first: int, found: FoundRecord) -> Iterator[FoundRecord]:
        """The records that begin inside of ``found`` and that units name, in order."""
        at, end = found.start - first + MIN_RECORD_SIZE, found.end - first
        while (at := _next_magic(file.map, at + _MAGIC_AT, end)) >= 0:
            inner = self._at(file, first, at - _MAGIC_AT)
            if inner is not None and self._has_unit(inner):
                yield inner
                at = inner.end - first

    def _at(self, file: ReadMap, first: int, position: int) -> FoundRecord | None:
        """The whole record that begins here and holds its own offset."""
        limit = min(file.length, self._end - first)
        start = first + position
        message: MessageExt | None = read_at(file.view, position, limit, start, UNUSUAL)
        if message is not None:
            return _found(start, message.store_size, message)
        check = check_record(file.view, position, limit)
        if check.kind is not CheckKind.MESSAGE:
            return None
        message = decode_record(file.map[position : position + check.size])
        if message.commitlog_offset != start:
            return None
        return _found(start, check.size, message)

    # -- by walking ---------------------------------------------------------------------------

    def _walk(self, position: int) -> LogWalk:
        return LogWalk(
            self._log, position, limit=self._end, search_all=True, max_record=self._max_record
        )

    def _known_end(self) -> int:
        return self._ends[-1] if self._ends else -1

    def _walked(self, file: ReadMap, first: int, offset: int) -> FoundRecord | None:
        """The same by following records from the last known offset."""
        if not self._stretch.start <= offset < self._known_end():
            walk = self._walk(self._known if first <= self._known <= offset else first)
            while (stretch := walk.next()) is not None and walk.position <= offset:
                pass
            if stretch is None:
                return None
            self._stretch = stretch
            self._ends = list(accumulate(stretch.sizes, initial=stretch.start))
        stretch = self._stretch
        if stretch.kind is StretchKind.BLANK:
            return None
        number = bisect_right(self._ends, offset) - 1
        start, size = self._ends[number], stretch.sizes[number]
        if stretch.kind is not StretchKind.RECORDS:
            return FoundRecord(start, size, None)
        return self._at(file, first, start - first) or FoundRecord(start, size, None)

    def records_of(self, stretch: Segment, end: int) -> Iterator[FoundRecord]:
        """The records of a stretch that begin before ``end``."""
        if stretch.kind is StretchKind.BLANK:
            return
        start = stretch.start
        file = self._log.at(start - start % self._log.file_size)
        position = start % self._log.file_size
        for size in stretch.sizes:
            if start >= end:
                return
            found = FoundRecord(start, size, None)
            if stretch.kind is StretchKind.RECORDS and file is not None:
                message = decode_record(file.map[position : position + size])
                if message.commitlog_offset == start:
                    found = _found(start, size, message)
            yield found
            start += size
            position += size


def _found(start: int, size: int, message: MessageExt) -> FoundRecord:
    """The record of a message, unless that is not what was stored here: a tombstone, or a damaged
    head without a body, for which RocketMQ checks no checksum."""
    if not message.stored_body and message.body_crc:
        return FoundRecord(start, size, None)
    if is_replaced(message.sys_flag, message.stored_body):
        return FoundRecord(start, size, None, replaced=True)
    return FoundRecord(start, size, message)


def _next_magic(data: mmap, start: int, end: int) -> int:
    """Where the first magic code between two positions begins, -1 without any."""
    places = [data.find(magic, start, end) for magic in _MAGICS]
    return min((at for at in places if at >= 0), default=-1)


def _last_magic(data: mmap, least: int, before: int) -> int:
    """Where the last magic code that ends at or before ``before`` begins, -1 without any."""
    at = -1
    for magic in _MAGICS:
        at = max(at, data.rfind(magic, max(least, at), before))
    return at
