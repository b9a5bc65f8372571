"""The existing index files: to compare with a rebuilt index, and to take entries over from."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.format.index_file import INDEX_HEADER_SIZE, IndexHeader, entry_position
from storage.format.names import INDEX, is_index_file_name

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.record_batch.arrays import Longs

ENTRY: Final = np.dtype(
    [("key_hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)


class OldEntries(NamedTuple):
    """Keys of messages that the log has deleted, at the beginning of an index file.

    ``seconds`` of each entry count from ``begin_timestamp`` (ms), except for the first.
    """

    name: str
    key_hash: Longs
    offset: Longs
    seconds: Longs
    begin_timestamp: int
    whole: IndexHeader | None
    """The file's header if these are all of its keys."""


class OldIndexFile:
    """One file, mapped; of any length and content."""

    def __init__(self, path: Path, config: StoreConfig) -> None:
        self.path = path
        self.name = path.name
        self._slots = config.max_hash_slot_num
        self._max_entries = config.max_index_num
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size = os.fstat(fd).st_size
            mapped = mmap.mmap(fd, 0, access=mmap.ACCESS_READ) if self.size else b""
        finally:
            os.close(fd)
        self.view = memoryview(mapped)
        """All bytes."""
        head = bytes(self.view[:INDEX_HEADER_SIZE]).ljust(INDEX_HEADER_SIZE, b"\0")
        self.header = IndexHeader.unpack_from(head)

    @property
    def keys(self) -> int:
        """Number of its keys according to the header."""
        return max(0, min(self.header.next_entry, self._max_entries) - 1)

    def entries(self) -> NDArray[Any]:
        """The entries from number 1 on, as many as the header counts and the file holds."""
        start = entry_position(self._slots, 1)
        room = max(0, self.size - start) // ENTRY.itemsize
        if not room:
            return np.zeros(0, ENTRY)
        return np.frombuffer(self.view, ENTRY, min(self.keys, room), start)

    def deleted(self, log_min: int) -> OldEntries | None:
        """The sane entries before the log's first byte; None if there are none."""
        entries = self.entries()
        offsets = entries["offset"].astype(np.int64)
        good = (offsets >= 0) & (offsets < log_min) & (entries["key_hash"] >= 0)
        good &= entries["seconds"] >= 0
        good[1:] &= offsets[1:] >= offsets[:-1]
        count = len(good) if good.all() else int(good.argmin())
        if not count or self.header.begin_timestamp <= 0:
            return None
        if count < len(good) and offsets[count] < log_min:
            return None  # something is wrong among them: the log's own keys begin a new file
        return OldEntries(
            self.name,
            entries["key_hash"][:count].astype(np.int64),
            offsets[:count],
            entries["seconds"][:count].astype(np.int64),
            self.header.begin_timestamp,
            self.header if count == self.keys else None,
        )


def index_file_names(root: Path) -> list[str]:
    """Names of all index files, oldest first; none if there is no folder."""
    try:
        paths = [path for path in (root / INDEX).iterdir() if path.is_file()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((path.name for path in paths if is_index_file_name(path.name)), key=int)


def old_index_files(root: Path, config: StoreConfig) -> list[OldIndexFile]:
    """All index files, oldest first; none if there is no folder."""
    return [OldIndexFile(root / INDEX / name, config) for name in index_file_names(root)]
