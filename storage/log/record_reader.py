"""From a log offset to a message, given only if nothing contradicts it.

A unit of a consume queue holds the log offset and the size of a record. The record holds its topic,
queue, queue offset and log offset, and the CRC of its body. A record that contradicts any of them
is not given. The only exception is multi-dispatch: a unit of an LMQ names a record of
another topic, and that record's properties name the queue.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.crc import CRC_MASK, whole_crc32
from storage.format.layout import (
    HEAD_SIZES,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    MIN_RECORD_SIZE,
    TWO_INTS,
    store_timestamp_position,
)
from storage.format.message import (
    LMQ_PREFIX,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    MessageExt,
)
from storage.format.prepared_table import PreparedTable
from storage.format.record import CheckKind, RecordError, check_record, decode_record, read_head
from storage.format.sys_flag import REPLACED_FLAG
from storage.format.tombstone import is_replaced

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.format.prepared import PreparedRecords

_HEAD_SIZE: Final = HEAD_SIZES[0]
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_TIMES: Final = Struct(">ii28xi16xq")
"""Size, magic, sysFlag and store time of a record that was born at an IPv4 host."""
_BORN_V6: Final = 0x10
UNUSUAL: Final = 0x30 | REPLACED_FLAG
"""Bits of sysFlag of records that are checked one by one: IPv6 hosts, and replaced ones."""
_MAGICS: Final = (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
_USUAL_SIZE: Final = (4 << 20) + (64 << 10)
"""Records up to this size (Java's limit) are copied at once; a larger claim is examined first."""

_NO_LIMIT: Final = 1 << 62


class RecordNames(NamedTuple):
    """The properties that say where a message goes, and a topic to which no message goes."""

    topic: str
    queue_id: str
    refused: str


class QueueKey:
    """A queue as records name it, prepared for comparison."""

    __slots__ = ("queue_id", "topic", "topic_field", "topic_name")

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        name = self.topic_name = topic.encode("utf-8", "surrogateescape")
        # as in a record of version 1; only version 2 has longer topics
        self.topic_field = bytes((len(name),)) + name if len(name) < 128 else None


class RecordReader:
    """Reads single records of a log. Thread-safe; takes no lock."""

    def __init__(self, log: ReadOnlyFiles) -> None:
        self.log = log
        """The files that it reads."""
        self._open_files = log.opened
        self._file_size = log.file_size

    def read(
        self, offset: int, size: int, key: QueueKey, queue_offset: int, *, check_body: bool = True
    ) -> MessageExt | None:
        """Read the record of a unit of a queue, or None if it contradicts the unit.

        None, too, where the log file is missing. Never reads more bytes than a record can have.
        Without ``check_body`` the body may be damaged.
        """
        unit = CQ_STORE_UNIT.pack(offset, size, 0)
        for message in self.read_run(unit, key, queue_offset, 1, 0)[0]:
            return message
        position = offset % self._file_size
        file = self.log.at(offset - position)
        if file is None or not MIN_RECORD_SIZE <= size <= file.length - position:
            return None
        if size > _USUAL_SIZE and not self._claims(file.view, position, size):
            return None
        record = file.map[position : position + size]
        return self._unusual(record, offset, key, queue_offset, check_body=check_body)

    def read_run(
        self,
        units: bytes | memoryview,
        key: QueueKey,
        queue_offset: int,
        count: int,
        byte_limit: int,
    ) -> tuple[list[MessageExt], int]:
        """Read records of one log file as long as they are usual and agree with their units.

        Ends before a record that :meth:`read` must check more closely, after ``count`` messages,
        and where their records would exceed ``byte_limit``; the first one always fits. The result
        is that of :meth:`read` for each unit. Gives the bytes of the records, too.
        """
        field = key.topic_field
        if field is None or not units:
            return [], 0
        (offset,) = _LONG.unpack_from(units)
        first = offset - offset % self._file_size
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return [], 0
        return read_run(
            units,
            file.view,
            first,
            key.topic,
            field,
            key.queue_id,
            queue_offset,
            count,
            byte_limit,
            UNUSUAL,
        )

    def read_bodies(
        self, units: bytes, key: QueueKey, queue_offset: int, max_bytes: int
    ) -> tuple[list[bytes], memoryview] | None:
        """Read the bodies of records of one log file, up to ``max_bytes`` of records, at least one.

        With it as many store times as units, then log offsets, sizes and flags. None if one of the
        records is unusual, or if nothing is compiled.
        """
        field = key.topic_field
        if field is None or not units:
            return None
        (offset,) = _LONG.unpack_from(units)
        first = offset - offset % self._file_size
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return None
        found = read_bodies(
            units, file.view, first, field, key.queue_id, queue_offset, max_bytes, UNUSUAL
        )
        return None if found is None else (found[0], memoryview(found[1]).cast("q"))

    def read_each(self, units: bytes, key: QueueKey, queue_offset: int) -> list[MessageExt | None]:
        """Call :meth:`read` for each unit of a queue; the first unit is that of ``queue_offset``.

        All messages are in memory at once: call it for few units.
        """
        found: list[MessageExt | None] = []
        count = len(units) // CQ_STORE_UNIT_SIZE
        while len(found) < count:
            rest = units[len(found) * CQ_STORE_UNIT_SIZE :]
            run, _ = self.read_run(rest, key, queue_offset + len(found), count, _NO_LIMIT)
            found += run
            if len(found) < count:
                place, size, _ = CQ_STORE_UNIT.unpack_from(rest, len(run) * CQ_STORE_UNIT_SIZE)
                found.append(self.read(place, size, key, queue_offset + len(found)))
        return found

    def readdressed(
        self, units: bytes, key: QueueKey, queue_offset: int, names: RecordNames
    ) -> tuple[PreparedRecords, int] | None:
        """Make the records of messages that are stored again where their properties say.

        Takes consecutive usual records of one log file, as :meth:`read_run` reads them, and gives
        their number, too. None if the first one is unusual, or if nothing is compiled.
        """
        field = key.topic_field
        if field is None or not units:
            return None
        (offset,) = _LONG.unpack_from(units)
        first = offset - offset % self._file_size
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return None
        made = readdressed(
            units, file.view, first, field, key.queue_id, queue_offset, UNUSUAL, *names
        )
        if made is None:
            return None
        *columns, count = made
        return PreparedTable(*columns), count

    def look(self, offset: int, log_end: int) -> MessageExt | None:
        """Read the record that begins at ``offset``; None if there is no whole one before
        ``log_end`` (DefaultMessageStore.lookMessageByOffset)."""
        if not 0 <= offset < log_end:
            return None
        position = offset % self._file_size
        first = offset - position
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return None
        limit = min(file.length, log_end - first)
        found: MessageExt | None = read_at(file.view, position, limit, offset, UNUSUAL)
        return self._look(file, position, limit, offset) if found is None else found

    def _look(self, file: ReadMap, position: int, limit: int, offset: int) -> MessageExt | None:
        """The same without compiled code, and for unusual records."""
        if limit - position < MIN_RECORD_SIZE:
            return None
        (size,) = _INT.unpack_from(file.view, position)
        if size > _USUAL_SIZE and not self._is_whole(file, position, limit):
            return None
        try:
            message = decode_record(file.view, position, size)
        except RecordError:
            return None
        body = message.stored_body
        if position + size > limit or message.commitlog_offset != offset:
            return None
        if body and whole_crc32(body) & CRC_MASK != message.body_crc:
            return None
        return None if is_replaced(message.sys_flag, message.stored_body) else message

    def store_timestamp(self, offset: int, size: int) -> int | None:
        """Store time (ms) of the record of a unit, without reading the rest of it.

        None if its file is missing, or size or magic contradict the unit
        (CommitLog.pickupStoreTimestamp).
        """
        position = offset % self._file_size
        first = offset - position
        file = self._open_files.get(first) or self.log.at(first)
        if file is None or not MIN_RECORD_SIZE <= size <= file.length - position:
            return None
        total, magic, sys_flag, timestamp = _TIMES.unpack_from(file.view, position)
        if total != size or magic not in _MAGICS:
            return None
        if sys_flag & _BORN_V6:
            at = position + store_timestamp_position(sys_flag)
            timestamp = _LONG.unpack_from(file.view, at)[0]
        found: int = timestamp
        return found

    def _is_whole(self, file: ReadMap, position: int, limit: int) -> bool:
        found = check_record(file.view, position, limit, check_crc=False)
        return found.kind is CheckKind.MESSAGE

    def _claims(self, view: memoryview, position: int, size: int) -> bool:
        """Whether a record of ``size`` bytes begins here, by its first two fields."""
        total, magic = TWO_INTS.unpack_from(view, position)
        return bool(total == size and magic in _MAGICS)

    def _unusual(
        self, record: bytes, offset: int, key: QueueKey, queue_offset: int, *, check_body: bool
    ) -> MessageExt | None:
        """The same for version 2, IPv6 hosts and LMQs, or for a record that is wrong."""
        try:
            message = decode_record(record, 0, len(record))
        except RecordError:
            return None
        if message.commitlog_offset != offset:
            return None
        if check_body and whole_crc32(message.stored_body) & CRC_MASK != message.body_crc:
            return None
        if is_replaced(message.sys_flag, message.stored_body):
            return None
        own = (message.topic, message.queue_id, message.queue_offset)
        if own == (key.topic, key.queue_id, queue_offset):
            return message
        return message if is_dispatched_to(message, key.topic, key.queue_id, queue_offset) else None


def _read_run(
    units: bytes | memoryview,
    view: memoryview,
    first: int,
    topic: str,
    field: bytes,
    queue_id: int,
    queue_offset: int,
    count: int,
    byte_limit: int,
    unusual: int,
    /,
) -> tuple[list[MessageExt], int]:
    """Read records as RecordReader.read_run does; ``view`` is the log file that starts at
    ``first``."""
    messages: list[MessageExt] = []
    left = byte_limit
    for offset, size, _ in CQ_STORE_UNIT.iter_unpack(units):
        if messages and (size > left or len(messages) == count):
            break
        position = offset - first
        if position < 0 or not MIN_RECORD_SIZE <= size <= min(_USUAL_SIZE, len(view) - position):
            break
        try:
            message = decode_record(view, position, size)
        except RecordError:
            break
        body = message.stored_body
        (body_length,) = _INT.unpack_from(view, position + _HEAD_SIZE - _INT.size)
        topic_at = position + _HEAD_SIZE + len(body)
        if (
            message.version != 1
            or message.sys_flag & unusual
            or body_length < 0
            or message.commitlog_offset != offset
            or message.queue_id != queue_id
            or message.queue_offset != queue_offset + len(messages)
            or view[topic_at : topic_at + len(field)] != field
            or whole_crc32(body) & CRC_MASK != message.body_crc
        ):
            break
        message.topic = topic
        messages.append(message)
        left -= size
    return messages, byte_limit - left


read_run: Final = native.form("read_run", _read_run)
read_bodies: Final = native.form("read_bodies", native.nothing)
readdressed: Final = native.form("readdressed", native.nothing)
read_at: Final = native.form("read_at", native.nothing)


def offset_in_queue(message: MessageExt, topic: str) -> int:
    """The offset of a message in the queue of ``topic`` that it was read from: its own, or in a
    light queue the one that multi-dispatch gave it."""
    if message.topic != topic:
        names = (message.get_property(PROPERTY_INNER_MULTI_DISPATCH) or "").split(",")
        offsets = (message.get_property(PROPERTY_INNER_MULTI_QUEUE_OFFSET) or "").split(",")
        for name, offset in zip(names, offsets, strict=False):
            if name == topic and offset.isdecimal():
                return int(offset)
    return message.queue_offset


def is_dispatched_to(message: MessageExt, topic: str, queue_id: int, queue_offset: int) -> bool:
    """Whether multi-dispatch puts a message into this queue at this offset (MultiDispatch)."""
    names = message.get_property(PROPERTY_INNER_MULTI_DISPATCH)
    offsets = message.get_property(PROPERTY_INNER_MULTI_QUEUE_OFFSET)
    if not names or not offsets:
        return False
    if queue_id != (0 if topic.startswith(LMQ_PREFIX) else message.queue_id):
        return False
    own = (topic, str(queue_offset))
    return own in zip(names.split(","), offsets.split(","), strict=False)


def names_queue(
    view: memoryview, position: int, size: int, key: QueueKey, queue_offset: int
) -> bool:
    """Whether the whole record at ``position`` is this queue's, at this offset."""
    head = read_head(view, position)
    if (head.queue_id, head.queue_offset) == (key.queue_id, queue_offset):
        at = position + head.head_size + max(0, head.body_length)
        field = key.topic_field
        if field is not None and view[at : at + len(field)] == field:
            return True
    try:
        message = decode_record(view, position, size)
    except RecordError:
        return False
    own = (message.topic, message.queue_id, message.queue_offset)
    return own == (key.topic, key.queue_id, queue_offset) or is_dispatched_to(
        message, key.topic, key.queue_id, queue_offset
    )
