"""Searching one piece of the log: its bytes first, then the records with hits.

A record belongs to the piece in which it begins, so each record is judged once, however the log is
divided into pieces and among processes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.errors import BodyError
from storage.format.sys_flag import MessageSysFlag
from storage.log.raw_bytes import LogBytes

from .byte_search import Find, SearchBytes
from .packed import PackedRecords
from .query import Query

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles
    from storage.format.message import MessageExt
    from storage.log.record_finder import FoundRecord, RecordFinder

_CHUNK: Final = 1 << 18
"""Bytes per read: they stay in the processor's cache while they are searched."""


class Piece(NamedTuple):
    """A part of one log file, by commit log offsets."""

    start: int
    end: int


class PieceResult(NamedTuple):
    """Log offsets of the hits, ascending, and of damaged records that may be hits."""

    hits: list[int]
    damaged: list[int]


class PieceSearch:
    """Searches pieces of one log for one query. Not thread-safe."""

    def __init__(
        self, log: "ReadOnlyFiles", finder: "RecordFinder", query: Query, packed: PackedRecords
    ) -> None:
        self._log = log
        self._finder = finder
        self._query = query
        self._packed = packed
        longest = query.needle.longest if query.needle is not None else 0
        self._overlap = max(longest - 1, packed.overlap)
        self._buffer = bytearray(_CHUNK + self._overlap)

    def search(self, piece: Piece) -> PieceResult:
        """Judge the records that begin in a piece."""
        damaged: set[int] = set()
        hits = [message.commitlog_offset for message in self.messages(piece, damaged)]
        return PieceResult(sorted(hits), sorted(damaged))

    def messages(self, piece: Piece, damaged: set[int]) -> "Iterator[MessageExt]":
        """The hits, each once, in no particular order; ``damaged`` collects damaged records."""
        for record in self._candidates(piece):
            message = record.message
            try:
                if message is None:
                    if not record.replaced:
                        damaged.add(record.start)
                elif self._query.matches(message):
                    yield message
            except BodyError:
                damaged.add(record.start)

    def _candidates(self, piece: Piece) -> "Iterator[FoundRecord]":
        needle = self._query.needle
        if needle is None:
            yield from self._finder.records(*piece)
            return
        around = _Around(self._finder, piece, skips_packed=needle.in_body)
        if needle.in_body:
            self._packed.enter(*piece)
        find: Find | None = None
        with LogBytes(self._log, self._buffer) as log:
            for start in range(piece.start, piece.end, _CHUNK):
                size = min(_CHUNK, piece.end - start)
                length = log.read(start, size + self._overlap)
                find = find or needle.finder(self._buffer[:length])
                yield from around.hits(self._buffer, start, min(size, length), length, find)
                if needle.in_body:
                    yield from self._packed.records(self._buffer, start, min(size, length), length)
            yield from around.last(log, needle)


class _Around:
    """Walks through a piece from one record with a hit to the next."""

    def __init__(self, finder: "RecordFinder", piece: Piece, *, skips_packed: bool) -> None:
        self._finder = finder
        self._piece = piece
        self._skips_packed = skips_packed
        self._position = piece.start

    def hits(
        self, buffer: bytearray, start: int, size: int, length: int, find: Find
    ) -> "Iterator[FoundRecord]":
        """Records with a hit that begins in the first ``size`` bytes of the buffer.

        In a record with a compressed body, only the head and the properties are searched.
        """
        while self._position < start + size:
            at = find(buffer, self._position - start, length)
            if not 0 <= at < size:
                self._position = start + size
                return
            record = self._finder.containing(start + at)
            if record is None:
                self._position = start + at + 1
                continue
            self._position = record.end
            if record.start >= self._piece.start or record.message is None:
                yield from self._unless_packed(record)

    def last(self, log: LogBytes, needle: SearchBytes) -> "Iterator[FoundRecord]":
        """The record that extends beyond the piece, if a hit lies past the end of the piece."""
        end = self._piece.end
        if self._position > end:
            return
        record = self._finder.containing(end)
        if record is None or not self._piece.start <= record.start < end:
            return
        if record.message is None or _holds(log, record, needle):
            yield from self._unless_packed(record)

    def _unless_packed(self, record: "FoundRecord") -> "Iterator[FoundRecord]":
        if not (self._skips_packed and is_packed(record)):
            yield record


def _holds(log: LogBytes, record: "FoundRecord", needle: SearchBytes) -> bool:
    """Whether the bytes of a record contain the needle; reads a buffer at a time."""
    step = len(log.buffer) - needle.longest + 1
    for start in range(record.start, record.end, step):
        length = log.read(start, min(len(log.buffer), record.end - start))
        if any(log.buffer.find(text, 0, length) >= 0 for text in needle.texts):
            return True
    return False


def is_packed(record: "FoundRecord") -> bool:
    """Whether the body of a record is compressed."""
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
