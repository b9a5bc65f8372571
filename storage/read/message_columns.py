"""Reading many messages of a queue at once, as columns: for dumping whole topics.

The same checks as a read of single messages, done with NumPy over a block of records of one log
file. A block in which anything is unusual (version 2, IPv6 hosts, light queues, damage, a file
that is gone) is read message by message instead, so both ways give the same messages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage import native
from storage.format.compress import decompress
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.crc import CRC_MASK, bulk_crc32
from storage.format.layout import HEADS, MESSAGE_MAGIC_V1
from storage.format.sys_flag import MessageSysFlag
from storage.log.record_reader import UNUSUAL
from storage.queue.reader import QueueBounds
from storage.results import GetMessageStatus

from .get_message import status_outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.format.message import MessageExt
    from storage.log.record_reader import RecordReader
    from storage.queue.reader import QueueReader

_HEAD_SIZE: Final = HEADS[0].size
_LONG: Final = Struct(">q")
_FEW: Final = 16


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Messages of one queue, column by column; item i of each belongs to the same message.

    ``stored_bodies`` are as stored, see :meth:`body`. Offsets and statuses mean the same as in
    GetMessageResult; queue offsets may jump where a message could not be read.
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
        """Number of messages (not of columns)."""
        return len(self.stored_bodies)

    def bodies(self, limit: int) -> list[bytes]:
        """All bodies as they were sent; BodyTooLargeError if one inflates beyond ``limit`` bytes,
        BodyError if one can not be inflated."""
        packed = MessageSysFlag.COMPRESSED_FLAG
        if not any(flag & packed for flag in set(self.sys_flags)):
            return self.stored_bodies
        return [
            decompress(body, flag, limit)
            for body, flag in zip(self.stored_bodies, self.sys_flags, strict=True)
        ]


class ColumnReader:
    """Reads column batches of any queue of one store. Thread-safe."""

    def __init__(self, log: ReadOnlyFiles, records: RecordReader) -> None:
        self._log = log
        self._records = records
        self._crc_of = bulk_crc32()

    def read(
        self, queue: QueueReader, bounds: QueueBounds, offset: int, count: int, max_bytes: int
    ) -> ColumnBatch:
        """Read up to ``count`` messages and about ``max_bytes`` of records, at least one message.

        Reads on over the end of a queue file. Status NO_MATCHED_MESSAGE means that none of the
        units passed could be read.
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
        """Answer for what can not be a queue."""
        return _empty(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0, QueueBounds(0, 0))

    def _block(self, queue: QueueReader, offset: int, units: bytes, max_bytes: int) -> ColumnBatch:
        """Read some of the units that begin at ``offset``, at least the first one."""
        block = self._compiled_block(queue, offset, units, max_bytes)
        if block is not None:
            return block
        if len(units) <= _FEW * CQ_STORE_UNIT_SIZE:
            return self._few(queue, offset, units, max_bytes)
        import numpy as np

        table = np.frombuffer(units, _unit_layout())
        places = table["offset"].astype(np.int64)
        sizes = table["size"].astype(np.int64)
        file_size = self._log.file_size
        first = int(places[0]) - int(places[0]) % file_size
        # one log file, and not more bytes than asked for
        fits = (places >= first) & (places < first + file_size) & (sizes > 0)
        fits &= np.cumsum(np.maximum(sizes, 0)) <= max(max_bytes, int(sizes[0]))
        number = len(fits) if fits.all() else max(1, int(fits.argmin()))
        places, sizes = places[:number], sizes[:number]
        file = self._log.at(first)
        if file is not None and number > _FEW:
            block = self._plain_block(queue, offset, file, places, sizes)
            if block is not None:
                return block
        return self._one_by_one(queue, offset, places.tolist(), sizes.tolist())

    def _compiled_block(
        self, queue: QueueReader, offset: int, units: bytes, max_bytes: int
    ) -> ColumnBatch | None:
        """The same by the compiled form; None for what the pure one is to look at."""
        compiled, key = native.compiled, queue.key
        if compiled is None or key.topic_field is None or not units:
            return None
        (place,) = _LONG.unpack_from(units)
        first = place - place % self._log.file_size
        file = self._log.at(first)
        if file is None:
            return None
        found = compiled.read_bodies(
            units,
            file.view,
            first,
            key.topic_field,
            key.queue_id,
            offset,
            max_bytes,
            UNUSUAL,
        )
        if found is None:
            return None
        bodies: list[bytes] = found[0]
        columns = memoryview(found[1]).cast("q")
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

    def _plain_block(
        self,
        queue: QueueReader,
        offset: int,
        file: ReadMap,
        places: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> ColumnBatch | None:
        """Read the records of one file at ``places`` of the log, None if any is unusual."""
        import numpy as np
        from numpy.lib.stride_tricks import sliding_window_view

        field = queue.key.topic_field
        positions = places - places[0] + places[0] % self._log.file_size
        smallest = _HEAD_SIZE + 2 + len(field or b"")
        if (
            field is None
            or int(positions.min()) < 0
            or int(sizes.min()) < smallest
            or int((positions + sizes).max()) > file.length
        ):
            return None
        data = np.frombuffer(file.view, np.uint8)
        heads = sliding_window_view(data, _HEAD_SIZE)[positions].view(_head_layout())[:, 0]
        numbers = np.arange(offset, offset + len(positions))
        lengths = heads["body_length"].astype(np.int64)
        plain = (
            (heads["total"] == sizes)
            & (heads["magic"] == MESSAGE_MAGIC_V1)
            & (heads["queue_id"] == queue.key.queue_id)
            & (heads["queue_offset"] == numbers)
            & (heads["physical_offset"] == places)
            & (heads["sys_flag"] & UNUSUAL == 0)
            & (lengths >= 0)
            & (lengths <= sizes - smallest)
        )
        if not plain.all():
            return None
        ends = positions + _HEAD_SIZE + lengths
        wanted = np.frombuffer(field, np.uint8)
        if not (sliding_window_view(data, len(field))[ends] == wanted).all():
            return None
        properties_at = ends + len(field)
        property_lengths = data[properties_at].astype(np.int64) << 8 | data[properties_at + 1]
        if not (properties_at + 2 + property_lengths == positions + sizes).all():
            return None
        read = file.map
        crc_of = self._crc_of
        starts = (positions + _HEAD_SIZE).tolist()
        bodies = [read[start:end] for start, end in zip(starts, ends.tolist(), strict=True)]
        if [crc_of(body) & CRC_MASK for body in bodies] != heads["body_crc"].tolist():
            return None
        return ColumnBatch(
            GetMessageStatus.FOUND,
            offset + len(bodies),
            0,
            0,
            range(offset, offset + len(bodies)),
            heads["store_timestamp"].tolist(),
            heads["physical_offset"].tolist(),
            sizes.tolist(),
            heads["sys_flag"].tolist(),
            bodies,
        )

    def _few(self, queue: QueueReader, offset: int, units: bytes, max_bytes: int) -> ColumnBatch:
        places: list[int] = []
        sizes: list[int] = []
        left = max_bytes
        for place, size, _ in CQ_STORE_UNIT.iter_unpack(units):
            if places and size > left:
                break
            places.append(place)
            sizes.append(size)
            left -= max(size, 0)
        return self._one_by_one(queue, offset, places, sizes)

    def _one_by_one(
        self, queue: QueueReader, offset: int, places: list[int], sizes: list[int]
    ) -> ColumnBatch:
        read = self._records.read
        messages: list[tuple[int, MessageExt]] = []
        for number, (place, size) in enumerate(zip(places, sizes, strict=True), offset):
            message = read(place, size, queue.key, number)
            if message is not None:
                messages.append((number, message))
        return ColumnBatch(
            GetMessageStatus.FOUND,
            offset + len(places),
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


def _unit_layout() -> np.dtype[np.void]:
    import numpy as np

    return np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])


def _head_layout() -> np.dtype[np.void]:
    import numpy as np

    return np.dtype(
        [
            ("total", ">i4"),
            ("magic", ">i4"),
            ("body_crc", ">i4"),
            ("queue_id", ">i4"),
            ("flag", ">i4"),
            ("queue_offset", ">i8"),
            ("physical_offset", ">i8"),
            ("sys_flag", ">i4"),
            ("born_timestamp", ">i8"),
            ("born_host", "V8"),
            ("store_timestamp", ">i8"),
            ("store_host", "V8"),
            ("reconsume_times", ">i4"),
            ("prepared_transaction_offset", ">i8"),
            ("body_length", ">i4"),
        ]
    )
