"""Filling index files with keys, one file after the other (IndexService, IndexFile.putKey)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from storage.format.index_file import HASH_SLOT_SIZE, IndexHeader, following_header, free_entries
from storage.format.index_many import put_many_keys, write_slots
from storage.format.names import index_file_name, next_index_file_name

from .keys import KeyColumns
from .old_index import ENTRY, OldEntries, OldIndexFile

if TYPE_CHECKING:
    from storage.config import StoreConfig


class IndexSink(Protocol):
    """A target of index files."""

    def begin(self, name: str) -> None:
        """A file begins; the following calls are about it."""
        ...

    def put(self, first: int, entries: NDArray[Any]) -> None:
        """Take entries from number ``first`` on."""
        ...

    def end(self, header: IndexHeader, slots: memoryview) -> None:
        """The file is complete."""
        ...


class IndexBuild:
    """Takes keys in log order and passes the files that hold them to a sink.

    Files keep the names that files with the same beginning have now; others are named after the
    store time of their first key.
    """

    def __init__(self, config: StoreConfig, old: list[OldIndexFile], sink: IndexSink) -> None:
        self._entries = config.max_index_num
        self._slots = bytearray(HASH_SLOT_SIZE * config.max_hash_slot_num)
        self._old = {file.header.begin_phy_offset: file for file in reversed(old)}
        self._sink = sink
        self._header: IndexHeader | None = None
        self._name = ""
        self.keys = 0
        """Number of keys taken."""

    def take_over(self, old: OldEntries) -> None:
        """Begin a file with keys of deleted messages."""
        self._begin(old.name)
        times = old.begin_timestamp + 1000 * old.seconds
        times[0] = old.begin_timestamp
        keys = KeyColumns(old.key_hash, old.offset, times)
        self._put(keys, int(old.seconds[0]))
        assert self._header is not None
        if old.whole is not None:
            end = old.whole.end_timestamp, old.whole.end_phy_offset
            self._header = self._header._replace(end_timestamp=end[0], end_phy_offset=end[1])

    def take(self, keys: KeyColumns) -> None:
        """Take the next keys."""
        start = 0
        while start < len(keys.key_hash):
            first_seconds = None
            if self._header is None or not free_entries(self._header, self._entries):
                first_seconds = self._roll(keys, start)
            assert self._header is not None
            end = min(len(keys.key_hash), start + free_entries(self._header, self._entries))
            self._put(keys.rows(start, end), first_seconds)
            start = end

    def finish(self) -> None:
        """No more keys come."""
        if self._header is not None and self._header.index_count:
            self._sink.end(self._header, memoryview(self._slots))

    def _roll(self, keys: KeyColumns, start: int) -> int | None:
        """Begin the next file; gives the time of its first entry, where that is known.

        It counts from the end of the file before, which may be gone from the store.
        """
        key_hash, offset, time = (int(column[start]) for column in keys)
        old = self._old.get(offset)
        name = index_file_name(time)
        if self._name and int(name) <= int(self._name):
            name = next_index_file_name(self._name)
        first_seconds = None
        if old is not None and (not self._name or int(old.name) > int(self._name)):
            name = old.name
            entries = old.entries()[:1]
            if self._header is None and len(entries) and int(entries["key_hash"][0]) == key_hash:
                first_seconds = max(0, int(entries["seconds"][0]))
        self._begin(name)
        return first_seconds

    def _begin(self, name: str) -> None:
        previous = self._header
        self.finish()
        self._slots[:] = bytes(len(self._slots))
        self._header = IndexHeader() if previous is None else following_header(previous)
        self._name = name
        self._sink.begin(name)

    def _put(self, keys: KeyColumns, first_seconds: int | None) -> None:
        assert self._header is not None
        puts = put_many_keys(self._header, self._slots, *keys)
        write_slots(self._slots, puts)
        entries = np.frombuffer(bytearray(puts.entries), ENTRY)
        if first_seconds is not None:
            entries["seconds"][0] = first_seconds
        self._sink.put(puts.first_entry, entries)
        self._header = puts.header
        self.keys += len(keys.key_hash)
