"""One record of the commit log (org.apache.rocketmq.store.CommitLog, MessageDecoder).

     0           4         8         12        16      20            28              36
    +-----------+---------+---------+---------+-------+-------------+---------------+---------+
    | totalSize | magic   | bodyCRC | queueId | flag  | queueOffset | physicalOffset| sysFlag |
    +-----------+---------+---------+---------+-------+-------------+---------------+---------+
     40               48           +bh              +8          +sh
    +----------------+-----------+----------------+-----------+----------------+
    | bornTimestamp  | bornHost  | storeTimestamp | storeHost | reconsumeTimes |
    +----------------+-----------+----------------+-----------+----------------+
    | preparedTransactionOffset (8) | bodyLen (4) | body | topicLen | topic | propsLen (2) | props |

bh and sh are 8, or 20 where sysFlag says IPv6. topicLen has 1 byte in version 1 and 2 in version 2
(5.1.0 and later, for topics above 127 bytes). bodyLen, topicLen and propsLen are signed.
A file that has no room for the next record ends with a blank record: remaining size, magic.
"""

from __future__ import annotations

from struct import Struct, error as StructError
from typing import Final, NamedTuple
from zlib import crc32

from storage.errors import InvalidMessageError

from .check import (
    CheckKind as CheckKind,
    CheckResult as CheckResult,
    RecordScan as RecordScan,
    check_record as check_record,
    scan_records as scan_records,
)
from .crc import CRC_MASK
from .errors import RecordError as RecordError
from .layout import (
    BLANK_MAGIC as BLANK_MAGIC,
    BLANK_SIZE as BLANK_SIZE,
    HEAD_SIZES,
    HEADS,
    MAX_PROPERTIES_LENGTH,
    MAX_TOPIC_LENGTH_V1,
    MAX_TOPIC_LENGTH_V2,
    MESSAGE_MAGIC_V1 as MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2 as MESSAGE_MAGIC_V2,
    MIN_RECORD_SIZE as MIN_RECORD_SIZE,
    TWO_INTS,
    Buffer,
)
from .message import MessageExt

_HEAD: Final = HEADS[0]
_SIZE: Final = Struct(">i")
_VERSIONS: Final = {MESSAGE_MAGIC_V1: 1, MESSAGE_MAGIC_V2: 2}


class RecordHead(NamedTuple):
    """The fields of fixed size, in the order of the bytes. Times in ms, hosts packed."""

    total_size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_length: int

    @property
    def head_size(self) -> int:
        """Bytes before the body: 88, 100 or 112."""
        return 72 + len(self.born_host) + len(self.store_host)


def blank_record(remaining: int) -> bytes:
    """Make the 8 bytes that end a file with ``remaining`` bytes left (at least 8).

    Raises ValueError for fewer.
    """
    if remaining < BLANK_SIZE:
        raise ValueError(f"a blank record needs {BLANK_SIZE} bytes, {remaining} are left")
    return TWO_INTS.pack(remaining, BLANK_MAGIC)


def read_head(buffer: Buffer, position: int = 0) -> RecordHead:
    """Decode the fixed fields at ``position``; checks nothing but that they are all there.

    Raises RecordError if they are not.
    """
    try:
        fields = _HEAD.unpack_from(buffer, position)
        hosts = fields[7] >> 4 & 3
        if hosts:
            fields = HEADS[hosts].unpack_from(buffer, position)
    except StructError:
        raise RecordError("the buffer ends inside the fixed fields", position) from None
    return RecordHead._make(fields)


def encode_record(
    *,
    topic: str,
    queue_id: int,
    body: bytes,
    properties: bytes,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    born_timestamp: int,
    born_host: bytes,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    body_crc: int | None = None,
    version: int = 1,
) -> bytes:
    """Encode one record, all fields given; the reference of all encoders.

    The IPv6 bits of ``sys_flag`` follow the lengths of the hosts. ``body_crc`` None computes it.
    Raises InvalidMessageError for a topic or properties that their length fields cannot hold.
    """
    topic_bytes = topic.encode()
    limit = MAX_TOPIC_LENGTH_V1 if version == 1 else MAX_TOPIC_LENGTH_V2
    if len(topic_bytes) > limit:
        raise InvalidMessageError(f"topic {topic[:40]!r}... is longer than {limit} bytes")
    if len(properties) > MAX_PROPERTIES_LENGTH:
        raise InvalidMessageError(f"the properties are longer than {MAX_PROPERTIES_LENGTH} bytes")
    hosts = (len(born_host) == 20) | (len(store_host) == 20) << 1
    total = HEAD_SIZES[hosts] + len(body) + 2 + version + len(topic_bytes) + len(properties)
    head = HEADS[hosts].pack(
        total,
        MESSAGE_MAGIC_V1 if version == 1 else MESSAGE_MAGIC_V2,
        crc32(body) & CRC_MASK if body_crc is None else body_crc,
        queue_id,
        flag,
        queue_offset,
        physical_offset,
        sys_flag & ~0x30 | hosts << 4,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        len(body),
    )
    topic_length = len(topic_bytes).to_bytes(version, "big")
    length = len(properties).to_bytes(2, "big")
    return b"".join((head, body, topic_length, topic_bytes, length, properties))


def decode_record(buffer: Buffer, position: int = 0, size: int | None = None) -> MessageExt:
    """Decode the record at ``position``; ``size`` is what its unit says, if there is one.

    The record is copied, so the result does not point into ``buffer``. Checked are magic, sizes
    and lengths, not the body's CRC. Bytes that are no record raise RecordError, never
    anything else.
    """
    if size is None:
        size = _claimed_size(buffer, position)
    if position < 0 or not MIN_RECORD_SIZE <= size <= len(buffer) - position:
        raise RecordError(f"a record of {size} bytes does not fit here", position)
    record = bytes(buffer[position : position + size])
    fields = _HEAD.unpack_from(record)
    hosts = fields[7] >> 4 & 3
    if hosts:
        if size < HEAD_SIZES[hosts]:
            raise RecordError("the record ends inside the fixed fields", position)
        fields = HEADS[hosts].unpack_from(record)
    message = MessageExt.__new__(MessageExt)
    (
        total,
        magic,
        message.body_crc,
        message.queue_id,
        message.flag,
        message.queue_offset,
        message.commitlog_offset,
        message.sys_flag,
        message.born_timestamp,
        message.born_host_bytes,
        message.store_timestamp,
        message.store_host_bytes,
        message.reconsume_times,
        message.prepared_transaction_offset,
        body_length,
    ) = fields
    if total != size:
        raise RecordError(f"the record claims {total} bytes, expected are {size}", position)
    version = _VERSIONS.get(magic)
    if version is None:
        raise RecordError(f"unknown magic code {magic & 0xFFFFFFFF:#010x}", position)
    body_start = HEAD_SIZES[hosts]
    body_end = body_start + body_length if body_length > 0 else body_start
    topic_start = body_end + version
    if topic_start > size:
        raise RecordError(f"a body of {body_length} bytes does not fit", position)
    topic_length = record[body_end]
    if version == 2:
        topic_length = topic_length << 8 | record[body_end + 1]
    topic_end = topic_start + topic_length
    start = topic_end + 2
    # Signed lengths: a set highest bit is negative. Java reads no properties then, and no topic.
    if record[body_end] > 127 or start > size:
        raise RecordError(f"a topic of {topic_length} bytes does not fit", position)
    high = record[topic_end]
    if start + (high << 8 | record[topic_end + 1]) * (high < 128) != size:
        raise RecordError("the properties do not end with the record", position)
    message.stored_body = record[body_start:body_end]
    message.topic = record[topic_start:topic_end].decode("utf-8", "replace")
    message.property_bytes = record[start:]
    message.store_size = size
    message.version = version
    message.added_property_bytes = b""
    message._body = None
    message._properties = None
    return message


def _claimed_size(buffer: Buffer, position: int) -> int:
    try:
        size: int = _SIZE.unpack_from(buffer, position)[0]
    except StructError:
        raise RecordError("the buffer ends here", position) from None
    return size
