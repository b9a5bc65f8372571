"""Repairing the head of a record whose body is whole, from its unit and its place.

Only fields that are stored twice are repaired: size, magic, topic, queue, queue offset and place
are in the unit, its folder and its position; body length and property length follow from the sum of
the parts. The body's CRC must be right afterwards, so nothing is guessed; a CRC that differs in one
bit was damaged itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack_into
from typing import Final
from zlib import crc32

from storage.format.check import CheckKind, check_record
from storage.format.crc import CRC_MASK
from storage.format.layout import (
    HEAD_SIZES,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    PHYSICAL_OFFSET_POSITION,
    QUEUE_OFFSET_POSITION,
    SYS_FLAG_POSITION,
    TWO_INTS,
)
from storage.format.record import RecordError, decode_record
from storage.format.sys_flag import MessageSysFlag

from .unit_lookup import UnitAt

_BODY_CRC = 8
_QUEUE_ID = 12
_NAMES = (slice(12, 16), slice(20, 28), slice(28, 36))
"""Queue id, queue offset, physical offset."""
_MOST_CHANGED = 12
"""Bytes that may differ: with more it is another record, not a damaged head."""
PROPERTIES_CLEANED: Final = 'bytes of its properties that are no text become "?"'
PROPERTIES_LOST: Final = "these properties of the message are lost"


def mended_head(record: bytes, unit: UnitAt) -> bytes | None:
    """The original record, None if its body is not whole or too much differs.

    ``record`` has as many bytes as its unit names.
    """
    topic = unit.topic.encode()
    version = 1 if len(topic) < 128 else 2
    fixed = bytearray(record)
    magic = MESSAGE_MAGIC_V1 if version == 1 else MESSAGE_MAGIC_V2
    if len(fixed) < HEAD_SIZES[0] + version + len(topic) + 2:
        return None
    pack_into(">2i", fixed, 0, unit.size, magic)
    pack_into(">i", fixed, _QUEUE_ID, unit.queue_id)
    pack_into(">q", fixed, QUEUE_OFFSET_POSITION, unit.queue_offset)
    pack_into(">q", fixed, PHYSICAL_OFFSET_POSITION, unit.offset)
    (sys_flag,) = _ints(fixed, SYS_FLAG_POSITION)
    if sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE:  # such records have no unit
        sys_flag &= ~MessageSysFlag.TRANSACTION_PREPARED_TYPE
    for hosts in sorted(range(4), key=lambda kind: kind != sys_flag >> 4 & 3):
        pack_into(">i", fixed, SYS_FLAG_POSITION, sys_flag & ~0x30 | hosts << 4)
        for body_length in _body_lengths(fixed, hosts, topic, version):
            candidate = _with_lengths(fixed, hosts, body_length, topic, version)
            if candidate is not None and _is_mended(candidate, record, unit):
                return candidate
    return None


def _body_lengths(record: bytearray, hosts: int, topic: bytes, version: int) -> Iterator[int]:
    """The length in the head, then those that follow from the topic's place."""
    head = HEAD_SIZES[hosts]
    (said,) = _ints(record, head - 4)
    if 0 <= said <= len(record) - head:
        yield said
    at = record.rfind(topic, head)
    for _ in range(8):
        if at < 0:
            return
        if at - version - head >= 0 and at - version - head != said:
            yield at - version - head
        at = record.rfind(topic, head, at + len(topic) - 1)


def _with_lengths(
    fixed: bytearray, hosts: int, body_length: int, topic: bytes, version: int
) -> bytes | None:
    """The record with all its lengths and its topic written, None if that does not fit."""
    head = HEAD_SIZES[hosts]
    topic_at = head + body_length
    properties = topic_at + version + len(topic) + 2
    if properties > len(fixed) or len(fixed) - properties > 32_767:
        return None
    record = bytearray(fixed)
    pack_into(">i", record, head - 4, body_length)
    record[topic_at : topic_at + version] = len(topic).to_bytes(version, "big")
    record[topic_at + version : topic_at + version + len(topic)] = topic
    record[properties - 2 : properties] = (len(record) - properties).to_bytes(2, "big")
    body = record[head : head + body_length]
    crc, (stored,) = crc32(body) & CRC_MASK, _ints(record, _BODY_CRC)
    if ((crc ^ stored) & 0xFFFFFFFF).bit_count() == 1:
        # No damage of a body changes its CRC in one bit only: the field itself is damaged.
        pack_into(">i", record, _BODY_CRC, crc)
    return bytes(record)


def _is_mended(candidate: bytes, record: bytes, unit: UnitAt) -> bool:
    if check_record(candidate, 0, len(candidate)).kind is not CheckKind.MESSAGE:
        return False
    try:
        message = decode_record(candidate, 0, unit.size)
    except RecordError:
        return False
    if b"\0" in message.property_bytes:  # cut off, or zeroed
        return False
    # A record that contradicts its unit in two ways is another one.
    end = len(candidate) - len(message.property_bytes) - 2
    topic = slice(end - len(unit.topic.encode()), end)
    names = sum(candidate[field] != record[field] for field in (*_NAMES, topic))
    changed = sum(a != b for a, b in zip(candidate, record, strict=True))
    return names <= 1 and changed <= _MOST_CHANGED


def sanitized_properties(record: bytes) -> bytes | None:
    """The whole record with "?" for each byte of its properties that is no text; None if there is
    nothing to do. No checksum covers properties, so their original bytes are unknown."""
    message = decode_record(record)
    text = message.property_bytes
    clean = bytearray(text)
    for at, byte in enumerate(text):
        if byte == 0:
            clean[at] = ord("?")
    while True:
        try:
            bytes(clean).decode("utf-8")
            break
        except UnicodeDecodeError as error:
            clean[error.start : error.end] = b"?" * (error.end - error.start)
    if bytes(clean) == text:
        return None
    return record[: len(record) - len(text)] + bytes(clean)


def _ints(record: bytearray, position: int) -> tuple[int]:
    return (int.from_bytes(record[position : position + 4], "big", signed=True),)


assert TWO_INTS.size == 8
