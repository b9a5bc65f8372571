"""Index keys of many records at once, in the order in which the index has them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.files.read_files import ReadMap
from storage.format.hash_many import index_hashes_many, powers_of_31
from storage.format.sys_flag import MessageSysFlag
from storage.model import (
    KEY_SEPARATOR,
    PROPERTY_KEYS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    split_keys,
)

from .columns import QueueNames, Run
from .property_columns import Values, properties_of
from .windows import Longs


class KeyColumns(NamedTuple):
    """Keys of records; item i of each column is of the same one. Times are ms."""

    key_hash: Longs
    offset: Longs
    store_timestamp: Longs

    def rows(self, start: int, end: int) -> KeyColumns:
        """Some of them."""
        return KeyColumns(*(column[start:end] for column in self))


def keys_of_run(run: Run, file: ReadMap, file_from_offset: int, names: QueueNames) -> KeyColumns:
    """UNIQ_KEY first, then each part of KEYS; all records but rolled back ones (IndexService)."""
    topics = names.topic_hashes()[run.queue]
    rows: list[Longs] = []
    ranks: list[Longs] = []
    hashes: list[Longs] = []
    for part in properties_of(file.view, run.properties_at, run.properties_length):
        unique = part.find(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        keys = part.find(PROPERTY_KEYS)
        several = keys.hold(ord(KEY_SEPARATOR))
        for rank, values in enumerate((unique, keys.only(~several))):
            whole, units = values.hashes()
            whole = topics[values.rows] * powers_of_31(units) + whole
            rows.append(values.rows)
            ranks.append(np.full(len(values.rows), rank, np.int64))
            hashes.append(_absolute(whole))
        if several.any():
            divided = _divided(keys.only(several), run, names)
            for column, more in zip((rows, ranks, hashes), divided, strict=True):
                column.append(more)
    row = np.concatenate(rows)
    order = np.lexsort((np.concatenate(ranks), row))
    row = row[order]
    rolled_back = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
    indexed = (run.sys_flag & rolled_back != rolled_back)[row]
    row, order = row[indexed], order[indexed]
    return KeyColumns(
        np.concatenate(hashes)[order],
        run.place[row] + file_from_offset,
        run.store_timestamp[row],
    )


def _divided(values: Values, run: Run, names: QueueNames) -> tuple[Longs, Longs, Longs]:
    """Rows, ranks and hashes of keys that stand together in one KEYS property."""
    rows: list[int] = []
    ranks: list[int] = []
    keys: list[str] = []
    for row, text in zip(values.rows.tolist(), values.texts(), strict=True):
        for rank, key in enumerate(split_keys(text.decode("utf-8", "replace")), 1):
            rows.append(row)
            ranks.append(rank)
            keys.append(key)
    row_column = np.array(rows, np.int64)
    topics = names.topic_hashes()[run.queue[row_column]]
    hashes = index_hashes_many(topics, keys) if keys else row_column
    return row_column, np.array(ranks, np.int64), hashes


def _absolute(hashes: NDArray[np.uint32]) -> Longs:
    """Java's Math.abs of unsigned hashes, but 0 for -2^31 (IndexFile.indexKeyHashMethod)."""
    signed = hashes.view(np.int32).astype(np.int64)
    absolute: Longs = np.abs(signed) & 0x7FFFFFFF
    return absolute
