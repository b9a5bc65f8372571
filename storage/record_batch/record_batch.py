"""A block of records as columns, and how it is read.

fsck, rebuild and carve use it. The answers are those of ``storage.format.dispatch.read_request``
(the dispatchers of RocketMQ's CommitLog), except that a unit names the offset at which its record
lies, not the offset that the record claims.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from storage import native
from storage.format.dispatch import keys_of
from storage.format.java_hash import key_hash, tags_code, unsigned_java_hash
from storage.format.layout import MESSAGE_MAGIC_V1
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from storage.format.properties import parse_properties
from storage.format.record import read_head
from storage.format.sys_flag import MessageSysFlag

from .arrays import Longs
from .queue_numbers import TopicNames

MARK_DELAY: Final = 1
"""It has a delay level."""
MARK_LIGHT: Final = 2
"""It names light queues."""
MARK_ODD: Final = 4
"""Its properties are not ASCII, or end in a zero byte."""

COLUMNS: Final = (
    "place",
    "size",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "sys_flag",
    "store_timestamp",
    "topic",
    "properties_at",
    "properties_length",
    "tags_code",
    "marks",
)
"""The rows of the matrix that is filled, in the order of storage/native/reading/columns.c."""

_BESIDE: Final = 24
"""Items between two rows: cells of one column that are a power of two apart would evict each other
from the processor's cache."""
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


@dataclass(slots=True)
class RecordBatch:
    """Whole records of one log file in log order; item i of each column is of record i.

    ``place`` is the record's offset in the file, ``physical_offset`` the log offset that the record
    claims. ``topic`` is a number of :class:`TopicNames`. ``properties_at`` and
    ``properties_length`` give its properties in the file. ``tags_code`` is the hash of its tags,
    ``marks`` says what is special about its properties. Keys are in the index's order:
    ``key_hash[j]`` is a key of record ``key_row[j]``.
    """

    first: int
    """Log offset of the file."""
    place: Longs
    size: Longs
    queue_id: Longs
    queue_offset: Longs
    physical_offset: Longs
    sys_flag: Longs
    store_timestamp: Longs
    topic: Longs
    properties_at: Longs
    properties_length: Longs
    tags_code: Longs
    marks: Longs
    key_row: Longs
    key_hash: Longs
    texts: dict[int, bytes]
    """Properties of the records that have marks."""

    def __len__(self) -> int:
        return len(self.place)

    @property
    def offset(self) -> Longs:
        """Log offsets of the records."""
        return self.place + self.first

    @property
    def end(self) -> int:
        """Log offset of the end of the last record."""
        return self.first + int(self.place[-1] + self.size[-1])

    def take(self, rows: Longs) -> RecordBatch:
        """Make a block of some of the records; ``rows`` ascend."""
        chosen = {name: getattr(self, name)[rows] for name in COLUMNS}
        kept = np.full(len(self), -1, np.int64)
        kept[rows] = np.arange(len(rows))
        keys = kept[self.key_row] >= 0
        numbers = kept.tolist()
        return RecordBatch(
            self.first,
            **chosen,
            key_row=kept[self.key_row[keys]],
            key_hash=self.key_hash[keys],
            texts={numbers[r]: text for r, text in self.texts.items() if numbers[r] >= 0},
        )

    def marked(self, mark: int) -> list[int]:
        """List the records that have a mark."""
        if not self.texts:
            return []
        found: list[int] = np.flatnonzero(self.marks & mark).tolist()
        return found

    def index_keys(self, without: NDArray[np.bool_] | None = None) -> tuple[Longs, Longs]:
        """Rows and hashes of the keys that the index gets: none of rolled back records
        (IndexService), and none of those in ``without``."""
        left_out = self.sys_flag & _ROLLBACK == _ROLLBACK
        if without is not None:
            left_out |= without
        if not left_out.any():
            return self.key_row, self.key_hash
        kept = ~left_out[self.key_row]
        return self.key_row[kept], self.key_hash[kept]


def read_block(
    view: memoryview, first: int, start: int, sizes: Sequence[int], topics: TopicNames
) -> RecordBatch:
    """Read consecutive records, the first of which begins at ``start`` of a file, as columns.

    ``first`` is the file's log offset. The lengths in the records have been checked
    (storage.format.record.scan_records). Without compiled code a record takes some 8 us.
    """
    size = np.array(sizes, np.int64)
    return read_records(view, first, start + np.cumsum(size) - size, size, topics)


def read_records(
    view: memoryview, first: int, place: Longs, size: Longs, topics: TopicNames
) -> RecordBatch:
    """Read records at any places of a file, see :func:`read_block`."""
    matrix = np.empty((len(COLUMNS), len(place) + _BESIDE), np.int64)
    keys = read_columns(
        view, place.data, size.data, topics.number_and_hash, hash_of_text, matrix.data
    )
    key_row, hashes = (np.frombuffer(column, np.int64) for column in keys)
    columns = dict(zip(COLUMNS, matrix[:, : len(place)], strict=True))
    marked = np.flatnonzero(columns["marks"])
    begin = columns["properties_at"][marked]
    end = begin + columns["properties_length"][marked]
    texts = {
        row: bytes(view[start:stop])
        for row, start, stop in zip(marked.tolist(), begin.tolist(), end.tolist(), strict=True)
    }
    return RecordBatch(first, **columns, key_row=key_row, key_hash=hashes, texts=texts)


def _read_columns(
    view: memoryview,
    places: memoryview,
    sizes: memoryview,
    number_of: Callable[[bytes], tuple[int, int]],
    _hash_of: Callable[[bytes], tuple[int, int]],
    columns: memoryview,
    /,
) -> tuple[bytes, bytes]:
    """Fill the matrix of a RecordBatch; rows and hashes of its keys, as int64."""
    cells: list[tuple[int, ...]] = []
    key_rows = array("q")
    key_hashes = array("q")
    for row, (place, size) in enumerate(zip(places, sizes, strict=True)):
        head = read_head(view, place)
        width = 1 if head.magic == MESSAGE_MAGIC_V1 else 2
        start = place + head.head_size + max(0, head.body_length) + width
        name = bytes(view[start : start + int.from_bytes(view[start - width : start], "big")])
        number, _ = number_of(name)
        properties_at = start + len(name) + 2
        text = bytes(view[properties_at : place + size])
        found = parse_properties(text)
        marks = 0
        if PROPERTY_DELAY_TIME_LEVEL in found:
            marks |= MARK_DELAY
        if PROPERTY_INNER_MULTI_DISPATCH in found:
            marks |= MARK_LIGHT
        if not text.isascii() or text.endswith(b"\0"):
            marks |= MARK_ODD
        cells.append(
            (
                place,
                size,
                head.queue_id,
                head.queue_offset,
                head.physical_offset,
                head.sys_flag,
                head.store_timestamp,
                number,
                properties_at,
                place + size - properties_at,
                tags_code(found.get(PROPERTY_TAGS)),
                marks,
            )
        )
        unique = found.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        for key in keys_of(unique, found.get(PROPERTY_KEYS)):
            key_rows.append(row)
            key_hashes.append(key_hash(name.decode("utf-8", "replace"), key))
    if cells:
        np.asarray(columns)[:, : len(cells)] = np.array(cells, np.int64).T
    return key_rows.tobytes(), key_hashes.tobytes()


read_columns: Final = native.form("read_columns", _read_columns)


def hash_of_text(value: bytes) -> tuple[int, int]:
    """Hash UTF-8 text as String.hashCode does, unsigned, and count its UTF-16 code units."""
    text = value.decode("utf-8", "replace")
    return unsigned_java_hash(text), len(text.encode("utf-16-le", "surrogatepass")) // 2
