"""From a place in the log to a message, handed out only if nothing contradicts it.

A unit of a consume queue says where a record lies and how long it is; the record says which topic,
queue and queue offset it belongs to, where it lies itself, and the CRC of its body. A record that
contradicts any of that is not handed out. The one lawful exception is multi-dispatch: a unit of a
light queue names a record of another topic, and that record's properties name the queue.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.crc import CRC_MASK, bulk_crc32
from storage.format.layout import (
    HEADS,
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
    from mmap import mmap

    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.format.prepared import PreparedRecords

_HEAD: Final = HEADS[0]
_HEAD_SIZE: Final = _HEAD.size
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_TIMES: Final = Struct(">ii28xi16xq")
"""Size, magic, sysFlag and store time of a record that was born at an IPv4 host."""
_BORN_V6: Final = 0x10
UNUSUAL: Final = 0x30 | REPLACED_FLAG
"""Bits of sysFlag of records that are looked at one by one: IPv6 hosts, and replaced ones."""
if native.compiled is not None:
    native.compiled.bind(MessageExt)
_MAGICS: Final = (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
_USUAL_SIZE: Final = (4 << 20) + (64 << 10)
"""Records up to this size (Java's limit) are copied at once; a larger claim is examined first."""

_NO_LIMIT: Final = 1 << 62


class RecordNames(NamedTuple):
    """Which properties say where a message goes, and a topic that nothing goes to."""

    topic: str
    queue_id: str
    refused: str


class QueueKey:
    """A queue as records name it, prepared for comparing."""

    __slots__ = ("queue_id", "topic", "topic_field")

    def __init__(self, topic: str, queue_id: int) -> None:
        self.topic = topic
        self.queue_id = queue_id
        name = topic.encode("utf-8", "surrogateescape")
        # as a record of version 1 holds it; longer topics only occur in version 2
        self.topic_field = bytes((len(name),)) + name if len(name) < 128 else None


class RecordReader:
    """Reads single records of a log. Thread-safe; takes no lock."""

    def __init__(self, log: ReadOnlyFiles) -> None:
        self.log = log
        """The files that it reads."""
        self._open_files = log.opened
        self._file_size = log.file_size
        self._crc_of = bulk_crc32()

    def read(self, offset: int, size: int, key: QueueKey, queue_offset: int) -> MessageExt | None:
        """Read the record that a unit of a queue points to, or None if it contradicts the unit.

        Also None where the log's file is missing. Never reads more than the record can be.
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
        return self._unusual(file.map[position : position + size], offset, key, queue_offset)

    def read_run(
        self,
        units: bytes | memoryview,
        key: QueueKey,
        queue_offset: int,
        count: int,
        byte_limit: int,
    ) -> tuple[list[MessageExt], int]:
        """Read records of one log file as long as they are usual ones that agree with their units.

        Ends before whatever :meth:`read` must look at more closely, after ``count`` messages, and
        where their records would exceed ``byte_limit``; the first one always fits. It is
        :meth:`read` for each, without a call for each. Gives the bytes of the records, too.
        """
        compiled, field = native.compiled, key.topic_field
        if field is None or not units:
            return [], 0
        if compiled is None:
            return self._read_run(units, key, field, queue_offset, count, byte_limit)
        (offset,) = _LONG.unpack_from(units)
        first = offset - offset % self._file_size
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return [], 0
        found: tuple[list[MessageExt], int] = compiled.read_run(
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
        return found

    def read_each(self, units: bytes, key: QueueKey, queue_offset: int) -> list[MessageExt | None]:
        """What :meth:`read` gives for each unit of a queue, the first of which is that of
        ``queue_offset``. All of them are in memory then: it is for units of few bytes."""
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

        Of usual records one behind the other in one log file, as :meth:`read_run` reads them;
        with it how many these are. None if the first is none of them, or nothing is compiled.
        """
        compiled, field = native.compiled, key.topic_field
        if compiled is None or field is None or not units:
            return None
        (offset,) = _LONG.unpack_from(units)
        first = offset - offset % self._file_size
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return None
        made = compiled.readdressed(
            units, file.view, first, field, key.queue_id, queue_offset, UNUSUAL, *names
        )
        if made is None:
            return None
        *columns, count = made
        return PreparedTable(*columns), count

    def _read_run(
        self,
        units: bytes | memoryview,
        key: QueueKey,
        field: bytes,
        queue_offset: int,
        count: int,
        byte_limit: int,
    ) -> tuple[list[MessageExt], int]:
        """The pure form of ``read_run`` of storage/native/reading/messages.c."""
        messages: list[MessageExt] = []
        topic, wanted_queue_id, field_size = key.topic, key.queue_id, len(field) + 2
        crc_of, head_of, new = self._crc_of, _HEAD.unpack_from, object.__new__
        first = length = -1
        mapped: mmap | bytes = b""
        view = memoryview(mapped)
        left = byte_limit
        for offset, size, _ in CQ_STORE_UNIT.iter_unpack(units):
            position = offset - first
            if not 0 <= position < length:
                if messages:
                    break
                first = offset - offset % self._file_size
                file = self._open_files.get(first) or self.log.at(first)
                if file is None:
                    break
                position, length, mapped, view = offset - first, file.length, file.map, file.view
            end = position + size
            if not MIN_RECORD_SIZE <= size <= _USUAL_SIZE or end > length:
                break
            if messages and (size > left or len(messages) == count):
                break
            (
                total,
                magic,
                body_crc,
                queue_id,
                flag,
                own_queue_offset,
                physical_offset,
                sys_flag,
                born_timestamp,
                born_host,
                store_timestamp,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                body_length,
            ) = head_of(view, position)
            body_start = position + _HEAD_SIZE
            body_end = body_start + body_length
            properties = body_end + field_size
            if (
                total != size
                or magic != MESSAGE_MAGIC_V1
                or own_queue_offset != queue_offset
                or physical_offset != offset
                or queue_id != wanted_queue_id
                or sys_flag & UNUSUAL
                or body_length < 0
                or properties > end
            ):
                break
            body = mapped[body_start:body_end]
            rest = mapped[body_end:end]
            if (
                not rest.startswith(field)
                or (rest[field_size - 2] << 8 | rest[field_size - 1]) != end - properties
                or crc_of(body) & CRC_MASK != body_crc
            ):
                break
            message: MessageExt = new(MessageExt)
            message.topic = topic
            message.queue_id = queue_id
            message.queue_offset = queue_offset
            message.commitlog_offset = offset
            message.store_size = size
            message.body_crc = body_crc
            message.flag = flag
            message.sys_flag = sys_flag
            message.born_timestamp = born_timestamp
            message.born_host_bytes = born_host
            message.store_timestamp = store_timestamp
            message.store_host_bytes = store_host
            message.reconsume_times = reconsume_times
            message.prepared_transaction_offset = prepared_transaction_offset
            message.stored_body = body
            message.property_bytes = rest[field_size:]
            message.version = 1
            message.added_property_bytes = b""
            message._body = None
            message._properties = None
            messages.append(message)
            queue_offset += 1
            left -= size
        return messages, byte_limit - left

    def look(self, offset: int, log_end: int) -> MessageExt | None:
        """Read the record that begins at ``offset``, None if there is no whole one before
        ``log_end`` (DefaultMessageStore.lookMessageByOffset)."""
        if not 0 <= offset < log_end:
            return None
        position = offset % self._file_size
        first = offset - position
        file = self._open_files.get(first) or self.log.at(first)
        if file is None:
            return None
        limit = min(file.length, log_end - first)
        compiled = native.compiled
        if compiled is not None:
            found: MessageExt | None
            found = compiled.read_at(file.view, position, limit, offset, UNUSUAL)
            if found is not None:
                return found
        return self._look(file, position, limit, offset)

    def _look(self, file: ReadMap, position: int, limit: int, offset: int) -> MessageExt | None:
        """The pure form of ``read_at`` of messages.c (storage/native); for unusual records."""
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
        if body and self._crc_of(body) & CRC_MASK != message.body_crc:
            return None
        return None if is_replaced(message.sys_flag, message.stored_body) else message

    def store_timestamp(self, offset: int, size: int) -> int | None:
        """Store time (ms) of a record that a unit points to, without reading the rest of it.

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
        self, record: bytes, offset: int, key: QueueKey, queue_offset: int
    ) -> MessageExt | None:
        """The same for version 2, IPv6 hosts and light queues, or for a record that is wrong."""
        try:
            message = decode_record(record, 0, len(record))
        except RecordError:
            return None
        if message.commitlog_offset != offset:
            return None
        if self._crc_of(message.stored_body) & CRC_MASK != message.body_crc:
            return None
        if is_replaced(message.sys_flag, message.stored_body):
            return None
        own = (message.topic, message.queue_id, message.queue_offset)
        if own == (key.topic, key.queue_id, queue_offset):
            return message
        return message if is_dispatched_to(message, key.topic, key.queue_id, queue_offset) else None


def is_dispatched_to(message: MessageExt, topic: str, queue_id: int, queue_offset: int) -> bool:
    """Tell whether multi-dispatch puts a message into this queue at this offset (MultiDispatch)."""
    names = message.get_property(PROPERTY_INNER_MULTI_DISPATCH)
    offsets = message.get_property(PROPERTY_INNER_MULTI_QUEUE_OFFSET)
    if not names or not offsets:
        return False
    if queue_id != (0 if topic.startswith(LMQ_PREFIX) else message.queue_id):
        return False
    wanted = (topic, str(queue_offset))
    return wanted in zip(names.split(","), offsets.split(","), strict=False)


def names_queue(
    view: memoryview, position: int, size: int, key: QueueKey, queue_offset: int
) -> bool:
    """Tell whether the whole record at ``position`` is this queue's, at this offset."""
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
