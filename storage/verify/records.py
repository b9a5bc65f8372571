"""Records of one log file by the thousand, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.files.read_files import ReadMap
from storage.format.hash_many import index_hashes_many
from storage.format.head_matrix import HEAD_TYPES
from storage.format.java_hash import tags_code, unsigned_java_hash
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.format.properties import find_property
from storage.format.sys_flag import REPLACED_FLAG
from storage.model import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)

Longs = NDArray[np.int64]
_SEPARATOR: Final = b"\x02"


def _marker(name: str) -> bytes:
    return f"\x02{name}\x01".encode()


_TAGS: Final = _marker(PROPERTY_TAGS)
_KEYS: Final = _marker(PROPERTY_KEYS)
_UNIQ_KEY: Final = _marker(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
_BLANK: Final = KEY_SEPARATOR.encode()


class TopicNames:
    """Numbers for the topics that records name, and what follows from a topic's name."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.names: list[str] = []
        self._hashes: list[int] = []

    def number(self, name: bytes) -> int:
        """Give the topic's number, a new one for a new topic."""
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.names)
            text = name.decode("utf-8", "replace")
            self.names.append(text)
            self._hashes.append(unsigned_java_hash(text + "#"))
        return found

    def hashes(self) -> NDArray[np.uint32]:
        """Hashes of ``topic#`` by number."""
        return np.array(self._hashes, np.uint32)


@dataclass(slots=True)
class RecordBlock:
    """Whole records of one log file in log order; item i of each column is of the same record.

    ``offset`` is where the record lies, ``physical_offset`` where it says it does. ``properties``
    are the property bytes with a separator in front.
    """

    offset: Longs
    size: Longs
    queue_id: Longs
    queue_offset: Longs
    physical_offset: Longs
    sys_flag: Longs
    store_timestamp: Longs
    topic: Longs
    properties: list[bytes]
    unsure: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Records whose tags and keys nobody knows any more; filled by :func:`read_block`."""

    def take(self, rows: Longs) -> RecordBlock:
        """A block of some of the records."""
        chosen = {
            column.name: getattr(self, column.name)[rows]
            for column in fields(self)
            if column.name != "properties"
        }
        return replace(self, properties=[self.properties[r] for r in rows.tolist()], **chosen)

    def __len__(self) -> int:
        return len(self.offset)

    def tags_codes(self, known: dict[bytes, int]) -> Longs:
        """Hashes of the tags; ``known`` keeps those of texts that were met before."""
        codes = []
        for text in self.properties:
            tag = _value(text, _TAGS, PROPERTY_TAGS)
            code = known.get(tag)
            if code is None:
                code = tags_code(tag.decode("utf-8", "replace"))
                if len(known) < 100_000:
                    known[tag] = code
            codes.append(code)
        return np.array(codes, np.int64)

    def index_keys(self, rows: Longs, topics: TopicNames) -> tuple[Longs, Longs]:
        """Which of ``rows`` each key belongs to, and its index hash, in the index's order."""
        keys: list[bytes] = []
        owners: list[int] = []
        for row in rows.tolist():
            text = self.properties[row]
            unique = _value(text, _UNIQ_KEY, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
            if unique:
                keys.append(unique)
                owners.append(row)
            several = _value(text, _KEYS, PROPERTY_KEYS)
            if several:
                for key in several.split(_BLANK):
                    if key:
                        keys.append(key)
                        owners.append(row)
        owner = np.array(owners, np.int64)
        if not keys:
            return owner, owner
        texts: Sequence[str | bytes] = keys
        if not b"".join(keys).isascii():
            texts = [key.decode("utf-8", "replace") for key in keys]
        return owner, index_hashes_many(topics.hashes()[self.topic[owner]], texts)


def read_block(
    file: ReadMap, file_from_offset: int, start: int, sizes: list[int], topics: TopicNames
) -> RecordBlock:
    """Take the columns of records that lie one behind the other from ``start`` on.

    Their lengths have been checked (storage.format.record.scan_records).
    """
    size = np.array(sizes, np.int64)
    position = np.cumsum(size) - size + (start - file_from_offset)
    heads = _heads_at(file, position, 0)
    sys_flag = heads["sys_flag"].astype(np.int64)
    store_timestamp = heads["store_timestamp"].astype(np.int64)
    body_length = heads["body_length"].astype(np.int64)
    hosts = sys_flag >> 4 & 3
    for kind in (1, 2, 3):
        rows = np.flatnonzero(hosts == kind)
        if len(rows):
            wide = _heads_at(file, position[rows], kind)
            store_timestamp[rows] = wide["store_timestamp"]
            body_length[rows] = wide["body_length"]
    topic_at = position + np.array(HEAD_SIZES, np.int64)[hosts] + np.maximum(body_length, 0)
    width = np.where(heads["magic"] == MESSAGE_MAGIC_V1, 1, 2)
    read = file.map
    number = topics.number
    numbers = topics.numbers
    topic: list[int] = []
    properties: list[bytes] = []
    for at, wide_by, end in zip(
        topic_at.tolist(), width.tolist(), (position + size).tolist(), strict=True
    ):
        begin = at + wide_by
        behind = begin + (read[at] if wide_by == 1 else read[at] << 8 | read[at + 1])
        name = read[begin:behind]
        found = numbers.get(name)
        topic.append(number(name) if found is None else found)
        properties.append(_SEPARATOR + read[behind + 2 : end])
    return RecordBlock(
        offset=position + file_from_offset,
        size=size,
        queue_id=heads["queue_id"].astype(np.int64),
        queue_offset=heads["queue_offset"].astype(np.int64),
        physical_offset=heads["physical_offset"].astype(np.int64),
        sys_flag=sys_flag,
        store_timestamp=store_timestamp,
        topic=np.array(topic, np.int64),
        properties=properties,
        unsure=sys_flag & REPLACED_FLAG != 0,
    )


def _heads_at(file: ReadMap, positions: Longs, hosts: int) -> NDArray[Any]:
    """The fixed fields at many positions; ``hosts`` chooses the form."""
    head = HEAD_TYPES[hosts]
    # An item at every byte: taking some of them copies whole heads.
    count = max(0, file.length - head.itemsize + 1)
    every: NDArray[Any] = np.ndarray((count,), head, file.view, strides=(1,))
    return every[np.minimum(positions, count - 1)]


def _value(text: bytes, marker: bytes, name: str) -> bytes:
    """A property's value, b"" if it is not there; ``text`` begins with a separator."""
    at = text.rfind(marker)
    if at < 0:
        return b""
    start = at + len(marker)
    end = text.find(_SEPARATOR, start)
    value = text[start:] if end < 0 else text[start:end]
    if value:
        return value
    return (find_property(text[1:], name) or "").encode()
