"""From a record of the commit log to its unit and its index keys.

The rules of org.apache.rocketmq.store.CommitLog.checkMessageAndReturnSize (DispatchRequest) and of
the dispatchers of DefaultMessageStore. Appending needs none of this for records that it has just
encoded (storage.format.encode); here they are read back, after a crash or from a foreign store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .cq_unit import CQ_STORE_UNIT
from .java_hash import key_hash, tags_code
from .java_numbers import parse_digits
from .message import (
    LMQ_PREFIX,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    SCHEDULE_TOPIC,
    split_keys,
)
from .properties import find_property, parse_properties
from .record import read_head
from .sys_flag import gets_unit, is_indexed

_UNKNOWN_LEVEL_MS: Final = 1000

KeyRow = tuple[str, Sequence[str], int, int]
"""Topic and keys of a record, its commit log offset and its store time (ms)."""


class DispatchRequest(NamedTuple):
    """The unit and the keys of one record.

    ``units`` names each (topic, queue, queue offset) that gets a unit: one for a plain record,
    none for a prepared or rolled back one or an impossible topic, several with multi-dispatch.
    ``commitlog_offset`` is where the record lies, whatever its own field says: a unit that leads to
    another place would hide the messages after it. ``store_timestamp`` is in ms.
    """

    commitlog_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    units: tuple[tuple[str, int, int], ...]
    key_hashes: tuple[int, ...]

    def unit(self) -> bytes:
        """The 20 bytes that each queue of ``units`` gets."""
        return CQ_STORE_UNIT.pack(self.commitlog_offset, self.size, self.tags_code)


def is_possible_topic(topic: str) -> bool:
    """Whether a message can have this topic: it becomes the name of a folder.

    A record that was torn when the power went may be right in its lengths and its body's CRC, and
    have zeros for a topic.
    """
    return topic not in ("", ".", "..") and topic.isprintable() and "/" not in topic


def topic_of(buffer: bytes | memoryview, position: int) -> str:
    """The topic of the record at ``position``, whose lengths have been checked."""
    head = read_head(buffer, position)
    at = position + head.head_size + max(0, head.body_length)
    width = 1 if head.magic & 0xFF == 0xA7 else 2
    length = int.from_bytes(buffer[at : at + width], "big")
    return bytes(buffer[at + width : at + width + length]).decode("utf-8", "replace")


def read_request(
    buffer: bytes | memoryview,
    position: int,
    size: int,
    delay_levels_ms: tuple[int, ...],
    *,
    first: int,
) -> DispatchRequest:
    """Read the record of ``size`` bytes at ``position``, whose lengths have been checked; the
    buffer begins at the log offset ``first``."""
    head = read_head(buffer, position)
    at = position + head.head_size + max(0, head.body_length)
    width = 1 if head.magic & 0xFF == 0xA7 else 2
    length = int.from_bytes(buffer[at : at + width], "big")
    topic = bytes(buffer[at + width : at + width + length]).decode("utf-8", "replace")
    properties = parse_properties(bytes(buffer[at + width + length + 2 : position + size]))
    code = tags_code(properties.get(PROPERTY_TAGS))
    if topic == SCHEDULE_TOPIC:
        level = _level(properties.get(PROPERTY_DELAY_TIME_LEVEL))
        if level > 0:
            code = head.store_timestamp + _delay(min(level, len(delay_levels_ms)), delay_levels_ms)
    units: list[tuple[str, int, int]] = []
    if gets_unit(head.sys_flag) and is_possible_topic(topic):
        units.append((topic, head.queue_id, head.queue_offset))
        units += _lmq_queues(properties, head.queue_id)
    hashes: tuple[int, ...] = ()
    if is_indexed(head.sys_flag):
        unique = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        keys = keys_of(unique, properties.get(PROPERTY_KEYS))
        hashes = tuple(key_hash(topic, key) for key in keys)
    return DispatchRequest(first + position, size, code, head.store_timestamp, tuple(units), hashes)


def keys_of(unique: str | None, keys: str | None) -> tuple[str, ...]:
    """The index keys of a record by its properties UNIQ_KEY and KEYS, in the index's order."""
    return (unique, *split_keys(keys)) if unique else split_keys(keys)


def read_keys(buffer: bytes | memoryview, position: int, size: int, *, first: int) -> KeyRow:
    """Read only the keys of the record at ``position``, none if they cannot be found; the buffer
    begins at the log offset ``first``."""
    head = read_head(buffer, position)
    at = position + head.head_size + max(0, head.body_length)
    width = 1 if head.magic & 0xFF == 0xA7 else 2
    end = at + width + int.from_bytes(buffer[at : at + width], "big")
    keys: tuple[str, ...] = ()
    if is_indexed(head.sys_flag):
        properties = bytes(buffer[end + 2 : position + size])
        keys = keys_of(
            find_property(properties, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX),
            find_property(properties, PROPERTY_KEYS),
        )
    topic = bytes(buffer[at + width : end]).decode("utf-8", "replace")
    return topic, keys, first + position, head.store_timestamp


def _lmq_queues(properties: dict[str, str], queue_id: int) -> Iterator[tuple[str, int, int]]:
    names = properties.get(PROPERTY_INNER_MULTI_DISPATCH)
    offsets = properties.get(PROPERTY_INNER_MULTI_QUEUE_OFFSET)
    if names and offsets:
        for name, text in zip(names.split(","), offsets.split(","), strict=False):
            offset = parse_digits(text)
            if offset is not None and is_possible_topic(name):
                yield name, 0 if name.startswith(LMQ_PREFIX) else queue_id, offset


def _level(text: str | None) -> int:
    return parse_digits(text or "") or 0


def _delay(level: int, delay_levels_ms: tuple[int, ...]) -> int:
    return delay_levels_ms[level - 1] if 0 < level <= len(delay_levels_ms) else _UNKNOWN_LEVEL_MS
