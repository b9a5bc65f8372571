"""One search: its pieces, its processes, its output, and the token to continue it."""

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from rmqctl.errors import UsageProblem
from rmqctl.message.search.query import Query
from storage.format.record import CheckKind, check_record, read_head
from storage.log.record_finder import RecordFinder

from .packed import PackedRecords
from .pieces import Piece, PieceSearch, cut
from .workers import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqctl.cli.progress import Progress
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_PIECE_BYTES: Final = 16 << 20
_FORK_FROM_BYTES: Final = 64 << 20
"""Below this size one process finishes before others would have started."""
_RECORD_EXTRA: Final = 64 << 10


class Hits(NamedTuple):
    """Result of one piece: log offsets, ascending; ``done_to`` is the position to continue at."""

    offsets: "array[int]"
    damaged: "array[int]"
    piece: Piece


class Token(NamedTuple):
    """The state of a stopped search: ``position`` in the log, and the search's fingerprint."""

    position: int
    fingerprint: int

    def __str__(self) -> str:
        return f"{self.position:x}-{self.fingerprint:08x}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """The token of a text; ValueError for another text."""
        position, dash, fingerprint = text.partition("-")
        try:
            if dash and len(fingerprint) == 8:
                return cls(int(position, 16), int(fingerprint, 16))
        except ValueError:
            pass
        raise ValueError(f"{text!r} is not a token of 'message search'")


class Tally(Protocol):
    """Counts messages in one process, and merges the counts of others."""

    def fresh(self) -> Self:
        """A new counter of the same kind."""
        ...

    def add(self, message: "MessageExt") -> None:
        """Count a message."""
        ...

    def packed(self) -> bytes:
        """The counts as bytes, for another process."""
        ...

    def merge(self, packed: bytes) -> None:
        """Add the counts of another counter."""
        ...


class SearchRun:
    """Searches the log of a store, up to its end at the start of the search.

    ``ranges`` are the parts to search, as ascending commit log offsets; None is the whole log.
    """

    def __init__(
        self,
        view: "StoreView",
        query: Query,
        jobs: int,
        ranges: Sequence[tuple[int, int]] | None = None,
    ) -> None:
        self._query = query
        self._log = view.files.apart().log
        self._view = view
        self._max_record = view.config.max_message_size + _RECORD_EXTRA
        self._end = view.log_max_offset()
        if ranges is None:
            ranges = [(view.log_min_offset(), self._end)]
        self._start = max(view.log_min_offset(), ranges[0][0] if ranges else 0)
        pieces = [
            piece
            for first in self._files()
            for start, end in ranges
            for piece in self._pieces_of(first, start, end)
        ]
        self._pieces = pieces
        self._lost = self._bytes_lost(ranges)
        self.total_bytes = sum(piece.end - piece.start for piece in pieces)
        self.jobs = 1 if self.total_bytes < _FORK_FROM_BYTES else jobs

    @property
    def start(self) -> int:
        """Commit log offset of the start."""
        return self._start

    @property
    def end(self) -> int:
        """Commit log offset of the end, exclusive."""
        return self._end

    @contextmanager
    def hits(self, progress: "Progress") -> Iterator[Iterator[Hits]]:
        """Search piece by piece in log order. Leaving the block ends all processes."""
        with closing(in_order(self._pieces, self._work(), self.jobs)) as answers:
            yield self._read(answers, progress)

    def _read(self, answers: Iterable[tuple[Piece, bytes]], progress: "Progress") -> Iterator[Hits]:
        for piece, data in answers:
            count = int.from_bytes(data[:8], "big")
            offsets, damaged = array("q"), array("q")
            offsets.frombytes(data[8 : 8 + 8 * count])
            damaged.frombytes(data[8 + 8 * count :])
            progress.advance(piece.end - piece.start, piece.end - piece.start)
            yield Hits(offsets, damaged, piece)
        if self._lost:
            yield Hits(array("q"), array("q", self._lost), Piece(self._end, self._end))

    def tally(self, progress: "Progress", total: "Tally") -> int:
        """Count all hits in the processes that find them; returns the number of damaged records."""
        search = self._piece_search()
        all_damaged: set[int] = set()

        def work(piece: Piece) -> bytes:
            damaged: set[int] = set()
            counter = total.fresh()
            for message in search.messages(piece, damaged):
                counter.add(message)
            found = array("q", sorted(damaged)).tobytes()
            return len(found).to_bytes(8, "big") + found + counter.packed()

        with closing(in_order(self._pieces, work, self.jobs)) as answers:
            for piece, data in answers:
                end = 8 + int.from_bytes(data[:8], "big")
                all_damaged.update(array("q", data[8:end]))
                total.merge(data[end:])
                progress.advance(piece.end - piece.start, piece.end - piece.start)
        return len(all_damaged | set(self._lost))

    def _bytes_lost(self, ranges: Sequence[tuple[int, int]]) -> list[int]:
        """Log offsets after which a file is truncated, or the next ones are missing."""
        lost = []
        files = self._log.relist()
        for first, following in pairwise([*files, self._end]):
            file = self._log.at(first)
            start = first + (0 if file is None else min(file.length, self._log.file_size))
            end = min(following, self._end)
            if any(begin < end and start < stop for begin, stop in ranges) and start < end:
                lost.append(start)
        return lost

    def _piece_search(self) -> PieceSearch:
        finder = RecordFinder(self._log, self._end, self._view.unit, self._max_record)
        by_units = self.total_bytes >= _FORK_FROM_BYTES
        packed = PackedRecords(self._view, self._log, finder, self._end, by_units=by_units)
        return PieceSearch(self._log, finder, self._query, packed)

    def _work(self) -> "Callable[[Piece], bytes]":
        search = self._piece_search()

        def work(piece: Piece) -> bytes:
            found = search.search(piece)
            hits, damaged = array("q", found.hits), array("q", found.damaged)
            return len(hits).to_bytes(8, "big") + hits.tobytes() + damaged.tobytes()

        return work

    def _files(self) -> list[int]:
        """First offsets of the log files that may contain hits."""
        size = self._log.file_size
        files = [first for first in self._log.relist() if self._start < first + size]
        times = [self._first_timestamp(first) for first in files] + [None]
        may_be = self._query.may_be_in_file
        return [
            first
            for first, time, following in zip(files, times, times[1:], strict=False)
            if first < self._end and (time is None or may_be(time, following))
        ]

    def _first_timestamp(self, first: int) -> int | None:
        """Store time of a file's first record; None for a preallocated file without records."""
        file = self._log.at(first) if first < self._end else None
        if file is None or check_record(file.view, 0, file.length).kind is not CheckKind.MESSAGE:
            return None
        return read_head(file.view, 0).store_timestamp

    def _pieces_of(self, first: int, start: int, end: int) -> list[Piece]:
        size = self._log.file_size
        begin = max(first, start, self._start)
        return cut(begin, min(first + size, end, self._end), size, _PIECE_BYTES)


def usable_cpus() -> int:
    """Number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def position_of(token: str | None, query: Query, run_end: int) -> int | None:
    """The position of a token. UsageProblem for a token of another search or store."""
    if token is None:
        return None
    try:
        parsed = Token.parse(token)
    except ValueError as error:
        raise UsageProblem(f"--resume: {error}") from None
    if parsed.fingerprint != query.fingerprint:
        raise UsageProblem("--resume: the token belongs to another search")
    if parsed.position > run_end:
        raise UsageProblem("--resume: the token belongs to another store: this log is shorter")
    return parsed.position
