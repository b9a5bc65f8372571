"""The trustworthy part of the key index after an abnormal exit, as recovery would keep it.

Entries are written one after the other into zeroed space, so the whole ones of a file are a prefix,
whatever pages of entries, slots and header the device has lost. Slots are not read: one that was
kept may name an entry that was lost, and then the entries before it are not reached.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.errors import RecoveryNeededError
from storage.files.bounded import read_first
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.index_file import INDEX_ENTRY_SIZE, IndexHeader, entry_position
from storage.format.java_hash import key_hash
from storage.format.names import CHECKPOINT

from .keys_from_log import PendingKeys, key_stretches
from .reader import IndexReader, QueryOffsetResult

if TYPE_CHECKING:
    from pathlib import Path

    from numpy import ndarray

    from storage.config import StoreConfig
    from storage.log.record_reader import RecordReader

MOST_READ: Final = 2_000_000
"""Records of the log that a search for a key reads because the index may lack their keys."""
_REMEMBERED: Final = 8 << 20
"""Bytes of log whose keys are remembered for the next search."""
_BLOCK: Final = 1 << 20
_AFTER_HEADER: Final = 65_536
"""The header may be older or newer on the device than the entries: so many more are read."""
_FOREVER: Final = (1 << 63) - 1


def count_vouched(headers: Sequence[IndexHeader], entries: int, timestamp: int) -> int:
    """Number of files that had filled up and were synced before the checkpoint covered them.

    ``timestamp`` is that of the checkpoint. Of several files that end at exactly that time it may
    have been written for the first.
    """
    for number, header in enumerate(headers):
        if header.next_entry < entries or header.end_timestamp > timestamp:
            return number
        if header.end_timestamp == timestamp:
            return number + 1
    return len(headers)


def entries_to_look_at(header: IndexHeader, entries: int) -> int:
    """Number of entries of a file that may be whole."""
    return min(entries - 1, header.next_entry - 1 + _AFTER_HEADER)


def whole_entries(data: bytes | memoryview, log_end: int) -> ndarray:
    """The whole entries of a file, from entry 1 on, with which ``data`` begins."""
    import numpy as np

    entry = np.dtype([("hash", ">i4"), ("offset", ">i8"), ("diff", ">i4"), ("previous", ">i4")])
    entries = np.frombuffer(data, entry, len(data) // entry.itemsize)
    before = 0
    for first in range(0, len(entries), _BLOCK):
        block = entries[first : first + _BLOCK]
        offsets = block["offset"].astype(np.int64)
        numbers = np.arange(first + 1, first + 1 + len(block))
        good = (offsets >= 0) & (offsets < log_end) & (block["hash"] >= 0)
        good &= (block["previous"] >= 0) & (block["previous"] < numbers)
        good[1:] &= offsets[1:] >= offsets[:-1]
        good[0] &= offsets[0] >= before
        good &= (offsets > 0) | (block["hash"] != 0)
        if not good.all():
            return entries[: first + int(good.argmin())]
        before = int(offsets[-1])
    return entries


class _SearchPlan(NamedTuple):
    vouched: list[str]
    """Files that are searched as usual, newest first."""
    below: int
    """They have all keys of records below this log offset."""
    kept: list[ndarray]
    """Whole entries of the others."""
    gaps: list[tuple[int, int]]
    """Parts of the log whose keys may be missing; the last one goes to the log's end."""


class UnconfirmedIndex:
    """Finds keys in a store that was not closed cleanly and that no process has open.

    Files that the checkpoint covers are searched as usual; of the others each whole entry is
    compared, and the log is read where keys are missing. Thread-safe; nothing is written.
    """

    def __init__(
        self, root: Path, config: StoreConfig, index: IndexReader, records: RecordReader
    ) -> None:
        self._root = root
        self._config = config
        self._index = index
        self._records = records
        self._pending = PendingKeys(records.log)
        self._known: tuple[object, _SearchPlan] | None = None
        self._scanned: tuple[object, list[tuple[str, int]]] | None = None

    def query(
        self, topic: str, key: str, most: int, begin: int, end: int, log_end: int
    ) -> QueryOffsetResult:
        """Find up to ``most`` records by key and store time (ms), the newest ones.

        Raises RecoveryNeededError where too much of the log would have to be read.
        """
        vouched, below, kept, gaps = self._plan(log_end)
        newest = _offset_of(kept[-1][0]) if kept else gaps[-1][0]
        first = self._time_of(newest, log_end) or 0  # of the file that will take them in recovery
        in_log, last_in_log = self._in_log(topic, key, gaps)
        hits = [(offset, first) for offset in in_log]
        for entries in kept:
            first = self._time_of(int(entries["offset"][0]), log_end) or 0
            of_key = entries["offset"][entries["hash"] == key_hash(topic, key)]
            hits += [(offset, first) for offset in of_key.tolist()]
        found: list[int] = []
        for offset, first in sorted(hits, reverse=True):
            if len(found) >= most:
                break
            if self._is_of_time(offset, first, begin, end, log_end):
                found.append(offset)
        self._index.search_files(vouched, topic, key, begin, end, below, most, found)
        last = max((int(entries["offset"][-1]) for entries in kept), default=0)
        last = max(last, last_in_log)
        return QueryOffsetResult(found, self._time_of(last, log_end) or 0, last)

    def _plan(self, log_end: int) -> _SearchPlan:
        names = self._index.names()
        at = (log_end, names)
        known = self._known
        if known is None or known[0] != at:
            known = self._known = at, self._plan_anew(log_end, names)
        return known[1]

    def _plan_anew(self, log_end: int, names: list[str]) -> _SearchPlan:
        headers = [self._index.header(name) or IndexHeader() for name in names]
        entries = self._config.max_index_num
        count = count_vouched(headers, entries, self._vouched_time())
        files = self._records.log.offsets()
        start = max([*files[:1], *(header.end_phy_offset for header in headers[:count])], default=0)
        below = start
        kept: list[ndarray] = []
        gaps: list[tuple[int, int]] = []
        for name, header in zip(names[count:], headers[count:], strict=True):
            whole = self._whole_of(name, header, log_end)
            full = len(whole) == entries - 1
            # A file may lack keys of the record at its end, or the entry itself is torn.
            whole = whole[
                bisect_right(whole, start if count or kept else start - 1, key=_offset_of) :
            ]
            if len(whole):
                last = _offset_of(whole[-1])
                gaps.append((start, _offset_of(whole[0])))
                whole = whole[: bisect_left(whole, last, key=_offset_of)]
                if not len(whole):
                    gaps.pop()
                    break
                kept.append(whole)
                start = last if full else _offset_of(whole[-1])
                if not full:
                    kept[-1] = whole[: bisect_left(whole, start, key=_offset_of)]
            if not full:
                break
        kept = [whole for whole in kept if len(whole)]
        return _SearchPlan(names[:count][::-1], below, kept, [*gaps, (start, log_end)])

    def _whole_of(self, name: str, header: IndexHeader, log_end: int) -> ndarray:
        mapped = self._index.map_file(name)
        if mapped is None or len(mapped) != self._config.index_file_size:
            return whole_entries(b"", log_end)
        start = entry_position(self._config.max_hash_slot_num, 1)
        count = entries_to_look_at(header, self._config.max_index_num)
        data = memoryview(mapped)[start : start + count * INDEX_ENTRY_SIZE]
        return whole_entries(data, log_end)

    def _vouched_time(self) -> int:
        try:
            data = read_first(self._root / CHECKPOINT, CHECKPOINT_SIZE)
        except OSError:
            return 0
        return CheckpointData.unpack(data).index_msg_timestamp

    def _in_log(self, topic: str, key: str, gaps: list[tuple[int, int]]) -> tuple[list[int], int]:
        """Offsets of the records in these parts of the log that have the key, and the offset of the
        last record with any key; 0 if too much would have to be read."""
        found: list[int] = []
        for start, end in gaps[:-1]:
            found += self._scan(topic, key, start, end)
        start, end = gaps[-1]
        if end - start > _REMEMBERED:
            return found + self._scan(topic, key, start, end), 0
        pending = self._pending.find(topic, key, start, end)
        return found + [offset for offset, _ in pending.hits], pending.last[0]

    def _scan(self, topic: str, key: str, start: int, end: int) -> list[int]:
        """The last answer is kept, for all topics: a key is often searched for in each of them."""
        at = (key, start, end)
        scanned = self._scanned
        if scanned is None or scanned[0] != at:
            scanned = self._scanned = at, self._scan_anew(key, start, end)
        return [offset for of_topic, offset in scanned[1] if of_topic == topic]

    def _scan_anew(self, key: str, start: int, end: int) -> list[tuple[str, int]]:
        found = []
        count = 0
        for stretch in key_stretches(self._records.log, start, end) if start < end else ():
            for topic, keys, offset, _ in stretch.rows:
                found += [(topic, offset)] * keys.count(key)
            count += len(stretch.rows)
            if count > MOST_READ:
                raise RecoveryNeededError(self._root, MOST_READ, "their keys in the index")
        return found

    def _is_of_time(self, offset: int, first: int, begin: int, end: int, log_end: int) -> bool:
        """Compared with the time in the index: whole seconds since its file's first time."""
        if begin <= 0 and end >= _FOREVER:
            return True
        stored = self._time_of(offset, log_end)
        if stored is None:
            return False
        return begin <= (stored - (stored - first) % 1000 if first else stored) <= end

    def _time_of(self, offset: int, log_end: int) -> int | None:
        message = self._records.look(offset, log_end)
        return None if message is None else message.store_timestamp


def _offset_of(entry: Any) -> int:
    return int(entry["offset"])
