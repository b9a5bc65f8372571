"""A message as bytes, for peers that keep bytes: all fields that our store keeps, the body last."""

from __future__ import annotations

from struct import Struct
from zlib import crc32

from storage.format.crc import CRC_MASK
from storage.format.encode import MessageInner
from storage.store import now_ms

FIELDS = Struct(">Iiiqq8s8siqqHH")
"""Checksum, flag, system flag, born, stored, both hosts, attempts, prepared offset, hash of the
tags, lengths of topic and properties."""


def envelope(message: MessageInner) -> bytes:
    """Pack a message; the checksum is computed here, as our store computes it."""
    body, properties, topic = message.body, message.properties, message.topic.encode()
    fields = FIELDS.pack(
        crc32(body) & CRC_MASK,
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        now_ms(),
        message.born_host,
        message.store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        hash(message.tags),
        len(topic),
        len(properties),
    )
    return b"%b%b%b%b" % (fields, topic, properties, body)


def body_of(packed: bytes) -> bytes:
    """The body of a packed message."""
    *_, topic_length, properties_length = FIELDS.unpack_from(packed)
    return packed[FIELDS.size + topic_length + properties_length :]
