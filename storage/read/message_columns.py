"""Reading many messages of a queue at once, as columns: for dumping whole topics.

Compiled code reads a block of records of one log file with the checks of a single read. A block
with an unusual record (version 2, IPv6 hosts, LMQs, damage, a missing file) is read message
by message, and gives the same messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from storage.format.compress import decompress
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.sys_flag import MessageSysFlag
from storage.queue.reader import QueueBounds
from storage.results import GetMessageStatus

from .get_message import status_outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.format.message import MessageExt
    from storage.log.record_reader import RecordReader
    from storage.queue.reader import QueueReader


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Messages of one queue, column by column; item i of each column is of message i.

    ``stored_bodies`` are as stored, see :meth:`bodies`. Offsets and statuses mean the same as in
    GetMessageResult. Queue offsets skip messages that could not be read.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    queue_offsets: Sequence[int]
    store_timestamps: Sequence[int]
    commitlog_offsets: Sequence[int]
    store_sizes: Sequence[int]
    sys_flags: Sequence[int]
    stored_bodies: list[bytes]

    def __len__(self) -> int:
        """Count the messages (not the columns)."""
        return len(self.stored_bodies)

    def bodies(self, limit: int) -> list[bytes]:
        """All bodies as they were sent; BodyTooLargeError if one inflates beyond ``limit`` bytes,
        BodyError if one cannot be inflated."""
        bodies = self.bodies_within(limit, len(self) * limit)
        assert bodies is not None
        return bodies

    def bodies_within(self, limit: int, room: int) -> list[bytes] | None:
        """The same; None if the inflated ones have more than ``room`` bytes altogether."""
        packed = MessageSysFlag.COMPRESSED_FLAG
        if not any(flag & packed for flag in set(self.sys_flags)):
            return self.stored_bodies
        bodies: list[bytes] = []
        for stored, flag in zip(self.stored_bodies, self.sys_flags, strict=True):
            body = decompress(stored, flag, limit)
            bodies.append(body)
            if flag & packed:
                room -= len(body)
                if room < 0:
                    return None
        return bodies


class ColumnReader:
    """Reads column batches of any queue of one store. Thread-safe."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records

    def read(
        self, queue: QueueReader, bounds: QueueBounds, offset: int, count: int, max_bytes: int
    ) -> ColumnBatch:
        """Read up to ``count`` messages and about ``max_bytes`` of records, at least one message.

        Goes on after the end of a queue file. Status NO_MATCHED_MESSAGE: the message of no unit
        could be read.
        """
        if not bounds.min_offset <= offset < bounds.max_offset:
            outside = status_outside(bounds, offset)
            return _empty(outside.status, outside.next_begin_offset, bounds)
        pieces: list[ColumnBatch] = []
        found = size = 0
        position = offset
        while position < bounds.max_offset and found < count and size < max_bytes:
            units = queue.units(position, min(count - found, bounds.max_offset - position))
            if units is None:
                position = min(queue.after_gap(position), bounds.max_offset)
                continue
            piece = self._block(queue, position, units, max_bytes - size)
            position = piece.next_begin_offset
            if len(piece):
                found += len(piece)
                size += int(sum(piece.store_sizes))
                pieces.append(piece)
        if not pieces:
            return _empty(GetMessageStatus.NO_MATCHED_MESSAGE, position, bounds)
        return _joined(pieces, position, bounds)

    def nothing(self) -> ColumnBatch:
        """Answer for a name that cannot be a queue."""
        return _empty(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, QueueBounds(0, 0))

    def _block(self, queue: QueueReader, offset: int, units: bytes, max_bytes: int) -> ColumnBatch:
        """Read some of the units that begin at ``offset``, at least the first one."""
        found = self._records.read_bodies(units, queue.key, offset, max_bytes)
        if found is None:
            return self._one_by_one(queue, offset, units, max_bytes)
        bodies, columns = found
        read, width = len(bodies), len(columns) // 4
        times, places, sizes, flags = (
            columns[start : start + read] for start in range(0, 4 * width, width)
        )
        return ColumnBatch(
            GetMessageStatus.FOUND,
            offset + read,
            0,
            0,
            range(offset, offset + read),
            times,
            places,
            sizes,
            flags,
            bodies,
        )

    def _one_by_one(
        self, queue: QueueReader, offset: int, units: bytes, max_bytes: int
    ) -> ColumnBatch:
        messages: list[tuple[int, MessageExt]] = []
        end = offset
        left = max_bytes
        for log_offset, size, _ in CQ_STORE_UNIT.iter_unpack(units):
            if end > offset and size > left:
                break
            message = self._records.read(log_offset, size, queue.key, end)
            if message is not None:
                messages.append((end, message))
            end += 1
            left -= max(size, 0)
        return ColumnBatch(
            GetMessageStatus.FOUND,
            end,
            0,
            0,
            [number for number, _ in messages],
            [message.store_timestamp for _, message in messages],
            [message.commitlog_offset for _, message in messages],
            [message.store_size for _, message in messages],
            [message.sys_flag for _, message in messages],
            [message.stored_body for _, message in messages],
        )


def _empty(status: GetMessageStatus, following: int, bounds: QueueBounds) -> ColumnBatch:
    return ColumnBatch(status, following, *bounds, (), (), (), (), (), [])


def _joined(pieces: list[ColumnBatch], following: int, bounds: QueueBounds) -> ColumnBatch:
    if len(pieces) == 1:
        return replace(
            pieces[0],
            next_begin_offset=following,
            min_offset=bounds.min_offset,
            max_offset=bounds.max_offset,
        )
    return ColumnBatch(
        GetMessageStatus.FOUND,
        following,
        *bounds,
        [offset for piece in pieces for offset in piece.queue_offsets],
        [timestamp for piece in pieces for timestamp in piece.store_timestamps],
        [offset for piece in pieces for offset in piece.commitlog_offsets],
        [size for piece in pieces for size in piece.store_sizes],
        [flag for piece in pieces for flag in piece.sys_flags],
        [body for piece in pieces for body in piece.stored_bodies],
    )
