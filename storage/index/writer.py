"""Writing the key index: hash files as org.apache.rocketmq.store.index.IndexService makes them.

Adding a key is not idempotent, so the header is noted in the shared state before any key is added
(stage 3). After a death in stage 3 the next writer first takes the index back to that header.
"""

from __future__ import annotations

import sys
from array import array
from contextlib import suppress
from itertools import repeat
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from storage import native
from storage.coordination.kept_links import KeptLinks
from storage.coordination.shared_state import Word
from storage.files.bounded import read_first
from storage.files.fs import WORD
from storage.files.mapped_file import MappedFile
from storage.files.preallocation import INDEX_WINDOW, OF_INDEX, Preallocation, has_pages_made
from storage.format.index_file import (
    HASH_SLOT,
    HASH_SLOT_SIZE,
    INDEX_ENTRY,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER,
    INDEX_HEADER_SIZE,
    IndexHeader,
    IndexPuts,
    entry_position,
    following_header,
    put_keys,
    slot_position,
)
from storage.format.names import INDEX, OURS, index_file_name, is_index_file_name

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.coordination.shared_state import SharedState
    from storage.files.fs import FileSystem
    from storage.format.prepared import Ints

_AHEAD: Final = 256 << 10
"""Bytes of entries that are made ready at a time for a run of batches."""
_COPY_LIMIT: Final = 16 << 10
"""Up to so many bytes of entries are stored through the map, more through the descriptor: after the
window of a file that another process filled up to here may be a hole."""
MANY: Final = 48
"""Number of keys from which NumPy pays."""
_UNDO: Final = Word.UNDO_INDEX_HEADER * WORD
_UNDO_HEADER: Final = Struct("=6q")
index_entries: Final = native.form("index_entries", native.nothing)
index_finish: Final = native.form("index_finish", native.nothing)


class IndexWriter:
    """The index files of a store; guarded by the write lock. The newest one takes the keys."""

    def __init__(
        self, fs: FileSystem, root: Path, config: StoreConfig, shared: SharedState
    ) -> None:
        self._fs = fs
        self._root = root
        self._directory = root / INDEX
        self._slots = config.max_hash_slot_num
        self._entries = config.max_index_num
        self._size = config.index_file_size
        self._shared = shared
        self._file: MappedFile | None = None
        self._windows = Preallocation(
            OF_INDEX, makes_pages=has_pages_made(config), first=slot_position(self._slots)
        )
        self.full: list[tuple[Path, int]] = []
        """Files that filled up and are not synced yet, and the store times of their last keys."""
        self._second_names = KeptLinks(fs, root)

    def is_whole(self) -> bool:
        """Whether the file that takes the keys has its full length; True if it is missing."""
        name = self._shared.words[Word.INDEX_FILE]
        path = self._directory / f"{name:017d}"
        try:
            return name == 0 or path.stat().st_size >= self._size
        except FileNotFoundError:
            return True

    # -- adding -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Note the state of the index in the shared state, for :meth:`take_back`. Before stage
        3."""
        shared = self._shared
        file = self._current()
        shared.words[Word.UNDO_INDEX_FILE] = 0 if file is None else file.file_from_offset
        if file is not None:
            header = INDEX_HEADER.unpack_from(file.map)
            shared.map[_UNDO : _UNDO + _UNDO_HEADER.size] = _UNDO_HEADER.pack(*header)

    def put(self, hashes: Ints, offsets: Ints, timestamps: Ints | int) -> None:
        """Add key ``hashes[i]`` of the record at ``offsets[i]``, stored at ``timestamps[i]`` ms.

        All are lists, or all NumPy's; one time may be that of all. Raises OSError; then stage 3
        must be resolved.
        """
        start = 0
        while start < len(hashes):
            file = self._current()
            header = None if file is None else _header_of(file)
            if file is None or header is None or header.next_entry >= self._entries:
                first = timestamps if isinstance(timestamps, int) else timestamps[start]
                file = self._roll(header, int(first))
                header = _header_of(file)
            end = min(len(hashes), start + self._entries - header.next_entry)
            times = timestamps if isinstance(timestamps, int) else timestamps[start:end]
            self._put_into(file, header, hashes[start:end], offsets[start:end], times)
            start = end

    def room_for(self, keys: int, *, in_run: bool) -> tuple[mmap, int, int, int] | None:
        """Make room for so many more keys in the newest file; gives its map, its name, the position
        of the next entry, and the end of the entries that have blocks. None if they do not fit.

        ``in_run``: many more keys will follow. Raises OSError if there are no blocks.
        """
        file = self._current()
        if file is None:
            return None
        number = max(_header_of(file).next_entry, 1)
        if number + keys > self._entries:
            return None
        start, end = (entry_position(self._slots, n) for n in (number, number + keys))
        self._windows.reserve(file, start, end - start)
        limit = file.reserved_to
        if in_run:
            if end > file.ready_to:
                file.take_made_pages(start)
            if end > file.ready_to:
                file.get_ready(start, min(limit, end + _AHEAD))
            limit = min(limit, file.ready_to)
        return file.map, file.file_from_offset, start, limit

    def _put_into(
        self,
        file: MappedFile,
        header: IndexHeader,
        hashes: Ints,
        offsets: Ints,
        timestamps: Ints | int,
    ) -> None:
        """Add keys to a file that has room for them: entries first, then slots, then the header."""
        mapped = file.map
        count = len(hashes)
        first = max(header.next_entry, 1)
        start, end = (entry_position(self._slots, n) for n in (first, first + count))
        file.reserve(start, end, INDEX_WINDOW)
        if self._put_compiled(file, header, hashes, offsets, timestamps):
            return
        # Some thousand keys in lists cost less than NumPy's import.
        if count < MANY or "numpy" not in sys.modules:

            def read_slot(slot: int) -> int:
                at = slot_position(slot)
                return int(HASH_SLOT.unpack(mapped[at : at + HASH_SLOT_SIZE])[0])

            times = repeat(timestamps, count) if isinstance(timestamps, int) else timestamps
            few, places = [int(h) for h in hashes], [int(o) for o in offsets]
            puts = put_keys(header, self._slots, read_slot, few, places, [int(t) for t in times])
            at = entry_position(self._slots, puts.first_entry)
            if len(puts.entries) <= _COPY_LIMIT:
                mapped[at : at + len(puts.entries)] = puts.entries
            else:
                file.write(at, puts.entries)
            for slot, value in zip(puts.slots, puts.slot_values, strict=True):
                at = slot_position(slot)
                mapped[at : at + HASH_SLOT_SIZE] = HASH_SLOT.pack(value)
        else:
            puts = self._put_many(file, header, hashes, offsets, timestamps)
        mapped[:INDEX_HEADER_SIZE] = puts.header.pack()

    def _put_compiled(
        self,
        file: MappedFile,
        header: IndexHeader,
        hashes: Ints,
        offsets: Ints,
        timestamps: Ints | int,
    ) -> bool:
        """Do the same in compiled code, for the real file system (``FileSystem.map``)."""
        mapped = file.map
        if type(mapped) is not mmap:
            return False
        times = timestamps if isinstance(timestamps, int) else longs(timestamps)
        found = index_entries(mapped, self._slots, longs(hashes), longs(offsets), times)
        if found is None:
            return False
        entries, rest = found
        at = entry_position(self._slots, header.next_entry)
        if len(entries) <= _COPY_LIMIT:
            mapped[at : at + len(entries)] = entries
        else:
            file.write(at, entries)
        index_finish(mapped, rest)
        return True

    def _put_many(
        self,
        file: MappedFile,
        header: IndexHeader,
        hashes: Ints,
        offsets: Ints,
        timestamps: Ints | int,
    ) -> IndexPuts:
        import numpy as np

        from storage.format.index_many import put_many_keys

        end = slot_position(self._slots)
        with memoryview(file.map) as whole, whole[INDEX_HEADER_SIZE:end] as slots:
            puts = put_many_keys(header, slots, hashes, offsets, timestamps)
            file.write(entry_position(self._slots, puts.first_entry), puts.entries)
            table = np.frombuffer(slots, ">i4")
            table[puts.slots] = puts.slot_values
            del table  # a view would keep the map from being closed
        return puts

    # -- resolving ----------------------------------------------------------------------------

    def take_back(self, keys: int) -> None:
        """Undo the additions of a dead writer, of ``keys`` keys since :meth:`begin`.

        Their entries stay: the same ones are written there again at once, and readers may be among
        them.
        """
        words = self._shared.words
        keep = words[Word.UNDO_INDEX_FILE]
        for name in self.names():
            if int(name) > keep:
                self.delete(name)
                words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
        words[Word.INDEX_FILE] = keep
        file = self._current()
        if file is None:
            return
        header = IndexHeader(*(words[Word.UNDO_INDEX_HEADER + i] for i in range(6)))
        mapped = file.map
        first = header.next_entry
        beyond = min(first + keys, self._entries)
        for number in range(beyond - 1, first - 1, -1):
            at = entry_position(self._slots, number)
            entry = INDEX_ENTRY.unpack(mapped[at : at + INDEX_ENTRY_SIZE])
            key_hash, previous = entry[0], entry[3]
            if key_hash < 0:
                continue  # torn: its slot was not stored yet
            at = slot_position(key_hash % self._slots)
            if HASH_SLOT.unpack(mapped[at : at + HASH_SLOT_SIZE])[0] == number:
                mapped[at : at + HASH_SLOT_SIZE] = HASH_SLOT.pack(previous)
        mapped[:INDEX_HEADER_SIZE] = header.pack()

    # -- files --------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Names of the index files, oldest first."""
        try:
            names = [path.name for path in self._directory.iterdir()]
        except FileNotFoundError:
            return []
        return sorted((name for name in names if is_index_file_name(name)), key=int)

    def delete(self, name: str) -> None:
        """Remove one file."""
        self._drop()
        self._fs.unlink(self._directory / name)
        self._second_names.forget(self._directory / name)

    def use_newest(self) -> None:
        """Find the file that takes the next keys and name it in the shared state (after
        recovery)."""
        self._drop()
        names = self.names()
        self._shared.words[Word.INDEX_FILE] = int(names[-1]) if names else 0

    def newest_header(self) -> IndexHeader | None:
        """Header of the file that takes the next keys, or None if there is no file.

        Zeros if the file has none: its maker died, and recovery removes the file.
        """
        name = self._shared.words[Word.INDEX_FILE]
        if name == 0:
            return None
        header = read_first(self._directory / f"{name:017d}", INDEX_HEADER_SIZE)
        return IndexHeader.unpack_from(header.ljust(INDEX_HEADER_SIZE, b"\0"))

    def full_files(self) -> list[Path]:
        """The files that filled up and are ready to be synced, then noted (checkpoint).

        Only once the next file has later keys: a Java broker that starts beside us would not delete
        a file that ends when the noted one does, but would add keys to it, as we do.
        """
        file = self._current()
        end_timestamp = 0 if file is None else _header_of(file).end_timestamp
        full = [path for path, timestamp in self.full if timestamp < end_timestamp]
        if full:
            self._restore()
        return full

    def noted(self) -> None:
        """The checkpoint covers the first of ``full_files`` now."""
        del self.full[0]

    def sync(self) -> None:
        """Sync the newest file to the device."""
        file = self._current()
        if file is not None:
            file.sync()

    def close(self) -> None:
        """Close the map."""
        self._drop()

    def _current(self) -> MappedFile | None:
        name = self._shared.words[Word.INDEX_FILE]
        if name == 0:
            return None
        file = self._file
        if file is None or file.file_from_offset != name:
            self._drop()
            path = self._directory / f"{name:017d}"
            try:
                file = MappedFile(self._fs, path, self._size, name, writable=True)
            except FileNotFoundError:
                if not self._restore():
                    raise
                file = MappedFile(self._fs, path, self._size, name, writable=True)
            try:
                file.reserve_range(0, slot_position(self._slots))  # Java leaves holes here
            except BaseException:
                file.close()
                raise
            self._file = file
        return file

    def _roll(self, previous: IndexHeader | None, now_ms: int) -> MappedFile:
        """Make the next file; it begins where the full one ended (IndexFile's constructor)."""
        name = int(index_file_name(now_ms))
        if previous is not None:
            assert self._file is not None
            self.full.append((self._file.path, previous.end_timestamp))
            name = max(name, self._file.file_from_offset + 1)
        self._fs.make_dirs(self._directory)
        fd, temporary = self._fs.create_beside(self._root / OURS / "new-index")
        path = self._directory / f"{name:017d}"
        try:
            try:
                self._fs.set_length(fd, self._size)
                first = min(self._size, slot_position(self._slots) + (1 << 20))
                self._fs.reserve(fd, 0, first)
                if previous is not None:
                    self._fs.write(fd, following_header(previous).pack(), 0)
                self._fs.sync(fd)
            finally:
                self._fs.close(fd)
            if not self._second_names.keep(temporary, path):
                self._shared.words[Word.INDEX_BASE] = name
            self._fs.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                self._fs.unlink(temporary)
            raise
        self._fs.sync_dir(self._directory)
        self._shared.words[Word.INDEX_FILE] = name
        file = self._current()
        assert file is not None
        file.expect_nothing_to_read()
        return file

    def _restore(self) -> bool:
        restored = self._second_names.restore(self._directory)
        if restored:
            self._shared.words[Word.RIVALS] = 1
        return bool(restored)

    def _drop(self) -> None:
        file, self._file = self._file, None  # first: a signal may come after the close
        if file is not None:
            file.close()


def longs(column: Ints) -> Any:
    """A column as a buffer of native numbers of 8 bytes, which C takes."""
    return array("q", column) if isinstance(column, (list, tuple, range)) else column


def _header_of(file: MappedFile) -> IndexHeader:
    return IndexHeader.unpack_from(file.map[:INDEX_HEADER_SIZE])
