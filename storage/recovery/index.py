"""Keeping the whole part of the key index after an abnormal exit.

RocketMQ deletes each index file that its checkpoint does not cover and adds the keys again that
recovery meets; keys of older messages are lost (IndexService.load). But entries are written one
after the other into zeroed space, so the whole ones are a prefix, and slots follow from entries:
the prefix is kept, the slots are made anew, and keys are added from the last kept record on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.files.bounded import read_first
from storage.format.index_file import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    slot_position,
)
from storage.format.names import INDEX
from storage.format.record import RecordError, read_head
from storage.index.prefix import count_vouched, entries_to_look_at, whole_entries

if TYPE_CHECKING:
    from numpy import ndarray

    from storage.config import StoreConfig
    from storage.files.fs import FileSystem
    from storage.files.mapped_file_queue import MappedFileQueue
    from storage.index.writer import IndexWriter


class IndexRecovery:
    """Checks the files that the checkpoint does not cover; needs the write lock."""

    def __init__(
        self,
        fs: FileSystem,
        root: Path,
        config: StoreConfig,
        index: IndexWriter,
        log: MappedFileQueue,
    ) -> None:
        self._fs = fs
        self._folder = root / INDEX
        self._slots = config.max_hash_slot_num
        self._entries = config.max_index_num
        self._size = config.index_file_size
        self._index = index
        self._log = log

    def run(self, vouched_timestamp: int, log_end: int) -> tuple[int, list[str]]:
        """Repair the files; gives the log offset of the first record that lacks keys, and notes.

        The record that the index ends with may have lost some of its keys, so they go as well;
        they may lie in several files. All records before that one have all their keys.
        """
        notes: list[str] = []
        names = self._index.names()
        last = self._count_vouched(names, vouched_timestamp)
        while last < len(names) - 1 and self._keep_full(names[last], log_end):
            last += 1
        for later in names[last + 1 :]:
            self._delete(later)
            notes.append(f"{self._folder / later}: follows a damaged file, made anew")
        for name in reversed(names[: last + 1]):
            lacking, kept = self._cut(name, log_end, notes)
            if kept:
                return lacking, notes
        return 0, notes

    def _count_vouched(self, names: list[str], timestamp: int) -> int:
        headers = []
        for name in names:
            try:
                data = read_first(self._folder / name, INDEX_HEADER_SIZE)
            except FileNotFoundError:  # it is no file: one without a header
                data = b""
            headers.append(IndexHeader.unpack_from(data.ljust(INDEX_HEADER_SIZE, b"\0")))
        return count_vouched(headers, self._entries, timestamp)

    def _keep_full(self, name: str, log_end: int) -> bool:
        """Whether a file is full of whole entries; its slots are made anew then."""
        path = self._folder / name
        if path.stat().st_size != self._size:
            return False
        fd = self._fs.open(path, writable=True)
        try:
            header = IndexHeader.unpack_from(self._fs.read(fd, INDEX_HEADER_SIZE, 0))
            entries = self._prefix(fd, header, log_end)
            if len(entries) < self._entries - 1:
                return False
            self._rewrite(fd, header, entries)
        finally:
            self._fs.close(fd)
        return True

    def _cut(self, name: str, log_end: int, notes: list[str]) -> tuple[int, bool]:
        """Take the last record's keys off a file; gives its offset and whether keys are left.

        A file without keys is removed: the next key makes a new one.
        """
        path = self._folder / name
        if path.stat().st_size != self._size:
            self._delete(name)
            notes.append(f"{path}: its length is not that of the store's index files, made anew")
            return 0, False
        fd = self._fs.open(path, writable=True)
        try:
            header = IndexHeader.unpack_from(self._fs.read(fd, INDEX_HEADER_SIZE, 0))
            entries = self._prefix(fd, header, log_end)
            if len(entries) < header.next_entry - 1:
                count = f"{len(entries)} of {header.next_entry - 1}"
                notes.append(f"{path}: kept {count} keys, the rest made anew")
            last = int(entries["offset"][-1]) if len(entries) else 0
            kept = entries[: int((entries["offset"] < last).sum())]
            if len(kept) and self._rewrite(fd, header, kept):
                # What was taken off must not come back when the power goes again: the next file
                # would follow it, with keys of records between them in neither.
                self._fs.sync(fd)
                return last, True
        finally:
            self._fs.close(fd)
        self._delete(name)
        return last, False

    def _delete(self, name: str) -> None:
        """Remove a file for good: its keys must not come back when the log has grown over them."""
        self._index.delete(name)
        self._fs.sync_dir(self._folder)

    def _prefix(self, fd: int, header: IndexHeader, log_end: int) -> ndarray:
        """The whole entries of a file, from entry 1 on."""
        count = entries_to_look_at(header, self._entries)
        start = entry_position(self._slots, 1)
        data = self._fs.read(fd, count * INDEX_ENTRY_SIZE, start)
        return whole_entries(data, log_end)

    def _rewrite(self, fd: int, header: IndexHeader, kept: ndarray) -> bool:
        """Make slots and header match exactly the kept entries, and zero the bytes after them.

        False if the store time of the first of them is unknown.
        """
        import numpy as np

        slots = np.zeros(self._slots, ">i4")
        used = kept["hash"].astype(np.int64) % self._slots
        slots[used] = np.arange(1, len(kept) + 1)  # the last one of a slot stays
        first, last = int(kept["offset"][0]), int(kept["offset"][-1])
        # The header may be that of the empty file, which carries the end of the file before.
        begin = self._store_timestamp(first) or header.begin_timestamp
        if begin <= 0:
            return False
        renewed = IndexHeader(
            begin,
            self._store_timestamp(last) or header.end_timestamp,
            first,
            last,
            int(np.count_nonzero(slots)),
            len(kept) + 1,
        )
        self._fs.write(fd, slots.tobytes(), slot_position(0))
        entries_end = entry_position(self._slots, len(kept) + 1)
        for start, end in self._fs.data_ranges(fd, entries_end, self._size):
            self._fs.write(fd, bytes(end - start), start)
        self._fs.write(fd, renewed.pack(), 0)
        return True

    def _store_timestamp(self, commitlog_offset: int) -> int | None:
        file = self._log.find(commitlog_offset)
        if file is None:
            return None
        try:
            head = read_head(file.read(commitlog_offset - file.file_from_offset, 128))
        except RecordError:
            return None
        return head.store_timestamp
