"""The key index for reading: which records may carry a key (IndexService.queryOffset).

Only hashes are stored, so hits may belong to another key of the same hash; whoever needs the key
itself compares it with the message.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.index import (
    HASH_SLOT,
    INDEX_ENTRY,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    slot_position,
)
from storage.format.java_hash import key_hash
from storage.format.names import INDEX, is_index_file_name

from .pending_keys import NO_HITS, PendingHits

if TYPE_CHECKING:
    from storage.config import StoreConfig


_NO_HEADER: Final = IndexHeader()


class QueryOffsetResult(NamedTuple):
    """Commit log offsets, newest first, and where the newest index file ends."""

    offsets: list[int]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class IndexReader:
    """All index files of a store. Thread-safe; maps newly made files as they come."""

    def __init__(self, root: Path, config: StoreConfig) -> None:
        self._directory = str(root / INDEX)
        self._slots = config.max_hash_slot_num
        self._entries = config.max_index_num
        self._max_hits = config.max_msgs_num_batch
        self._maps: dict[str, mmap.mmap] = {}
        self._known: list[str] = []

    def names(self) -> list[str]:
        """Names of the index files, oldest first."""
        try:
            with os.scandir(self._directory) as entries:
                names = [entry.name for entry in entries if entry.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if is_index_file_name(name))

    def relist(self) -> None:
        """Map all files anew, after files were deleted: one may have the name of another now."""
        self._maps = {}
        self._known = []

    def header(self, name: str) -> IndexHeader | None:
        """The header of one file, None if the file is gone or too short for one."""
        mapped = self._map(name)
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
        *,
        below: int | None = None,
        pending: PendingHits = NO_HITS,
        follow_slots: bool = False,
        capped: bool = True,
    ) -> QueryOffsetResult:
        """Find records of a topic by key hash and store time in ``begin`` .. ``end`` (ms).

        Times of index entries are whole seconds from the file's first one, rounded down. At most
        ``max_msgs_num_batch`` hits where ``capped``, as a broker gives. Entries of records from
        the log offset ``below`` on do not count: ``pending`` has these. ``follow_slots``: rmqctl's
        writers have the store, so what a slot names is whole, whatever the header says that they
        write last.
        """
        if capped:
            max_num = min(max_num, self._max_hits)
        names = self._known
        header = self.header(names[-1]) if names and follow_slots else None
        if header is None or header.index_count >= self._entries:  # else there is no newer file
            names = self._known = self.names()
            header = self.header(names[-1]) if names else None
        newest = header or _NO_HEADER
        phy_offset, timestamp = pending.last
        if not timestamp:
            phy_offset, timestamp = newest.end_phy_offset, newest.end_timestamp
        hits = _in_time(pending, newest, max_num, begin, end) if pending.hits else []
        chain = _Chain(key_hash(topic, key), begin, end, below, follow_slots)
        for name in reversed(names):
            if len(hits) >= max_num:
                break
            if name is not names[-1]:
                header = self.header(name)
            if header is None:
                continue
            if _is_time_matched(header, begin, end):
                self._walk_chain(name, header, chain, max_num, hits)
            if header.begin_timestamp < begin:
                break
        return QueryOffsetResult(hits, timestamp, phy_offset)

    def uncovered(self, start: int, end: int) -> list[tuple[int, int]]:
        """Parts of a range of the log whose keys are in no file.

        Before the first file, behind the last one, and between files where one is gone: a 4.9
        broker that starts after a crash deletes the newest and puts only some of its keys again.
        """
        gaps = []
        for name in self.names():
            header = self.header(name)
            if header is None or header.index_count <= 1:
                continue
            if not 0 <= header.begin_phy_offset <= header.end_phy_offset < end:
                continue  # damaged: nobody knows what it covers
            if start < min(header.begin_phy_offset, end):
                gaps.append((start, min(header.begin_phy_offset, end)))
            start = max(start, header.end_phy_offset)
        return [*gaps, (start, end)] if start < end else gaps

    def _walk_chain(
        self, name: str, header: IndexHeader, chain: _Chain, max_num: int, hits: list[int]
    ) -> None:
        """Follow one slot's chain from its newest entry back (IndexFile.selectPhyOffset)."""
        mapped = self._map(name)
        if mapped is None:
            return
        begin = chain.begin
        known = self._entries if chain.follow_slots else header.index_count
        count = min(known, self._entries)
        at = slot_position(chain.wanted % self._slots)
        if at + HASH_SLOT.size > len(mapped):
            return
        (number,) = HASH_SLOT.unpack_from(mapped, at)
        if not 0 < number <= known or known <= 1:
            return
        while len(hits) < max_num:
            at = entry_position(self._slots, number)
            if number > count or at + INDEX_ENTRY.size > len(mapped):
                return
            entry_hash, offset, seconds, previous = INDEX_ENTRY.unpack_from(mapped, at)
            if seconds < 0:
                return
            when = header.begin_timestamp + seconds * 1000
            counts = chain.below is None or offset < chain.below
            if entry_hash == chain.wanted and begin <= when <= chain.end and counts:
                hits.append(offset)
            # An entry's predecessor was put before it; anything else is damage, maybe a circle.
            if not 0 < previous < number or when < begin:
                return
            number = previous

    def _map(self, name: str) -> mmap.mmap | None:
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
            if len(self._maps) >= 16:
                self._maps.pop(next(iter(self._maps)), None)
            self._maps[name] = found
        return found


class _Chain(NamedTuple):
    """What a chain is followed for: a hash, times in ms, and which entries count."""

    wanted: int
    begin: int
    end: int
    below: int | None
    follow_slots: bool


def _in_time(
    pending: PendingHits, newest: IndexHeader, max_num: int, begin: int, end: int
) -> list[int]:
    """The newest hits of the right time, newest first; times as the index file will have them."""
    first = newest.begin_timestamp
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
