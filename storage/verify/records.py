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

from .shapes import Shape, find_shapes, rows_at

Longs = NDArray[np.int64]
_SEPARATOR: Final = b"\x02"
_SOME_TOPICS: Final = 8
_FEW_RECORDS: Final = 64


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

    def known(self, name: bytes) -> int:
        """The same as :meth:`number`, quicker for a topic that was met before."""
        found = self.numbers.get(name)
        return self.number(name) if found is None else found

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
    are the property bytes with a separator in front; b"" for the records of ``shapes``, which are
    plain text without anything special in them.
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
    shapes: list[Shape] = field(default_factory=list)

    def take(self, rows: Longs) -> RecordBlock:
        """A block of some of the records; only of a block without shapes."""
        chosen = {
            column.name: getattr(self, column.name)[rows]
            for column in fields(self)
            if column.name not in ("properties", "shapes")
        }
        return replace(self, properties=[self.properties[r] for r in rows.tolist()], **chosen)

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def loose(self) -> Sequence[int]:
        """Records whose properties are in ``properties``."""
        if not self.shapes:
            return range(len(self))
        free = np.ones(len(self), np.bool_)
        for shape in self.shapes:
            free[shape.rows] = False
        return np.flatnonzero(free).tolist()

    def tags_codes(self, known: dict[bytes, int]) -> Longs:
        """Hashes of the tags; ``known`` keeps those of texts that were met before."""
        codes = []
        loose = self.loose
        for row in loose:
            text = self.properties[row]
            tag = _value(text, _TAGS, PROPERTY_TAGS)
            code = known.get(tag)
            if code is None:
                code = tags_code(tag.decode("utf-8", "replace"))
                if len(known) < 100_000:
                    known[tag] = code
            codes.append(code)
        found = np.zeros(len(self), np.int64)
        found[loose] = codes
        for shape in self.shapes:
            found[shape.rows] = shape.tags_codes()
        return found

    def index_keys(self, rows: Longs, topics: TopicNames) -> tuple[Longs, Longs]:
        """Which of ``rows`` each key belongs to, and its index hash; those of a record in the
        index's order."""
        if not self.shapes:
            return self._loose_keys(rows, topics)
        wanted = np.zeros(len(self), np.bool_)
        wanted[rows] = True
        for shape in self.shapes:
            wanted[shape.rows] = False
        owner, hashes = self._loose_keys(np.flatnonzero(wanted), topics)
        owners, found = [owner], [hashes]
        wanted[:] = False
        wanted[rows] = True
        of_topics = topics.hashes()
        for shape in self.shapes:
            chosen = wanted[shape.rows]
            for hashes in shape.index_hashes(of_topics[self.topic[shape.rows]]):
                owners.append(shape.rows[chosen])
                found.append(hashes[chosen])
        return np.concatenate(owners), np.concatenate(found)

    def _loose_keys(self, rows: Longs, topics: TopicNames) -> tuple[Longs, Longs]:
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
    file: ReadMap,
    file_from_offset: int,
    start: int,
    sizes: list[int],
    topics: TopicNames,
    *,
    shaped: bool = True,
) -> RecordBlock:
    """Take the columns of records that lie one behind the other from ``start`` on.

    ``shaped`` reads properties as :class:`Shape` where many are alike. Their lengths have been
    checked (storage.format.record.scan_records).
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
    octets = np.frombuffer(file.view, np.uint8)
    name_length = octets[topic_at].astype(np.int64)
    two = np.flatnonzero(width == 2)
    name_length[two] = name_length[two] << 8 | octets[topic_at[two] + 1]
    name_at = topic_at + width
    topic = _topic_numbers(file, octets, name_at, name_length, topics)
    begin, end = name_at + name_length + 2, position + size
    shapes: list[Shape] = []
    loose = np.arange(len(size))
    if shaped:
        shapes, loose = find_shapes(octets, begin, end)
    properties = [b""] * len(size)
    read = file.map
    for row, behind, stop in zip(
        loose.tolist(), begin[loose].tolist(), end[loose].tolist(), strict=True
    ):
        properties[row] = _SEPARATOR + read[behind:stop]
    return RecordBlock(
        offset=position + file_from_offset,
        size=size,
        queue_id=heads["queue_id"].astype(np.int64),
        queue_offset=heads["queue_offset"].astype(np.int64),
        physical_offset=heads["physical_offset"].astype(np.int64),
        sys_flag=sys_flag,
        store_timestamp=store_timestamp,
        topic=topic,
        properties=properties,
        shapes=shapes,
        unsure=sys_flag & REPLACED_FLAG != 0,
    )


def _topic_numbers(
    file: ReadMap,
    octets: NDArray[np.uint8],
    name_at: Longs,
    name_length: Longs,
    topics: TopicNames,
) -> Longs:
    """The numbers of the topics whose names lie at some places."""
    found = np.full(len(name_at), -1, np.int64)
    for length in np.flatnonzero(np.bincount(name_length)).tolist():
        rows = np.flatnonzero(name_length == length)
        for _ in range(_SOME_TOPICS):
            if len(rows) < _FEW_RECORDS or not length:
                break
            first = int(name_at[rows[0]])
            names = rows_at(octets, name_at[rows], length)
            like = (names == octets[first : first + length]).all(axis=1)
            found[rows[like]] = topics.known(file.map[first : first + length])
            rows = rows[~like]
        for row, begin in zip(rows.tolist(), name_at[rows].tolist(), strict=True):
            found[row] = topics.known(file.map[begin : begin + length])
    return found


def _heads_at(file: ReadMap, positions: Longs, hosts: int) -> NDArray[Any]:
    """The fixed fields at many positions; ``hosts`` chooses the form."""
    head = HEAD_TYPES[hosts]
    # An item at every byte: taking some of them copies whole heads. Fields would be copied one by
    # one, so they are named afterwards.
    count = max(0, file.length - head.itemsize + 1)
    every: NDArray[Any] = np.ndarray((count,), f"V{head.itemsize}", file.view, strides=(1,))
    return every[np.minimum(positions, count - 1)].view(head)


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
