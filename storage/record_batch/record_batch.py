"""A block of records as columns, and how it is read.

What a record means for its queue and for the index is said here once, for checks, rebuilding and
carving: the answers of ``storage.format.dispatch.read_request`` (the dispatchers of RocketMQ's
CommitLog), but that a unit points at where its record lies, not at where the record says it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from storage import native
from storage.format.java_hash import unsigned_java_hash
from storage.format.sys_flag import MessageSysFlag

from .byte_windows import Longs
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
"""Room between two rows: cells of one column that are a power of two apart would push each other
out of the processor's cache."""
_ROLLBACK: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


@dataclass(slots=True)
class RecordBatch:
    """Whole records of one log file in log order; item i of each column is of record i.

    ``place`` is where the record lies in the file, ``physical_offset`` where it says it lies in the
    log. ``topic`` is a number of :class:`TopicNames`. ``properties_at`` and ``properties_length``
    tell where its properties lie in the file. ``tags_code`` is the hash of its tags, ``marks``
    what is special about its properties. Keys are in the index's order: ``key_hash[j]`` is one of
    record ``key_row[j]``.
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
        """Where the records lie in the log."""
        return self.place + self.first

    @property
    def end(self) -> int:
        """Log offset behind the last record."""
        return self.first + int(self.place[-1] + self.size[-1])

    def take(self, rows: Longs) -> RecordBatch:
        """A block of some of the records; ``rows`` ascend."""
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
        """Records with a mark."""
        if not self.texts:
            return []
        found: list[int] = np.flatnonzero(self.marks & mark).tolist()
        return found

    def index_keys(self, without: NDArray[np.bool_] | None = None) -> tuple[Longs, Longs]:
        """Rows and hashes of the keys that the index gets: not of rolled back records
        (IndexService), and not of those that ``without`` names."""
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
    """Take the columns of records that lie one behind the other from ``start`` of a file on.

    ``first`` is the file's log offset. The lengths in the records have been checked
    (storage.format.record.scan_records).
    """
    size = np.array(sizes, np.int64)
    return read_records(view, first, start + np.cumsum(size) - size, size, topics)


def read_records(
    view: memoryview, first: int, place: Longs, size: Longs, topics: TopicNames
) -> RecordBatch:
    """The same for records at some places."""
    matrix = np.empty((len(COLUMNS), len(place) + _BESIDE), np.int64)
    if native.compiled is not None:
        keys = native.compiled.read_columns(
            view, place.data, size.data, topics.number_and_hash, hash_of_text, matrix.data
        )
        key_row, key_hash = (np.frombuffer(column, np.int64) for column in keys)
    else:
        from .columns import fill

        key_row, key_hash = fill(view, place, size, topics, matrix[:, : len(place)])
    columns = dict(zip(COLUMNS, matrix[:, : len(place)], strict=True))
    marked = np.flatnonzero(columns["marks"])
    begin = columns["properties_at"][marked]
    end = begin + columns["properties_length"][marked]
    texts = {
        row: bytes(view[start:stop])
        for row, start, stop in zip(marked.tolist(), begin.tolist(), end.tolist(), strict=True)
    }
    return RecordBatch(first, **columns, key_row=key_row, key_hash=key_hash, texts=texts)


def hash_of_text(value: bytes) -> tuple[int, int]:
    """Hash UTF-8 text as String.hashCode does, unsigned, and count its UTF-16 code units."""
    text = value.decode("utf-8", "replace")
    return unsigned_java_hash(text), len(text.encode("utf-16-le", "surrogatepass")) // 2
