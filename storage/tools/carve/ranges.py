"""The messages to carve: ranges of queue offsets, read in the order of the log.

Each queue's units are read a block at a time, and merged by the log offsets of their records. So
the log is read once, forwards, and only where there are wanted records. Memory holds some hundred
units of each queue and the records of one stretch of the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.crc import CRC_MASK, whole_crc32
from storage.format.head_matrix import HEAD_TYPES
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.format.prepared_many import Longs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.readonly import StoreView

STRETCH_BYTES: Final = 16 << 20
"""Bytes of the log whose records are read at once."""
_UNITS: Final = 512
_UNIT: Final = np.dtype([("place", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_HEAD_SIZE: Final = HEAD_SIZES[0]


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

    ``queue_numbers`` are indexes of ranges. ``lost`` are (queue number, queue offset) of messages
    that cannot be read.
    """

    records: list[bytes]
    queue_numbers: Longs
    queue_offsets: Longs
    lost: list[tuple[int, int]]
    log_bytes: int
    """The log offset up to which was read."""


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
        fields = [topic_field(wanted.topic) for wanted in ranges]
        self._fields = fields
        self._field_sizes = np.array([len(field) for field in fields], np.int64)
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
        records: list[bytes | None] = []
        cuts = np.flatnonzero(np.diff(places // self._log.file_size)) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True):
            rows = slice(start, end)
            records += self._of_file(numbers[rows], offsets[rows], places[rows], sizes[rows])
        lost, self._missing = self._missing, []
        if None in records:
            good = np.array([record is not None for record in records])
            lost += list(zip(numbers[~good].tolist(), offsets[~good].tolist(), strict=True))
            numbers, offsets = numbers[good], offsets[good]
        whole = [record for record in records if record is not None]
        return TakenRange(whole, numbers, offsets, lost, log_bytes)

    def _of_file(
        self, numbers: Longs, offsets: Longs, places: Longs, sizes: Longs
    ) -> list[bytes | None]:
        """The records of one log file; None for each that contradicts its unit."""
        size = self._log.file_size
        first = int(places[0]) // size * size
        file = self._log.at(first)
        if file is None or file.length < _HEAD_SIZE:
            return [None] * len(places)
        positions = places - first
        fits = (positions + sizes <= file.length) & (sizes > _HEAD_SIZE)
        count = max(1, file.length - _HEAD_SIZE + 1)
        every: NDArray[Any] = np.ndarray((count,), HEAD_TYPES[0], file.view, strides=(1,))
        heads = every[np.minimum(positions, count - 1)]
        body = heads["body_length"].astype(np.int64)
        plain = (
            fits
            & (heads["total_size"] == sizes)
            & (heads["magic"] == MESSAGE_MAGIC_V1)
            & (heads["queue_id"] == self._queue_ids[numbers])
            & (heads["queue_offset"] == offsets)
            & (heads["physical_offset"] == places)
            & (heads["sys_flag"] & 0x30 == 0)
            & (body >= 0)
            & (body + (_HEAD_SIZE + 2) + self._field_sizes[numbers] <= sizes)
        )
        read, fields = file.map, self._fields
        found: list[bytes | None] = []
        for row, (number, is_plain, at, length, body_size, crc) in enumerate(
            zip(
                numbers.tolist(),
                plain.tolist(),
                positions.tolist(),
                sizes.tolist(),
                body.tolist(),
                heads["body_crc"].tolist(),
                strict=True,
            )
        ):
            if is_plain:
                record = read[at : at + length]
                end = _HEAD_SIZE + body_size
                field = fields[number]
                rest = end + len(field)
                if (
                    record.startswith(field, end)
                    and record[rest] << 8 | record[rest + 1] == length - rest - 2
                    and whole_crc32(record[_HEAD_SIZE:end]) & CRC_MASK == crc
                ):
                    found.append(record)
                    continue
            found.append(self._unusual(number, int(offsets[row]), int(places[row]), length))
        return found

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


def topic_field(topic: str) -> bytes:
    """A topic as a record of version 1 holds it, b"" if none can."""
    name = topic.encode("utf-8", "surrogateescape")
    return bytes((len(name),)) + name if len(name) < 128 else b""
