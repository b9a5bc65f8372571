"""Encoding messages: compiled, or a few of them without NumPy, or many with it (``encode_many``).

The same records as ``encode_record`` makes (CommitLog.MessageExtEncoder), with what does not change
from message to message remembered: topic bytes, tag codes, the hash of ``topic#``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from zlib import crc32

from storage.errors import InvalidMessageError

from .crc import CRC_MASK, bulk_crc32
from .java_hash import QUOTIENTS, REMAINDERS, tags_code, unsigned_java_hash
from .layout import (
    HEAD_SIZES,
    HEADS,
    MAX_PROPERTIES_LENGTH,
    MAX_TOPIC_LENGTH_V1,
    MESSAGE_MAGIC_V1,
)
from .prepared import PreparedRecords as PreparedRecords
from .prepared_one import PreparedOne
from .prepared_table import table_of_run
from .sys_flag import MessageSysFlag, gets_unit, is_indexed

ENCODE_MANY_FROM: Final = 48
"""Where nothing is compiled, batches of at least this many are better prepared by NumPy."""

_HEAD: Final = HEADS[0]
_POWERS: Final = tuple(pow(31, n, 1 << 32) for n in range(128))
_V6_BITS: Final = 0x30
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class MessageInner(NamedTuple):
    """One record as the broker hands it to the store (MessageExtBrokerInner).

    ``properties`` are encoded, hosts packed (8 or 20 bytes; the IPv6 bits of ``sys_flag`` follow
    from them), times in ms. ``keys`` are the index keys in order: UNIQ_KEY, then the parts of KEYS.
    With ``delay_time_level`` > 0 (only in SCHEDULE_TOPIC_XXXX) the unit holds the time of delivery,
    store timestamp + ``delay_ms``, in place of the tag's hash.
    """

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    tags: str | None = None
    keys: tuple[str, ...] = ()
    delay_time_level: int = 0
    delay_ms: int = 0


@lru_cache(maxsize=1024)
def topic_field(topic: str) -> bytes:
    """Encode a topic with its length byte; InvalidMessageError if it has not 1 to 127 bytes."""
    encoded = topic.encode()
    if not 0 < len(encoded) <= MAX_TOPIC_LENGTH_V1:
        raise InvalidMessageError(
            f"topic {topic[:40]!r} has {len(encoded)} bytes, allowed are 1 to {MAX_TOPIC_LENGTH_V1}"
        )
    return bytes((len(encoded),)) + encoded


@lru_cache(maxsize=1024)
def topic_hash(topic: str) -> int:
    """Hash ``topic#`` (unsigned), where the hash of every key of the topic begins."""
    return unsigned_java_hash(f"{topic}#")


cached_tags_code = lru_cache(maxsize=4096)(tags_code)


def properties_length(properties: bytes) -> bytes:
    """Encode the length field of properties; InvalidMessageError beyond 32,767 bytes."""
    if len(properties) > MAX_PROPERTIES_LENGTH:
        raise InvalidMessageError(
            f"the properties have {len(properties)} bytes, "
            f"allowed are {MAX_PROPERTIES_LENGTH} (propertiesLength)"
        )
    return len(properties).to_bytes(2, "big")


def index_hashes(topic: str, keys: Sequence[str]) -> list[int]:
    """Hash keys of one topic for the index, as ``key_hash`` does, each in about 0.3 us."""
    hashes = []
    begun = topic_hash(topic)
    for key in keys:
        try:
            units = key.encode("latin-1")
            # unsigned_hash, written out: a call costs as much as the arithmetic.
            unsigned = (
                begun * _POWERS[len(units)]
                + int(units.translate(QUOTIENTS), 31) * 31
                + int(units.translate(REMAINDERS), 31)
            ) & 0xFFFFFFFF
        except (ValueError, IndexError):  # beyond Latin-1, empty, or longer than the table
            unsigned = unsigned_java_hash(f"{topic}#{key}")
        hashes.append(unsigned if unsigned < 0x80000000 else -unsigned & 0x7FFFFFFF)
    return hashes


def _encode(message: MessageInner) -> tuple[bytes, ...]:
    """Give the parts of a record, with zeros where ``place`` writes."""
    body, properties = message.body, message.properties
    born_host, store_host = message.born_host, message.store_host
    topic = topic_field(message.topic)
    hosts = (len(born_host) == 20) | (len(store_host) == 20) << 1
    length = properties_length(properties)
    head = HEADS[hosts].pack(
        HEAD_SIZES[hosts] + len(body) + len(topic) + 2 + len(properties),
        MESSAGE_MAGIC_V1,
        _crc32(body) & CRC_MASK,
        message.queue_id,
        message.flag,
        0,
        0,
        message.sys_flag & ~_V6_BITS | hosts << 4,
        message.born_timestamp,
        born_host,
        0,
        store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
        len(body),
    )
    return head, body, topic, length, properties


def prepare(messages: Sequence[MessageInner]) -> PreparedRecords:
    """Encode messages, compute their checksums, tag codes and key hashes.

    About 2 us for one message; compiled 0.3 us for each of several. Raises InvalidMessageError for
    a topic or properties that their length fields can not hold; other limits (body size, names)
    are the broker's.
    """
    if len(messages) == 1:
        return _prepare_one(messages[0])
    made = table_of_run(messages)
    if made is not None:
        return made
    if len(messages) < ENCODE_MANY_FROM:
        return prepare_pure(messages)
    from .encode_many import encode_many_pure

    return encode_many_pure(messages)


def prepare_pure(messages: Sequence[MessageInner]) -> PreparedRecords:
    """The pure form of :func:`prepare` for any number of messages."""
    parts: list[bytes] = []
    starts, sizes, tags_codes, hashes, counts = [], [], [], [], []
    numbers: dict[tuple[str, int], int] = {}
    queue_index = []
    position = 0
    for message in messages:
        record = _encode(message)
        size = sum(map(len, record))
        parts += record
        starts.append(position)
        sizes.append(size)
        position += size
        queue = (message.topic, message.queue_id)
        queue_index.append(numbers.setdefault(queue, len(numbers)))
        tags_codes.append(cached_tags_code(message.tags))
        keys = message.keys if is_indexed(message.sys_flag) else ()
        hashes += index_hashes(message.topic, keys)
        counts.append(len(keys))
    has_unit = [gets_unit(message.sys_flag) for message in messages]
    delays_ms = [m.delay_ms if m.delay_time_level > 0 else -1 for m in messages]
    return PreparedRecords(
        bytearray().join(parts),
        starts,
        sizes,
        list(numbers),
        queue_index if len(numbers) > 1 else None,
        None if all(has_unit) else has_unit,
        tags_codes,
        None if max(delays_ms, default=-1) < 0 else delays_ms,
        hashes,
        counts,
    )


def _prepare_one(message: MessageInner) -> PreparedRecords:
    (
        topic,
        _,
        body,
        properties,
        _,
        born_host,
        store_host,
        _,
        sys_flag,
        _,
        _,
        _,
        _,
        level,
        _,
    ) = message
    if sys_flag & _ROLLBACK or level > 0:
        return prepare_pure((message,))
    field = topic_field(topic)
    length = len(properties)
    if length > MAX_PROPERTIES_LENGTH:
        properties_length(properties)  # raises
    hosts = (len(born_host) == 20) | (len(store_host) == 20) << 1
    return PreparedOne(
        message,
        field,
        hosts,
        HEAD_SIZES[hosts] + len(body) + len(field) + 2 + length,
        _crc32(body) & CRC_MASK,
    )


def _first_crc32(body: bytes) -> int:
    """zlib's checksum for the first bodies of a process: isal's import pays from some dozens on."""
    global _crc32, _slow_left
    _slow_left -= 1
    if not _slow_left:
        _crc32 = bulk_crc32()
    return crc32(body)


_slow_left = 64
_crc32: Callable[[bytes], int] = _first_crc32
