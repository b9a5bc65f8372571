"""An index file."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from storage.config import StoreConfig
from storage.format.index_file import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexEntry,
    IndexHeader,
    entry_position,
)
from storage.index.sizes import find_index_sizes

from .rows import IndexEntryDump, IndexHeaderDump

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap


class IndexDump:
    """The head of an index file and its entries. ``config`` is the store's, if known."""

    def __init__(self, file: "ReadMap", path: Path, config: StoreConfig | None) -> None:
        self._file = file
        if file.length < INDEX_HEADER_SIZE:
            data = bytes(file.view).ljust(INDEX_HEADER_SIZE, b"\0")
            self._head = IndexHeader.unpack_from(data)
        else:
            self._head = IndexHeader.unpack_from(file.view)
        self._sizes = self._find_sizes(path, config)
        self.header = self._header()

    def _find_sizes(self, path: Path, config: StoreConfig | None) -> tuple[int, int] | None:
        if config is not None and config.index_file_size == self._file.length:
            return config.max_hash_slot_num, config.max_index_num
        return find_index_sizes([path], config or StoreConfig())

    def _header(self) -> IndexHeaderDump:
        slots, entries = self._sizes or (None, None)
        problem = None
        if self._file.length < INDEX_HEADER_SIZE:
            problem = (
                f"the file has {self._file.length} bytes, less than its head of {INDEX_HEADER_SIZE}"
            )
        elif slots is None or entries is None:
            problem = "the numbers of slots and entries cannot be determined from its bytes"
        elif not 0 <= self._head.index_count <= entries:
            problem = f"it counts {self._head.index_count} entries, but has space for {entries}"
        elif not 0 <= self._head.hash_slot_count <= slots:
            problem = f"it counts {self._head.hash_slot_count} used slots of {slots}"
        return IndexHeaderDump(*self._head, slots, entries, problem)

    def entries(self) -> Iterator[IndexEntryDump]:
        """The entries that the head counts, limited by the size of the file."""
        if self._sizes is None:
            return
        slots, room = self._sizes
        start = entry_position(slots, 0)
        room = min(room, (self._file.length - start) // INDEX_ENTRY_SIZE)
        for number in range(1, min(self._head.next_entry, room)):
            position = start + number * INDEX_ENTRY_SIZE
            yield self._entry(number, IndexEntry.unpack_from(self._file.view, position), slots)

    def _entry(self, number: int, entry: IndexEntry, slots: int) -> IndexEntryDump:
        problem = None
        if entry.key_hash < 0:
            problem = "the hash is negative"
        elif not 0 <= entry.previous < number:
            problem = "its previous entry does not come before it"
        elif entry.commitlog_offset < 0:
            problem = "no record can be at this position"
        return IndexEntryDump(
            number,
            entry.key_hash % slots if entry.key_hash >= 0 else None,
            entry.key_hash,
            entry.commitlog_offset,
            self._head.begin_timestamp + entry.time_diff * 1000,
            entry.previous,
            problem,
        )
