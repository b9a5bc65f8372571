"""The messages to carve: ranges of queue offsets, read in the order of the log.

Each queue's units are read a block at a time, and merged by the log offsets of their records. So
the log is read once, forwards, and only where there are wanted records. Memory holds some hundred
units of each queue and the records of one stretch of the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.prepared_many import Longs

from .plain_records import take_records, topic_field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.readonly import StoreView

STRETCH_BYTES: Final = 16 << 20
"""Bytes of the log whose records are read at once."""
_UNITS: Final = 512
_UNIT: Final = np.dtype([("place", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])


class QueueRange(NamedTuple):
    """The queue offsets ``begin`` .. ``end`` - 1 of a queue; ``min_offset`` and ``max_offset`` are
    the store's own bounds of it."""

    topic: str
    queue_id: int
    begin: int
    end: int
    min_offset: int
    max_offset: int


class TakenRange(NamedTuple):
    """Whole records of one stretch of the log, in its order, as they are stored.

    They lie one after the other in ``buffer``. ``queue_numbers`` are indexes of ranges. ``lost``
    are (queue number, queue offset) of messages that cannot be read.
    """

    buffer: bytearray
    sizes: Longs
    queue_numbers: Longs
    queue_offsets: Longs
    lost: list[tuple[int, int]]
    log_bytes: int
    """The log offset up to which was read."""

    def ascends(self) -> bool:
        """Whether the offsets of each queue ascend, as those of every broker do."""
        order = np.argsort(self.queue_numbers, kind="stable")
        numbers, offsets = self.queue_numbers[order], self.queue_offsets[order]
        return not ((np.diff(numbers) == 0) & (np.diff(offsets) <= 0)).any()

    def ascending(self) -> TakenRange:
        """The same without the fewest messages whose places in the log and in their queue
        contradict each other, as where the queue offset in a record is damaged; they are lost."""
        kept = np.zeros(len(self.sizes), np.bool_)
        for number in np.unique(self.queue_numbers).tolist():
            rows = np.flatnonzero(self.queue_numbers == number)
            kept[rows[_longest_ascending(self.queue_offsets[rows].tolist())]] = True
        columns = self.queue_numbers, self.queue_offsets
        lost = zip(*(column[~kept].tolist() for column in columns), strict=True)
        records = zip(self.records(), kept.tolist(), strict=True)
        return self._replace(
            buffer=bytearray().join([record for record, is_kept in records if is_kept]),
            sizes=self.sizes[kept],
            queue_numbers=self.queue_numbers[kept],
            queue_offsets=self.queue_offsets[kept],
            lost=[*self.lost, *lost],
        )

    def records(self) -> Iterator[bytes]:
        """Give each record."""
        end = 0
        for size in self.sizes.tolist():
            start, end = end, end + size
            yield bytes(self.buffer[start:end])

    def parts(self, most: int) -> Iterator[TakenRange]:
        """Give the same in parts of at most so many records."""
        if len(self.sizes) <= most:
            yield self
            return
        ends = np.cumsum(self.sizes)
        for row in range(0, len(self.sizes), most):
            rows = slice(row, row + most)
            begin = int(ends[row] - self.sizes[row])
            yield self._replace(
                buffer=self.buffer[begin : int(ends[rows][-1])],
                sizes=self.sizes[rows],
                queue_numbers=self.queue_numbers[rows],
                queue_offsets=self.queue_offsets[rows],
            )


def _longest_ascending(values: Sequence[int]) -> list[int]:
    """The places of a longest strictly ascending part of some values (patience sorting)."""
    ends: list[int] = []  # the least value at which a part of each length ends
    places: list[int] = []  # and where that value is
    before: list[int] = []  # the place before each one in its part
    for place, value in enumerate(values):
        length = bisect_left(ends, value)
        before.append(places[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        places[length : length + 1] = [place]
    found = []
    place = places[-1] if places else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


class _Queue:
    """Units of one range that were read ahead."""

    __slots__ = ("following", "next_offset", "number", "range", "units")

    def __init__(self, number: int, wanted: QueueRange) -> None:
        self.number = number
        self.range = wanted
        self.next_offset = wanted.begin  # of the first one in ``units``
        self.following = wanted.begin  # after the last one in it
        self.units: NDArray[Any] = np.empty(0, _UNIT)


class RangeReader:
    """Reads the messages of some ranges. Damage is skipped and reported."""

    def __init__(self, view: StoreView, ranges: Sequence[QueueRange]) -> None:
        self._view = view
        self._ranges = ranges
        self._log = view.files.apart().log
        self._log_min, self._log_end = view.log_min_offset(), view.log_max_offset()
        self._units_per_file = view.config.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
        self._fields = [topic_field(wanted.topic) for wanted in ranges]
        self._queue_ids = np.array([wanted.queue_id for wanted in ranges], np.int64)
        self._missing: list[tuple[int, int]] = []

    def stretches(self) -> Iterator[TakenRange]:
        """Give all messages, a stretch of the log at a time."""
        queues = [_Queue(number, wanted) for number, wanted in enumerate(self._ranges)]
        heads = [(place, queue.number) for queue in queues if (place := self._head(queue)) >= 0]
        heapify(heads)
        before = heads[0][0] if heads else 0
        while heads:
            limit = heads[0][0] + STRETCH_BYTES
            parts: list[tuple[int, Longs, NDArray[Any]]] = []
            while heads and heads[0][0] < limit:
                _, number = heappop(heads)
                queue = queues[number]
                while (place := self._head(queue)) >= 0 and place < limit:
                    parts.append((number, *self._take(queue, limit)))
                if place >= 0:
                    heappush(heads, (place, number))
            after = heads[0][0] if heads else self._log_end
            yield self._read(parts, max(0, after - before))
            before = after

    # -- units --------------------------------------------------------------------------------

    def _head(self, queue: _Queue) -> int:
        """The log offset of a queue's next message, -1 at its end. Notes lost messages on the
        way."""
        while True:
            if not len(queue.units) and not self._refill(queue):
                return -1
            units = queue.units
            good = self._could_be(units)
            first = int(good.argmax()) if good.any() else len(units)
            if first:
                self._lose(queue, units[:first])
                queue.units = units[first:]
                queue.next_offset += first
            if len(queue.units):
                return int(queue.units["place"][0])

    def _refill(self, queue: _Queue) -> bool:
        view, wanted = self._view, queue.range
        while queue.following < wanted.end:
            offset = queue.following
            count = min(_UNITS, wanted.end - offset)
            data = view.unit_bytes(wanted.topic, wanted.queue_id, offset, count)
            if data:
                queue.units = np.frombuffer(data, _UNIT)
                queue.next_offset = offset
                queue.following = offset + len(queue.units)
                return True
            # The file is gone.
            end = offset + self._units_per_file - offset % self._units_per_file
            queue.following = min(end, wanted.end)
            self._missing += [(queue.number, lost) for lost in range(offset, queue.following)]
        return False

    def _could_be(self, units: NDArray[Any]) -> NDArray[np.bool_]:
        places = units["place"].astype(np.int64)
        sizes = units["size"].astype(np.int64)
        known = (sizes > 0) & (sizes < PRE_BLANK_SIZE) & (places >= self._log_min)
        could: NDArray[np.bool_] = known & (places + sizes <= self._log_end)
        return could

    def _lose(self, queue: _Queue, units: NDArray[Any]) -> None:
        """Note messages that are lost; fillers never stood for one."""
        fillers = units["size"] == PRE_BLANK_SIZE
        self._missing += [
            (queue.number, queue.next_offset + at) for at in np.flatnonzero(~fillers).tolist()
        ]

    def _take(self, queue: _Queue, limit: int) -> tuple[Longs, NDArray[Any]]:
        """The units of a queue before ``limit``, or before an invalid one."""
        units = queue.units
        stops = (units["place"] >= limit) | ~self._could_be(units)
        count = int(stops.argmax()) if stops.any() else len(units)
        offsets = np.arange(queue.next_offset, queue.next_offset + count)
        queue.units = units[count:]
        queue.next_offset += count
        return offsets, units[:count]

    # -- records ------------------------------------------------------------------------------

    def _read(self, parts: list[tuple[int, Longs, NDArray[Any]]], log_bytes: int) -> TakenRange:
        numbers = np.repeat([part[0] for part in parts], [len(part[1]) for part in parts])
        offsets = np.concatenate([part[1] for part in parts])
        places = np.concatenate([part[2]["place"].astype(np.int64) for part in parts])
        sizes = np.concatenate([part[2]["size"].astype(np.int64) for part in parts])
        order = np.argsort(places, kind="stable")
        numbers, offsets, places, sizes = (c[order] for c in (numbers, offsets, places, sizes))
        buffer, good = bytearray(), np.ones(len(places), np.bool_)
        cuts = np.flatnonzero(np.diff(places // self._log.file_size)) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True):
            rows = slice(start, end)
            of_file = numbers[rows], offsets[rows], places[rows], sizes[rows]
            found, good[rows] = self._of_file(*of_file)
            buffer = buffer + found if buffer else found
        lost, self._missing = self._missing, []
        if not good.all():
            lost += list(zip(numbers[~good].tolist(), offsets[~good].tolist(), strict=True))
            numbers, offsets, sizes = numbers[good], offsets[good], sizes[good]
        taken = TakenRange(buffer, sizes, numbers, offsets, lost, log_bytes)
        return taken if taken.ascends() else taken.ascending()

    def _of_file(
        self, numbers: Longs, offsets: Longs, places: Longs, sizes: Longs
    ) -> tuple[bytearray, NDArray[np.bool_]]:
        """The records of one log file, and which of them do not contradict their units."""
        size = self._log.file_size
        first = int(places[0]) // size * size
        file = self._log.at(first)
        if file is None:
            return bytearray(), np.zeros(len(places), np.bool_)
        rows = np.stack((numbers, offsets, places - first, sizes))
        buffer, marks = take_records(
            file.view, first, rows.reshape(-1).data, self._queue_ids.data, self._fields
        )
        good = np.frombuffer(marks, np.bool_).copy()
        if good.all():
            return buffer, good
        return self._with_unusual(buffer, good, (numbers, offsets, places, sizes))

    def _with_unusual(
        self,
        buffer: bytearray,
        good: NDArray[np.bool_],
        of_file: tuple[Longs, Longs, Longs, Longs],
    ) -> tuple[bytearray, NDArray[np.bool_]]:
        """The good rows, whose records lie in ``buffer``, and all others that do not contradict
        their units, in order."""
        copied, bad = np.flatnonzero(good), np.flatnonzero(~good)
        ends = [0, *np.cumsum(of_file[3][copied]).tolist()]
        whole, begin = bytearray(), 0
        for row, at in zip(bad.tolist(), np.searchsorted(copied, bad).tolist(), strict=True):
            whole += buffer[ends[begin] : ends[at]]
            begin = at
            number, offset, place, size = (int(column[row]) for column in of_file)
            record = self._unusual(number, offset, place, size)
            if record is not None:
                whole += record
                good[row] = True
        whole += buffer[ends[begin] :]
        return whole, good

    def _unusual(self, number: int, offset: int, place: int, size: int) -> bytes | None:
        """The record of a unit in an unusual case: version 2, IPv6 hosts, or damage."""
        wanted = self._ranges[number]
        unit = (place, size, 0)
        message = self._view.message_of_unit(wanted.topic, wanted.queue_id, offset, unit)
        if message is None or message.topic != wanted.topic:
            return None
        first = place - place % self._log.file_size
        file = self._log.at(first)
        return None if file is None else file.map[place - first : place - first + size]
