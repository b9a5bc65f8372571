"""The key index for reading: which records may carry a key (IndexService.queryOffset).

Only hashes are stored, so hits may belong to another key of the same hash; a caller that needs the
key itself compares it with the message.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native
from storage.files.read_files import leads_to_file
from storage.format.index_file import (
    HASH_SLOT,
    HASH_SLOT_SIZE,
    INDEX_ENTRY,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    slot_position,
)
from storage.format.java_hash import key_hash
from storage.format.names import INDEX, is_index_file_name

from .keys_from_log import NO_HITS, PendingHits

if TYPE_CHECKING:
    from storage.config import StoreConfig


_NEWEST: Final = Struct(">qq8xq4xi")
"""Of an index file's header: first and last time, last log offset, number of the next entry."""
_NOTHING: Final = (0, 0, 0, 0)
_MOST_MAPS: Final = 16
_new: Final = tuple.__new__


class QueryOffsetResult(NamedTuple):
    """Commit log offsets, newest first, and where the newest index file ends."""

    offsets: list[int]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class IndexReader:
    """All index files of a store. Thread-safe; maps new files as they are made."""

    def __init__(self, root: Path, config: StoreConfig) -> None:
        self._directory = str(root / INDEX)
        self.slots = config.max_hash_slot_num
        """Slots of each file."""
        self.entries = config.max_index_num
        """Entries of each file, the first, unused one included."""
        self.max_hits = config.max_msgs_num_batch
        """Hits that a broker gives at most."""
        self.files: tuple[mmap.mmap, ...] = ()
        """The newest files as last listed, newest first; may change at any time."""
        self.older: list[str] = []
        """Names of the others, newest first."""
        self._maps: dict[str, mmap.mmap] = {}

    def names(self) -> list[str]:
        """Names of the index files, oldest first."""
        try:
            with os.scandir(self._directory) as entries:
                names = [entry.name for entry in entries if leads_to_file(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if is_index_file_name(name))

    def relist(self) -> None:
        """Map all files anew, after files were deleted: one may have the name of another now."""
        self._maps = {}
        self.files = ()
        self.older = []

    def header(self, name: str) -> IndexHeader | None:
        """The header of one file, None if the file is gone or too short for one."""
        mapped = self.map_file(name)
        if mapped is None or len(mapped) < INDEX_HEADER_SIZE:
            return None
        return IndexHeader.unpack_from(mapped[:INDEX_HEADER_SIZE])

    def query(
        self,
        topic: str,
        key: str,
        max_num: int,
        begin: int,
        end: int,
        below: int | None = None,
        pending: PendingHits = NO_HITS,
        follow_slots: bool = False,
        *,
        capped: bool = True,
    ) -> QueryOffsetResult:
        """Find records of a topic by key hash and store time in ``begin`` .. ``end`` (ms).

        Times of index entries are whole seconds from the file's first one, rounded down. At most
        ``max_msgs_num_batch`` hits where ``capped``, as a broker gives. Entries of records from the
        log offset ``below`` on do not count: ``pending`` has these. ``follow_slots``: rmqctl's
        writers have the store, so an entry that a slot names is whole, whatever the header says,
        which they write last.
        """
        if capped and max_num > self.max_hits:
            max_num = self.max_hits
        files = self.files
        newest = _NEWEST.unpack_from(files[0]) if files and follow_slots else None
        if newest is None or newest[3] >= self.entries:  # else there is no newer file
            files = self._list()
            newest = _NEWEST.unpack_from(files[0]) if files else _NOTHING
        first, timestamp, phy_offset, _ = newest
        if pending.last[1]:
            phy_offset, timestamp = pending.last
        hits = _in_time(pending, first, max_num, begin, end) if pending.hits else []
        asked = (topic, key, begin, end, below, follow_slots, max_num, hits)
        goes_on: bool | None
        try:
            goes_on = search_index(files, self.slots, self.entries, *asked)
        except OverflowError:  # times that no machine word holds
            goes_on = None
        if goes_on is None:
            goes_on = _search(files, self.slots, self.entries, *asked)
        for name in self.older if goes_on else ():
            file = self.map_file(name) if len(hits) < max_num else None
            if file and not _search((file,), self.slots, self.entries, *asked):
                break
        return _new(QueryOffsetResult, (hits, timestamp, phy_offset))

    def search_files(
        self,
        names: Iterable[str],
        topic: str,
        key: str,
        begin: int,
        end: int,
        below: int,
        most: int,
        hits: list[int],
    ) -> None:
        """Append the hits of some files, newest first, up to ``most`` in all; as ``query``."""
        asked = (topic, key, begin, end, below, False, most, hits)
        for name in names:
            file = self.map_file(name) if len(hits) < most else None
            if file and not _search((file,), self.slots, self.entries, *asked):
                return

    def _list(self) -> tuple[mmap.mmap, ...]:
        """List new files; gives the maps of the newest ones, newest first."""
        names = self.names()[::-1]
        maps = {name: self.map_file(name) for name in names[:_MOST_MAPS]}
        self._maps = {name: file for name, file in maps.items() if file is not None}
        self.older = names[_MOST_MAPS:]
        files = self._maps.values()
        self.files = tuple(file for file in files if len(file) >= INDEX_HEADER_SIZE)
        return self.files

    def uncovered(self, start: int, end: int) -> list[tuple[int, int]]:
        """Parts of a range of the log whose keys are in no file.

        Before the first file, after the last one, and between files where one is gone: a 4.9
        broker that starts after a crash deletes the newest and puts only some of its keys again.
        """
        gaps = []
        for name in self.names():
            header = self.header(name)
            if header is None or header.index_count <= 1 or not self._is_whole(name):
                continue
            if not 0 <= header.begin_phy_offset <= header.end_phy_offset < end:
                continue  # damaged: its coverage is unknown
            if start < min(header.begin_phy_offset, end):
                gaps.append((start, min(header.begin_phy_offset, end)))
            start = max(start, header.end_phy_offset)
        return [*gaps, (start, end)] if start < end else gaps

    def _is_whole(self, name: str) -> bool:
        """Whether a file has all its entries: one that was cut is not searched to its end."""
        mapped = self.map_file(name)
        return mapped is not None and len(mapped) >= entry_position(self.slots, self.entries)

    def map_file(self, name: str) -> mmap.mmap | None:
        """One file's bytes, None if the file is gone or empty."""
        found = self._maps.get(name)
        if found is None:
            try:
                fd = os.open(f"{self._directory}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                if not os.fstat(fd).st_size:
                    return None
                found = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
            finally:
                os.close(fd)
        return found


def _search(
    files: tuple[mmap.mmap | bytes, ...],
    slots: int,
    entries: int,
    topic: str,
    key: str,
    begin: int,
    end: int,
    below: int | None,
    follow_slots: bool,
    most: int,
    hits: list[int],
) -> bool:
    """Append the hits of files, newest first; also gives whether older files may have more."""
    wanted = key_hash(topic, key)
    for file in files:
        if len(hits) >= most:
            break
        if len(file) < INDEX_HEADER_SIZE:
            continue
        header = IndexHeader.unpack_from(file[:INDEX_HEADER_SIZE])
        if _is_time_matched(header, begin, end):
            known = entries if follow_slots else header.index_count
            first = header.begin_timestamp
            for entry_hash, offset, seconds in _chain(file, slots, entries, known, wanted):
                when = first + seconds * 1000
                counts = below is None or offset < below
                if entry_hash == wanted and begin <= when <= end and counts:
                    hits.append(offset)
                if when < begin or len(hits) >= most:
                    break
        if header.begin_timestamp < begin:
            return False
    return True


search_index: Final = native.form("search_index", _search)


def _chain(
    file: mmap.mmap | bytes, slots: int, entries: int, known: int, wanted: int
) -> Iterator[tuple[int, int, int]]:
    """Hash, log offset and seconds of the entries of one slot, from its newest one back
    (IndexFile.selectPhyOffset)."""
    at = slot_position(wanted % slots)
    if known <= 1 or at + HASH_SLOT_SIZE > len(file):
        return
    (number,) = HASH_SLOT.unpack_from(file, at)
    previous, number = number, known + 1
    # An entry's predecessor was put before it; anything else is damage, perhaps circular.
    while 0 < previous < number:
        number = previous
        at = entry_position(slots, number)
        if number > entries or at + INDEX_ENTRY_SIZE > len(file):
            return
        entry_hash, offset, seconds, previous = INDEX_ENTRY.unpack_from(file, at)
        if seconds < 0:
            return
        yield entry_hash, offset, seconds


def _in_time(pending: PendingHits, first: int, max_num: int, begin: int, end: int) -> list[int]:
    """The newest hits of the right time, newest first; times as the index file will have them,
    whose first one is ``first``."""
    hits: list[int] = []
    for offset, timestamp in reversed(pending.hits):
        when = timestamp if first <= 0 else timestamp - (timestamp - first) % 1000
        if begin <= when <= end and len(hits) < max_num:
            hits.append(offset)
    return hits


def _is_time_matched(header: IndexHeader, begin: int, end: int) -> bool:
    """Whether a file's range of times can hold something (IndexFile.isTimeMatched)."""
    first, last = header.begin_timestamp, header.end_timestamp
    return (begin < first and end > last) or first <= begin <= last or first <= end <= last
