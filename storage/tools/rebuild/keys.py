"""Index keys of many records at once, in the order of the index."""

from __future__ import annotations

from typing import NamedTuple

from storage.record_batch.arrays import Longs
from storage.record_batch.record_batch import RecordBatch


class KeyColumns(NamedTuple):
    """Keys of records; item i of each column is of the same one. Times are ms."""

    key_hash: Longs
    offset: Longs
    store_timestamp: Longs

    def rows(self, start: int, end: int) -> KeyColumns:
        """Some of them."""
        return KeyColumns(*(column[start:end] for column in self))


def keys_of(block: RecordBatch) -> KeyColumns:
    """The keys of a block's records, except of rolled back ones."""
    row, key_hash = block.index_keys()
    return KeyColumns(key_hash, block.offset[row], block.store_timestamp[row])
