"""Searching for messages by where and when they lie: topics, queues and store times.

The records of a piece become columns of these fields, by compiled code in one pass, so no object is
made for a message that is usual. The others, and damaged ones, are judged one by one as in
``pieces.py``.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from storage.log.walk import Segment, StretchKind
from storage.read.message_table import MessageTable
from storage.read.place_table import fill_from_places

from .pieces import Piece, PieceResult

if TYPE_CHECKING:
    from storage.log.record_finder import RecordFinder
    from storage.readonly import StoreView

    from .query import Plain, Query

_FIELDS: Final = ("commitlog_offset", "record_topic", "record_queue_id", "store_timestamp")
_MOST_BYTES: Final = 1 << 26
_MOST_SINGLY: Final = 128
"""Records that are judged one by one before the pass is tried again."""


class PlainSearch:
    """Searches pieces of a log; the answers of PieceSearch. Not thread-safe."""

    def __init__(
        self, view: "StoreView", finder: "RecordFinder", query: "Query", plain: "Plain"
    ) -> None:
        self._log = view.files.apart().log
        self._end = view.log_max_offset()
        self._finder = finder
        self._matches = query.matches
        self._plain = plain
        topics = plain.others if plain.topics is None else plain.topics
        self._topics = frozenset(map(_stored, topics))
        self._deleted = {_stored(topic): end for topic, end in (plain.deleted or {}).items()}
        self._deleted_to = max(self._deleted.values(), default=0)

    def search(self, piece: Piece) -> PieceResult:
        """Judge the records that begin in a piece."""
        hits: list[int] = []
        damaged: list[int] = []
        for stretch in self._finder.stretches(*piece):
            if stretch.kind is StretchKind.RECORDS:
                self._pass(stretch, piece.end, hits, damaged)
            else:
                self._judge(stretch, piece.end, hits, damaged)
        return PieceResult(hits, damaged)

    def _pass(self, stretch: Segment, end: int, hits: list[int], damaged: list[int]) -> None:
        places = array("q", accumulate(stretch.sizes, initial=stretch.start))
        count = bisect_left(places, end, 0, len(stretch.sizes))
        view = memoryview(places)[:count]
        at, singly = 0, 1
        while at < count:
            table = MessageTable(_FIELDS, count, _MOST_BYTES)
            taken = fill_from_places(table, self._log, view[at:], self._end)
            hits += self._chosen(table)
            at += taken
            singly = 1 if taken > singly else min(2 * singly, _MOST_SINGLY)
            if at < count and not table.is_full:
                sizes = stretch.sizes[at : at + singly]
                some = Segment(stretch.kind, places[at], sizes, places[at + len(sizes)])
                self._judge(some, end, hits, damaged)
                at += len(sizes)

    def _judge(self, stretch: Segment, end: int, hits: list[int], damaged: list[int]) -> None:
        """Records one by one."""
        for record in self._finder.records_of(stretch, end):
            if record.message is not None:
                if self._matches(record.message):
                    hits.append(record.start)
            elif not record.replaced:
                damaged.append(record.start)

    def _chosen(self, table: MessageTable) -> list[int]:
        """The log offsets of the rows that match."""
        places = memoryview(table.buffer("commitlog_offset")).cast("q").tolist()
        plain = self._plain
        if self._has_other_topics(table):
            wanted = plain.topics is not None
            kept = [(topic in self._topics) is wanted for topic in _topics_of(table)]
        else:
            kept = [True] * len(places)
        if places and places[0] < self._deleted_to:
            deleted = self._deleted
            kept = [
                old and place >= deleted.get(topic, 0)
                for old, place, topic in zip(kept, places, _topics_of(table), strict=True)
            ]
        if plain.queues is not None:
            numbers = memoryview(table.buffer("record_queue_id")).cast("i")
            kept = [
                old and number in plain.queues for old, number in zip(kept, numbers, strict=True)
            ]
        start, end = plain.from_timestamp, plain.to_timestamp
        if start is not None or end is not None:
            times = memoryview(table.buffer("store_timestamp")).cast("q")
            kept = [
                old and (start is None or time >= start) and (end is None or time < end)
                for old, time in zip(kept, times, strict=True)
            ]
        if all(kept):
            return places
        return [place for place, is_kept in zip(places, kept, strict=True) if is_kept]

    def _has_other_topics(self, table: MessageTable) -> bool:
        """Whether a row may have another topic than the only one that is wanted."""
        if self._plain.topics is None or len(self._topics) != 1:
            return True
        [name] = self._topics
        ends = array("i", range(0, len(name) * table.rows + 1, len(name) or 1))
        return (
            table.buffer("record_topic_ends") != ends.tobytes()
            or table.buffer("record_topic") != name * table.rows
        )


def _topics_of(table: MessageTable) -> Iterator[bytes]:
    """The topic of each row, as stored."""
    topics = bytes(table.buffer("record_topic"))
    ends = memoryview(table.buffer("record_topic_ends")).cast("i")
    return (topics[begin:end] for begin, end in pairwise(ends))


def _stored(topic: str) -> bytes:
    return topic.encode("utf-8", "surrogateescape")
