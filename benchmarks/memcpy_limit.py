"""The lower bound of every writer of these files: copying prepared bytes into place.

For each batch one chunk of records goes into a mapped commit log, one block of units into each
queue, one block of entries into the index, and each key's slot, anywhere in a table of 5,000,000,
gets its number. Nothing is encoded, hashed or read; files are new and have their blocks.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np

from storage.config import StoreConfig
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.encode import prepare
from storage.format.index_file import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE

from .workload import QUEUES, messages


class MemcpyLimit:
    """Files big enough for ``batches``, and what one batch puts into them."""

    def __init__(self, folder: Path, batches: int, batch: int, body_size: int) -> None:
        self._chunk = bytes(prepare(messages(batch, body_size)).buffer)
        self._units = bytes(CQ_STORE_UNIT_SIZE * (batch // QUEUES))
        keys = 2 * batch
        self._entries = bytes(INDEX_ENTRY_SIZE * keys)
        slots = StoreConfig().max_hash_slot_num
        random = np.random.default_rng(4711)
        self._slots = [random.integers(0, slots, keys) for _ in range(batches)]
        self._values = np.arange(keys, dtype=">i4")
        self._maps: list[mmap.mmap] = []
        self._log = self._new_file(folder / "log", batches * len(self._chunk))
        self._queues = [
            self._new_file(folder / f"queue{i}", batches * len(self._units)) for i in range(QUEUES)
        ]
        self._entries_at = INDEX_HEADER_SIZE + 4 * slots
        self._index = self._new_file(
            folder / "index", self._entries_at + batches * len(self._entries)
        )
        self._table = np.frombuffer(self._index, ">i4", slots, INDEX_HEADER_SIZE)
        self._done = 0

    def _new_file(self, path: Path, size: int) -> mmap.mmap:
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, size)
        os.posix_fallocate(fd, 0, size)
        mapped = mmap.mmap(fd, size)
        os.close(fd)
        self._maps.append(mapped)
        return mapped

    def copy_batch(self) -> None:
        """Copy one batch into place."""
        number, self._done = self._done, self._done + 1
        at, size = number * len(self._chunk), len(self._chunk)
        self._log[at : at + size] = self._chunk
        at, size = number * len(self._units), len(self._units)
        for queue in self._queues:
            queue[at : at + size] = self._units
        at, size = self._entries_at + number * len(self._entries), len(self._entries)
        self._index[at : at + size] = self._entries
        self._table[self._slots[number]] = self._values

    def close(self) -> None:
        """Unmap the files."""
        del self._table
        for mapped in self._maps:
            mapped.close()
