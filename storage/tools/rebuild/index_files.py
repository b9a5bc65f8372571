"""Targets of a rebuilt index: a comparison with the old files, or new files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.format.index_file import (
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    index_file_size,
)

from .file_ends import is_zero
from .old_index import OldIndexFile

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.fs import FileSystem

_BLOCK: Final = 4096


class ComparedIndex:
    """Compares index files with the existing ones of the same names."""

    def __init__(self, fs: FileSystem, config: StoreConfig, old: list[OldIndexFile]) -> None:
        self._fs = fs
        self._slots = config.max_hash_slot_num
        self._size = index_file_size(config.max_hash_slot_num, config.max_index_num)
        self._old = {file.name: file for file in old}
        self._name = ""
        self._file: OldIndexFile | None = None
        self._same = True
        self.headers: dict[str, IndexHeader] = {}
        """Header of each new file, by name."""
        self.differing: set[str] = set()
        """Files that are missing or differ."""

    def begin(self, name: str) -> None:
        """A file begins."""
        self._name = name
        self._file = self._old.get(name)
        self._same = self._file is not None and self._file.size == self._size

    def put(self, first: int, entries: NDArray[Any]) -> None:
        """Compare entries from number ``first`` on."""
        if self._same and self._file is not None:
            at = entry_position(self._slots, first)
            self._same = self._file.view[at : at + entries.nbytes] == entries.tobytes()

    def end(self, header: IndexHeader, slots: memoryview) -> None:
        """Compare header, slots, and that nothing follows the last entry."""
        self.headers[self._name] = header
        if self._same and self._file is not None:
            view = self._file.view
            end = entry_position(self._slots, header.index_count)
            self._same = (
                view[:INDEX_HEADER_SIZE] == header.pack()
                and _same_bytes(view[INDEX_HEADER_SIZE : INDEX_HEADER_SIZE + len(slots)], slots)
                and is_zero(self._fs, self._file.path, end, self._size)
            )
        if not self._same:
            self.differing.add(self._name)


def _same_bytes(old: memoryview, new: memoryview) -> bool:
    return bool((np.frombuffer(old, np.uint8) == np.frombuffer(new, np.uint8)).all())


class WrittenIndex:
    """Writes index files into a folder, as long as the store's; zeros after the content."""

    def __init__(self, fs: FileSystem, folder: Path, config: StoreConfig) -> None:
        self._fs = fs
        self._folder = folder
        self._slots = config.max_hash_slot_num
        self._size = index_file_size(config.max_hash_slot_num, config.max_index_num)
        self._fd = -1

    def begin(self, name: str) -> None:
        """A file begins; raises OSError."""
        self._fd = self._fs.open(self._folder / name, writable=True, create=True)
        self._fs.set_length(self._fd, self._size)

    def put(self, first: int, entries: NDArray[Any]) -> None:
        """Write entries from number ``first`` on."""
        self._fs.write(self._fd, entries.tobytes(), entry_position(self._slots, first))

    def end(self, header: IndexHeader, slots: memoryview) -> None:
        """Write slots and header, and sync the file."""
        fs = self._fs
        for at in range(0, len(slots), _BLOCK):
            block = slots[at : at + _BLOCK]
            if any(block):  # the others stay holes, as Java leaves them
                fs.write(self._fd, block, INDEX_HEADER_SIZE + at)
        fs.write(self._fd, header.pack(), 0)
        fs.sync(self._fd)
        self.close()

    def close(self) -> None:
        """Close the file, complete or not."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._fs.close(fd)
