"""Searching one piece of the log: its bytes first, then the records in which hits lie.

A record belongs to the piece in which it begins, so that each is judged once, whatever pieces the
log is cut into and whoever searches them.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.searching.query import Needle, Query
from storage.format.errors import BodyError
from storage.format.sys_flag import MessageSysFlag
from storage.reading.record_finder import FoundRecord, RecordFinder

if TYPE_CHECKING:
    from storage.files.read_files import FileRow
    from storage.model import MessageExt

_ODD: Final = re.escape(bytes(range(1, 256, 2)))
_COMPRESSED: Final = re.compile(rb"(?s)\xda\xa3 \xa7.{31}[" + _ODD + b"]")
"""Magic code, and the lowest byte of sysFlag with the bit that says that the body is packed."""
_COMPRESSED_OR_V2: Final = re.compile(rb"(?s)\xda\xa3 [\xa7\xab].{31}[" + _ODD + b"]")
_MAGIC_AT: Final = 4
_SYS_FLAG_END: Final = 40


class Piece(NamedTuple):
    """A part of one log file, by commit log offsets."""

    start: int
    end: int


class PieceResult(NamedTuple):
    """Log offsets of the hits, ascending, and of records that may be hits but are damaged."""

    hits: list[int]
    damaged: list[int]


class PieceSearch:
    """Searches pieces of one log for one query. For one thread."""

    def __init__(
        self, log: "FileRow", finder: RecordFinder, query: Query, *, has_long_topics: bool
    ) -> None:
        self._log = log
        self._finder = finder
        self._query = query
        # Version 2 of records exists for topics of more than 127 bytes alone.
        self._compressed = _COMPRESSED_OR_V2 if has_long_topics else _COMPRESSED

    def search(self, piece: Piece) -> PieceResult:
        """Judge the records that begin in a piece."""
        damaged: set[int] = set()
        hits = [message.commitlog_offset for message in self.messages(piece, damaged)]
        return PieceResult(sorted(hits), sorted(damaged))

    def messages(self, piece: Piece, damaged: set[int]) -> "Iterator[MessageExt]":
        """The hits themselves, each once, in no particular order; ``damaged`` takes the others."""
        for record in self._candidates(piece):
            message = record.message
            try:
                if message is None:
                    damaged.add(record.start)
                elif self._query.matches(message):
                    yield message
            except BodyError:
                damaged.add(record.start)

    def _candidates(self, piece: Piece) -> Iterator[FoundRecord]:
        needle = self._query.needle
        if needle is None:
            yield from self._finder.records(*piece)
            return
        yield from self._around(piece, needle)
        if needle.in_body:
            yield from self._packed(piece)

    def _around(self, piece: Piece, needle: Needle) -> Iterator[FoundRecord]:
        """Records that hold the needle as bytes; of packed ones their head alone can."""
        first = piece.start - piece.start % self._log.file_size
        file = self._log.at(first)
        if file is None:
            return
        search, skips_packed = needle.pattern.search, needle.in_body
        position, end = piece.start - first, piece.end - first
        limit = min(end + needle.longest - 1, file.length)
        while (found := search(file.map, position, limit)) is not None and found.start() < end:
            record = self._finder.containing(first + found.start())
            if record is None:
                position = found.start() + 1
                continue
            position = record.end - first
            is_ours = record.start >= piece.start or record.message is None
            if is_ours and not (skips_packed and _is_packed(record)):
                yield record
        if position <= end:
            # The record that reaches beyond the piece: its bytes there were not looked at.
            record = self._finder.containing(piece.end)
            if record is not None and piece.start <= record.start < piece.end:
                tail = file.map[record.start - first : record.end - first]
                if search(tail) is not None and not (skips_packed and _is_packed(record)):
                    yield record

    def _packed(self, piece: Piece) -> Iterator[FoundRecord]:
        """Records whose bodies are compressed."""
        first = piece.start - piece.start % self._log.file_size
        file = self._log.at(first)
        if file is None:
            return
        position, end = piece.start - first + _MAGIC_AT, piece.end - first + _MAGIC_AT
        limit = min(end + _SYS_FLAG_END, file.length)
        search = self._compressed.search
        while (found := search(file.map, position, limit)) is not None and found.start() < end:
            start = first + found.start() - _MAGIC_AT
            record = self._finder.containing(start)
            if record is None or record.start != start:
                position = found.start() + 1
                continue
            position = record.end - first + _MAGIC_AT
            yield record


def _is_packed(record: FoundRecord) -> bool:
    message = record.message
    return message is not None and bool(message.sys_flag & MessageSysFlag.COMPRESSED_FLAG)


def cut(start: int, end: int, file_size: int, size: int) -> list[Piece]:
    """Pieces of at most ``size`` bytes, none of which crosses the end of a log file."""
    pieces = []
    while start < end:
        piece_end = min(end, start + size, start - start % file_size + file_size)
        pieces.append(Piece(start, piece_end))
        start = piece_end
    return pieces
