"""A part of a store's log, read record by record: which queues it has messages of, and how many.

A part that is small costs less than a look at every queue of the store: the records name their
queues and their places in them. Where it is not surely a row of whole records (it begins within
one, or there is damage) nothing is concluded from it, and the queues are looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from storage.configs.deleted_topics import deleted_topics_for_reading
from storage.format.delay import parse_delay_levels
from storage.format.dispatch import read_request
from storage.format.shapes import MAX_TIME
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag
from storage.log.walk import LogWalk, StretchKind
from storage.record_batch.queue_numbers import QueueNames
from storage.record_batch.record_batch import MARK_LIGHT, read_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.datasource.query.topics import TopicChoice
    from storage.log.walk import Segment
    from storage.record_batch.record_batch import RecordBatch

    from .log_now import LogNow, OpenLog

MOST_BYTES: Final = 64 << 20
"""Of a part that is read record by record: a tenth of a second."""
_LEAST_PIECE: Final = 64
_NO_UNIT: Final = MessageSysFlag.TRANSACTION_PREPARED_TYPE
_NEVER: Final = 1 << 62
_Queue = tuple[str, int]


class QueueShare(NamedTuple):
    """What a part of the log has of one queue."""

    first: int
    """The smallest queue offset."""
    end: int
    """After the largest one."""
    messages: int
    size: int
    """Bytes of their records."""

    def plus(self, other: QueueShare) -> QueueShare:
        """Both together."""
        first, end = min(self.first, other.first), max(self.end, other.end)
        return QueueShare(first, end, self.messages + other.messages, self.size + other.size)


class LogPart(NamedTuple):
    """The messages of selected queues from a log offset up to ``end``, where a record begins."""

    end: int
    messages: int
    queues: dict[_Queue, QueueShare]
    oldest_timestamp: int | None = None
    """Store time (ms) of the first message whose store time is known."""


def read_part(
    log: LogNow, begin: int, end: int, topics: TopicChoice, most: int | None = None
) -> LogPart | None:
    """Read the records that lie in [begin, end), with ``most`` only so many messages.

    With ``most`` there is at least one if there is any; messages of a record in light queues are
    not taken apart. It ends after ``MOST_BYTES`` then, too. None: look at the queues.
    """
    with log.opened() as files:
        reader = _Reader(log, files, topics)
        walk = LogWalk(files.files, begin, limit=end, check_crc=False, as_broker=True)
        while (stretch := walk.next()) is not None:
            if stretch.kind is StretchKind.BLANK:
                continue
            at = stretch.start
            for piece in _pieces(stretch, len(stretch.sizes) if most is None else most):
                taken = reader.take(piece, most)
                if taken is None:
                    return None
                at = taken
                if at < piece.end or (most is not None and reader.messages >= most):
                    return reader.part(at)
            if most is not None and at - begin >= MOST_BYTES:
                return reader.part(at)
    return reader.part(end) if walk.position == end else None


def next_record(log: LogNow, begin: int, place: int) -> int:
    """Where the first record from ``place`` on begins, by a walk from ``begin``, where one begins;
    ``place`` itself if the walk does not get there."""
    with log.opened() as files:
        walk = LogWalk(files.files, begin, limit=log.end, check_crc=False, as_broker=True)
        while walk.position < place and (stretch := walk.next()) is not None:
            if stretch.end >= place:
                ends = stretch.start + np.cumsum(np.array(stretch.sizes, np.int64))
                return int(ends[np.searchsorted(ends, place)])
    return place


def _pieces(stretch: Segment, count: int) -> Iterator[Segment]:
    """A stretch, cut into pieces of about so many records."""
    count = max(_LEAST_PIECE, count)
    start = stretch.start
    for first in range(0, len(stretch.sizes), count):
        sizes = stretch.sizes[first : first + count]
        end = start + sum(sizes)
        yield stretch._replace(start=start, sizes=sizes, end=end)
        start = end


class _Reader:
    """Adds up the messages of selected queues, stretch by stretch."""

    def __init__(self, log: LogNow, files: OpenLog, topics: TopicChoice) -> None:
        self.messages = 0
        self.queues: dict[_Queue, QueueShare] = {}
        self._files = files.files
        self._broker = log.ref.broker
        self._topics = topics
        self._levels = parse_delay_levels(log.config.message_delay_level)
        self._deleted = deleted_topics_for_reading(Path(log.ref.path))
        self._names = QueueNames()
        self._oldest: int | None = None
        self._from: list[int] = []
        """The log offset from which on records belong to a queue, by its number."""

    def part(self, end: int) -> LogPart:
        """What was taken, up to an offset of the log."""
        return LogPart(end, self.messages, self.queues, self._oldest)

    def take(self, stretch: Segment, most: int | None) -> int | None:
        """Take the records of a stretch, as many as there may be; gives where the next one begins.

        None if they are not surely what the queues have there.
        """
        position = stretch.start % self._files.file_size
        first = stretch.start - position
        file = self._files.at(first)
        if file is None or stretch.kind is not StretchKind.RECORDS:
            return None
        batch = read_block(file.view, first, position, stretch.sizes, self._names.topics)
        replaced = (batch.sys_flag & REPLACED_FLAG).any()
        if replaced or not np.array_equal(batch.physical_offset, batch.offset):
            return None
        numbers = self._names.numbers(batch.topic, batch.queue_id)
        single = (batch.offset >= self._begins()[numbers]) & (batch.sys_flag & _NO_UNIT == 0)
        several: list[tuple[int, tuple[str, int, int]]] = []
        for row in batch.marked(MARK_LIGHT):
            single[row] = False
            place, size = int(batch.place[row]), int(batch.size[row])
            units = read_request(file.view, place, size, self._levels, first=first).units
            several += [(row, unit) for unit in units if self._has(unit[:2], first + place)]
        counts = single.astype(np.int64)
        np.add.at(counts, [row for row, _ in several], 1)
        rows = len(batch) if most is None else self._room(np.cumsum(counts), most)
        if self._oldest is None:
            times = batch.store_timestamp[:rows]
            known = times[(counts[:rows] > 0) & (times >= 0) & (times <= MAX_TIME)]
            self._oldest = int(known[0]) if len(known) else None
        self._add(numbers[:rows], batch, single[:rows])
        for row, (topic, queue_id, offset) in several:
            if row < rows:
                share = QueueShare(offset, offset + 1, 1, int(batch.size[row]))
                self._add_share((topic, queue_id), share)
        return stretch.start + int(batch.size[:rows].sum())

    def _room(self, counts: NDArray[np.int64], most: int) -> int:
        """The records that there is room for; ``counts`` are the messages of them and those
        before."""
        room = most - self.messages
        if counts[-1] <= room:
            return len(counts)
        at = int(np.searchsorted(counts, room, "right"))  # the first one too many
        if self.messages or (at and counts[at - 1]):
            return at
        return at + 1

    def _add(
        self, numbers: NDArray[np.int64], batch: RecordBatch, chosen: NDArray[np.bool_]
    ) -> None:
        """Add records that are in one queue each."""
        (rows,) = np.nonzero(chosen)
        if not len(rows):
            return
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        of, starts, counts = np.unique(numbers[rows], return_index=True, return_counts=True)
        offsets = batch.queue_offset[rows]
        firsts = np.minimum.reduceat(offsets, starts).tolist()
        lasts = np.maximum.reduceat(offsets, starts).tolist()
        sizes = np.add.reduceat(batch.size[rows], starts).tolist()
        for number, first, last, count, size in zip(
            of.tolist(), firsts, lasts, counts.tolist(), sizes, strict=True
        ):
            self._add_share(self._names.keys[number], QueueShare(first, last + 1, count, size))

    def _add_share(self, queue: _Queue, share: QueueShare) -> None:
        known = self.queues.get(queue)
        self.queues[queue] = share if known is None else known.plus(share)
        self.messages += share.messages

    def _begins(self) -> NDArray[np.int64]:
        """From which log offset on each queue has its records."""
        possible = self._names.possible()
        for number in range(len(self._from), len(possible)):
            topic, queue_id = self._names.keys[number]
            chosen = possible[number] and self._topics.wants(self._broker, topic, queue_id)
            self._from.append(self._deleted.get(topic, 0) if chosen else _NEVER)
        return np.array(self._from, np.int64)

    def _has(self, queue: _Queue, place: int) -> bool:
        """Whether a light queue is selected, and has a record."""
        wants = self._topics.wants(self._broker, *queue)
        return wants and place >= self._deleted.get(queue[0], 0)
