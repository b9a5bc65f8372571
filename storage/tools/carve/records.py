"""A whole record as a message, and encoding it again with all its fields."""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidMessageError
from storage.format.compress import compress
from storage.format.crc import crc32
from storage.format.layout import MAX_TOPIC_LENGTH_V1, PHYSICAL_OFFSET_POSITION
from storage.format.properties import MAX_PROPERTIES_LENGTH, encode_properties
from storage.format.record import decode_record, encode_record
from storage.format.sys_flag import MessageSysFlag
from storage.log.record_reader import UNUSUAL, read_at

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_METHODS: Final = MessageSysFlag.COMPRESSION_TYPE_MASK
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_LENGTH_SIZE: Final = 2


def message_of(record: bytes) -> MessageExt:
    """Decode a whole record, see ``decode_record``."""
    (offset,) = _LONG.unpack_from(record, PHYSICAL_OFFSET_POSITION)
    usual: MessageExt | None = read_at(record, 0, len(record), offset, UNUSUAL)
    return decode_record(record) if usual is None else usual


def with_properties(record: bytes, length: int, properties: bytes) -> bytes:
    """A whole record whose properties have ``length`` bytes, with others instead.

    Raises InvalidMessageError for more than a record can have.
    """
    if len(properties) > MAX_PROPERTIES_LENGTH:
        raise InvalidMessageError(f"the properties are longer than {MAX_PROPERTIES_LENGTH} bytes")
    end = len(record) - length - _LENGTH_SIZE
    size = _INT.pack(end + _LENGTH_SIZE + len(properties))
    of_properties = len(properties).to_bytes(_LENGTH_SIZE, "big")
    return b"".join((size, record[_INT.size : end], of_properties, properties))


def record_of(message: MessageExt) -> bytes:
    """Encode a message as it is, with its ``stored_body`` and ``property_bytes``.

    Queue offset and log offset are those of the message. Raises InvalidMessageError.
    """
    long = len(message.topic.encode("utf-8", "replace")) > MAX_TOPIC_LENGTH_V1
    return encode_record(
        topic=message.topic,
        queue_id=message.queue_id,
        body=message.stored_body,
        properties=message.property_bytes,
        queue_offset=message.queue_offset,
        physical_offset=message.commitlog_offset,
        store_timestamp=message.store_timestamp,
        born_timestamp=message.born_timestamp,
        born_host=message.born_host_bytes,
        store_host=message.store_host_bytes,
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        body_crc=crc32(message.stored_body),
        version=2 if long else message.version,
    )


def set_stored_properties(message: MessageExt, properties: Mapping[str, str]) -> None:
    """Give a message other properties. Raises InvalidMessageError for some that cannot be
    stored."""
    message.property_bytes = encode_properties(properties)
    message.properties = dict(properties)


def set_stored_body(message: MessageExt, body: bytes) -> None:
    """Give a message another body, compressed with zlib if its flags say so, whatever compressed
    the old one."""
    if message.sys_flag & MessageSysFlag.COMPRESSED_FLAG and body:
        if message.sys_flag & _METHODS:
            message.sys_flag &= ~_METHODS
            message.sys_flag |= MessageSysFlag.COMPRESSION_ZLIB_TYPE
        message.stored_body = compress(body)
    else:
        message.stored_body = body
    message.body = body
    message.body_crc = crc32(message.stored_body)
