"""One search: its parts, its processes, how far it is."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from rmqctl.admin.scan_progress import OnProgress, no_progress
from storage import native
from storage.format.record import CheckKind, check_record, read_head
from storage.log.record_finder import RecordFinder
from storage.platform.processors import usable_processors

from .deleted import deleted_in_log, without_deleted
from .packed import PackedRecords
from .pieces import Piece, PieceSearch, cut
from .query import Query
from .workers import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from storage.files.read_files import ReadOnlyFiles
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .plain_search import PlainSearch

_PIECE_BYTES: Final = 16 << 20
_FORK_FROM_BYTES: Final = 64 << 20
"""Below this size one process finishes before others would have started."""
_RECORD_EXTRA: Final = 64 << 10
_MOST_UNITS: Final = 512


class SearchPart(NamedTuple):
    """The result of one part of the log, and how far the search is."""

    hits: "array[int]"
    """Log offsets of the messages found, ascending."""
    damaged: "array[int]"
    """Log offsets of damaged records that may be hits, and of gaps."""
    position: int
    """The log offset at which another search continues."""
    scanned_bytes: int
    total_bytes: int


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


class Search:
    """Searches the log of a store, up to its end at the start of the search.

    Messages that were deleted with their topic are no hits.

    Attributes:
        start, end: log offsets between which it searches.
        total_bytes, scanned_bytes: what it will read, and what it has read.
        position: the log offset at which another search continues if this one is stopped.
        damaged: log offsets of records that may be hits, but could not be read, and of gaps.
    """

    def __init__(
        self,
        view: "StoreView",
        query: Query,
        *,
        start: int | None = None,
        ranges: Sequence[tuple[int, int]] | None = None,
        jobs: int | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        """``start`` is a log offset, default: the start of the log. A gap in which it lies counts
        for the search that ended there.

        ``ranges`` are the parts to search instead, as ascending log offsets. ``jobs`` is the number
        of processes, default: one for each processor. A search of less than 64 MiB, and one with
        one job, starts no process.
        """
        self._query = without_deleted(query, deleted_in_log(view))
        self._log = view.files.apart().log
        self._view = view
        self._on_progress = on_progress
        self.end = view.log_max_offset()
        if ranges is None:
            ranges = [(view.log_min_offset() if start is None else start, self.end)]
        self.start = max(view.log_min_offset(), ranges[0][0] if ranges else 0)
        pieces = [
            piece
            for first in self._files()
            for begin, end in ranges
            for piece in self._pieces_of(first, begin, end)
        ]
        self._pieces = pieces
        self._lost = self._bytes_lost(ranges, start or 0)
        self.total_bytes = sum(piece.end - piece.start for piece in pieces)
        self.scanned_bytes = 0
        self.position = self.start
        self.damaged: set[int] = set()
        if self.total_bytes < _FORK_FROM_BYTES:
            self.jobs = 1
        else:
            self.jobs = usable_processors() if jobs is None else jobs

    def damaged_before(self, position: int) -> set[int]:
        """Of the damaged ones, those that another search does not meet that goes on there."""
        return {offset for offset in self.damaged if offset < position}

    def messages(self) -> "Generator[MessageExt]":
        """The hits in log order, as they are found. Closing the generator ends the search."""
        with closing(self.parts()) as parts:
            for part in parts:
                for offset in part.hits:
                    message = self._view.look_message_by_offset(offset)
                    if message is None:
                        self.damaged.add(offset)
                    else:
                        self.position = offset + 1
                        yield message
                self.position = part.position

    def parts(self) -> "Generator[SearchPart]":
        """Search part by part (up to 16 MiB) in log order; a part may have no hit.

        Closing the generator ends the search and all its processes.
        """
        self._begin()
        lost = self._lost
        with closing(in_order(self._pieces, self._work(), self.jobs)) as answers:
            for piece, data in answers:
                count = int.from_bytes(data[:8], "big")
                hits, damaged = array("q"), array("q")
                hits.frombytes(data[8 : 8 + 8 * count])
                damaged.frombytes(data[8 + 8 * count :])
                passed = bisect_left(lost, piece.end)
                damaged.extend(lost[:passed])
                lost = lost[passed:]
                yield self._part(hits, damaged, piece)
        if lost:
            yield self._part(array("q"), array("q", lost), Piece(self.end, self.end))

    def _part(self, hits: "array[int]", damaged: "array[int]", piece: Piece) -> SearchPart:
        self._advance(piece)
        self.damaged.update(damaged)
        return SearchPart(hits, damaged, piece.end, self.scanned_bytes, self.total_bytes)

    def _begin(self) -> None:
        self.scanned_bytes = 0
        self._on_progress(0, self.total_bytes)

    def _advance(self, piece: Piece) -> None:
        if piece.end > piece.start:
            self.scanned_bytes += piece.end - piece.start
            self._on_progress(self.scanned_bytes, self.total_bytes)

    def tally(self, total: "Tally") -> int:
        """Count all hits in the processes that find them; returns the number of damaged records."""
        self._begin()
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
                self._advance(piece)
        return len(all_damaged | set(self._lost))

    def _bytes_lost(self, ranges: Sequence[tuple[int, int]], least: int) -> list[int]:
        """Log offsets from ``least`` on after which a file is truncated, or the next ones are
        missing."""
        lost = []
        files = self._log.relist()
        for first, following in pairwise([*files, self.end]):
            file = self._log.at(first)
            start = first + (0 if file is None else min(file.length, self._log.file_size))
            end = min(following, self.end)
            if any(begin < end and start < stop for begin, stop in ranges) and least <= start < end:
                lost.append(start)
        return lost

    def _plain_search(self) -> "PlainSearch | None":
        """The search without objects; None where messages themselves are tested."""
        plain = self._query.plain
        if plain is None or self._query.needle is not None or native.compiled is None:
            return None
        from .plain_search import PlainSearch

        finder = record_finder(self._view, self._log, self.end)
        return PlainSearch(self._view, finder, self._query, plain)

    def _piece_search(self) -> PieceSearch:
        finder = record_finder(self._view, self._log, self.end)
        by_units = self.total_bytes >= _FORK_FROM_BYTES
        packed = PackedRecords(self._view, self._log, finder, self.end, by_units=by_units)
        return PieceSearch(self._log, finder, self._query, packed)

    def _work(self) -> "Callable[[Piece], bytes]":
        search = self._plain_search() or self._piece_search()

        def work(piece: Piece) -> bytes:
            found = search.search(piece)
            hits, damaged = array("q", found.hits), array("q", found.damaged)
            return len(hits).to_bytes(8, "big") + hits.tobytes() + damaged.tobytes()

        return work

    def _files(self) -> list[int]:
        """First offsets of the log files that may contain hits."""
        size = self._log.file_size
        files = [first for first in self._log.relist() if self.start < first + size]
        times = [self._first_timestamp(first) for first in files] + [None]
        may_be = self._query.may_be_in_file
        return [
            first
            for first, time, following in zip(files, times, times[1:], strict=False)
            if first < self.end and (time is None or may_be(time, following))
        ]

    def _first_timestamp(self, first: int) -> int | None:
        """Store time of a file's first record; None for a preallocated file without records."""
        file = self._log.at(first) if first < self.end else None
        if file is None or check_record(file.view, 0, file.length).kind is not CheckKind.MESSAGE:
            return None
        return read_head(file.view, 0).store_timestamp

    def _pieces_of(self, first: int, start: int, end: int) -> list[Piece]:
        size = self._log.file_size
        begin = max(first, start, self.start)
        return cut(begin, min(first + size, end, self.end), size, _PIECE_BYTES)


def record_finder(view: "StoreView", log: "ReadOnlyFiles", end: int) -> RecordFinder:
    """Finds the records around positions of a log, up to ``end``."""
    return RecordFinder(log, end, _Units(view), view.config.max_message_size + _RECORD_EXTRA)


class _Units:
    """Units of queues, the more at once the more follow each other."""

    def __init__(self, view: "StoreView") -> None:
        self._view = view
        self._read: dict[tuple[str, int], tuple[int, list[tuple[int, int, int]]]] = {}
        """The first offset, and the units from there on."""

    def __call__(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """What StoreView.unit gives."""
        key = topic, queue_id
        first, units = self._read.get(key, (-1, []))
        if not 0 <= offset - first < len(units):
            follows = first >= 0 and offset == first + len(units)
            count = min(2 * len(units) + 1, _MOST_UNITS) if follows else 1
            units = self._view.units(topic, queue_id, offset, count)
            self._read[key] = first, units = offset, units
        return units[offset - first] if units else None
