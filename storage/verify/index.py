"""Checking the key index: each file in itself, and its entries against the records of the log."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.config import StoreConfig
from storage.format.index import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
)
from storage.format.names import INDEX, file_name, is_index_file_name
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag

from .findings import Checked, Code, Finding, Severity
from .offset_runs import OffsetRuns
from .records import Longs, RecordBlock, TopicNames

Emit = Callable[[Finding], None]

_ENTRY: Final = np.dtype(
    [("key_hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)
_BLOCK_ENTRIES: Final = 1 << 18
_REBUILD: Final = "rmqctl store rebuild index"
_HASH_BITS: Final = 31


class _IndexFile:
    """One index file, mapped."""

    __slots__ = ("_order", "_sorted", "count", "entries", "header", "name", "ordered", "slots")

    def __init__(
        self, name: str, mapped: mmap.mmap, slots: int, max_entries: int, *, live: bool
    ) -> None:
        self.name = name
        view = memoryview(mapped)
        self.slots: NDArray[Any] = np.frombuffer(view, ">i4", slots, INDEX_HEADER_SIZE).copy()
        self.header = IndexHeader.unpack_from(mapped[:INDEX_HEADER_SIZE])
        count = self.header.next_entry
        if live:
            # A writer stores entries, then slots, then the count: what a slot names is whole.
            named = int(self.slots.max(initial=0))
            count = max(count, 1 + named if named < max_entries else 0)
        self.count = min(count, max_entries)
        start = entry_position(slots, 0)
        self.entries: NDArray[Any] = np.frombuffer(view, _ENTRY, self.count, start)
        self.ordered = True
        self._order: Longs | None = None  # made when entries of a damaged file have to be sorted
        self._sorted: Longs | None = None

    def between(self, start: int, end: int) -> tuple[Longs, NDArray[Any]]:
        """Numbers and bytes of the entries of records in [start, end) of the log."""
        offsets = self.entries["offset"]
        if self.ordered:
            low, high = _bisect(offsets, start), _bisect(offsets, end)
            return np.arange(low, high), self.entries[low:high]
        if self._order is None or self._sorted is None:
            self._order = np.argsort(offsets[1:], kind="stable") + 1
            self._sorted = offsets[self._order].astype(np.int64)
        low, high = np.searchsorted(self._sorted, (start, end)).tolist()
        numbers = self._order[low:high]
        return numbers, self.entries[numbers]


class IndexCheck:
    """Checks all index files, then blocks of records against them.

    ``live``: somebody is writing, so the newest file may be ahead of itself for a moment. What only
    holds if nobody begins to write meanwhile goes to ``emit_if_quiet``. Records from the log offset
    ``keys_from`` on may be without keys: these are still to be put, and readers find them.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        topics: TopicNames,
        emit: Emit,
        checked: Checked,
        *,
        log_min: int,
        log_end: int,
        keys_from: int,
        live: bool,
        emit_if_quiet: Emit,
        wanted: frozenset[str] | None,
    ) -> None:
        self._root = root
        self._config = config
        self._topics = topics
        self._emit = emit
        self._checked = checked
        self._log_min = log_min
        self._log_end = log_end
        self._keys_from = keys_from
        self._live = live
        self._emit_if_quiet = emit_if_quiet
        self._wanted = wanted
        self._files: list[_IndexFile] = []
        self._missing = OffsetRuns()
        self._missing_keys = 0
        self._wrong: dict[str, tuple[int, int]] = {}
        self._late: dict[str, tuple[int, int]] = {}

    # -- each file in itself ------------------------------------------------------------------

    def load(self) -> None:
        """Map the files and check what each says about itself."""
        folder = self._root / INDEX
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        usual = self._config.index_file_size
        usable = [path for path in paths if is_index_file_name(path.name) and path.is_file()]
        for path in usable:
            self._checked.files += 1
            length = path.stat().st_size
            if length != usual:
                self._report(
                    Code.INDEX_FILE_LENGTH,
                    path.name,
                    None,
                    f"the file has {length} bytes, those of this store {usual}",
                    "it is not searched" if length < usual else "none",
                )
                if length < usual:
                    continue
            newest = path == usable[-1]
            with path.open("rb") as opened:
                mapped = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            file = _IndexFile(
                path.name,
                mapped,
                self._config.max_hash_slot_num,
                self._config.max_index_num,
                live=self._live and newest,
            )
            self._files.append(file)
            self._check_file(file, newest=newest)

    def _check_file(self, file: _IndexFile, *, newest: bool) -> None:
        count, header = file.count, file.header
        self._checked.index_entries += count - 1
        live = self._live and newest
        emit = self._emit_if_quiet if newest else self._emit
        problems = []
        if header.index_count > self._config.max_index_num or header.index_count < 0:
            problems.append(f"it counts {header.index_count - 1} keys")
        if count > 1 and not live:
            first, last = file.entries[1], file.entries[count - 1]
            if first["offset"] != header.begin_phy_offset:
                problems.append("it does not begin with its first key")
            if last["offset"] != header.end_phy_offset:
                problems.append("it does not end with its last key")
        used = int((file.slots != 0).sum())
        if not live and used != header.hash_slot_count:
            problems.append(f"it counts {header.hash_slot_count} used slots of {used}")
        if problems:
            self._report(
                Code.INDEX_HEADER_WRONG,
                file.name,
                0,
                "; ".join(problems),
                "queries by key may miss messages, and new keys may overwrite old ones",
                emit,
            )
        self._check_chains(file, emit, live=live)
        behind = int((file.entries["offset"][1:] >= self._log_end).sum())
        if behind and not self._live:
            self._report(
                Code.INDEX_BEHIND_END,
                file.name,
                None,
                f"{behind} keys are of records behind the log's end",
                "queries by key find nothing there",
                self._emit_if_quiet,
            )

    def _check_chains(self, file: _IndexFile, emit: Emit, *, live: bool) -> None:
        """Every entry must be reached once from its own slot."""
        count, slots = file.count, self._config.max_hash_slot_num
        reached = np.zeros(count, np.uint8)
        used = np.flatnonzero(file.slots)
        named = file.slots[used].astype(np.int64)
        broken = 0
        in_range = (named > 0) & (named < count)
        broken += int((~in_range).sum())
        used, named = used[in_range], named[in_range]
        broken += int((file.entries["key_hash"][named] % slots != used).sum())
        np.add.at(reached, named, 1)
        last_offset = -1
        for start in range(1, count, _BLOCK_ENTRIES):
            block = file.entries[start : start + _BLOCK_ENTRIES]
            numbers = np.arange(start, start + len(block))
            previous = block["previous"].astype(np.int64)
            linked = previous != 0
            sound = linked & (previous > 0) & (previous < numbers)
            broken += int((linked & ~sound).sum())
            before = file.entries["key_hash"][previous[sound]] % slots
            broken += int((before != block["key_hash"][sound] % slots).sum())
            np.add.at(reached, previous[sound], 1)
            offsets = block["offset"].astype(np.int64)
            file.ordered &= bool((np.diff(offsets, prepend=last_offset) >= 0).all())
            last_offset = int(offsets[-1])
        if live:
            unreached = (reached[1:] == 0) & (file.entries["offset"][1:] < self._log_end)
            broken += int(unreached.sum())
        else:
            broken += int((reached[1:] != 1).sum())
        if broken:
            self._report(
                Code.INDEX_CHAIN_BROKEN,
                file.name,
                None,
                f"{broken} links of its chains are broken",
                "queries by key miss messages",
                emit,
            )

    # -- against the log ----------------------------------------------------------------------

    def compare(self, block: RecordBlock) -> None:
        """Look for the keys of a block's records, and for entries that no record has."""
        indexed = block.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        # A replaced record may have its keys or not: nobody knows any more which they were.
        replaced = block.offset[block.sys_flag & REPLACED_FLAG != 0]
        rows = np.flatnonzero(
            (indexed != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
            & (block.sys_flag & REPLACED_FLAG == 0)
        )
        owners, hashes = block.index_keys(rows, self._topics)
        start = int(block.offset[0])
        end = int(block.offset[-1] + block.size[-1])
        # offset and hash in one number, so that sets can be compared
        expected = (block.offset[owners] - start) << _HASH_BITS | hashes
        expected, first = np.unique(expected, return_index=True)
        times = block.store_timestamp[owners[first]] if len(owners) else owners
        found: list[Longs] = []
        for file in self._files:
            numbers, entries = file.between(start, end)
            if len(replaced):
                kept = ~np.isin(entries["offset"], replaced)
                numbers, entries = numbers[kept], entries[kept]
            if len(numbers):
                keys = (entries["offset"].astype(np.int64) - start) << _HASH_BITS
                keys |= entries["key_hash"].astype(np.int64) & 0x7FFFFFFF
                found.append(keys)
                self._compare_entries(file, numbers, entries, keys, expected, times)
        present = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        missing = np.setdiff1d(expected, present, assume_unique=True)
        missing = missing[missing >> _HASH_BITS < self._keys_from - start]
        if self._wanted is not None and len(missing):
            missing = missing[self._are_wanted(block, missing, start)]
        self._missing_keys += len(missing)
        if len(missing):
            rows = np.unique(np.searchsorted(block.offset, (missing >> _HASH_BITS) + start))
            self._missing.add_stretches(block.offset[rows], block.offset[rows] + block.size[rows])

    def _compare_entries(
        self,
        file: _IndexFile,
        numbers: Longs,
        entries: NDArray[Any],
        keys: Longs,
        expected: Longs,
        times: Longs,
    ) -> None:
        at = np.searchsorted(expected, keys)
        at = np.minimum(at, max(0, len(expected) - 1))
        known = expected[at] == keys if len(expected) else np.zeros(len(keys), bool)
        if not known.all():
            number = int(numbers[known.argmin()])
            count, first = self._wrong.get(file.name, (0, number))
            self._wrong[file.name] = (count + int((~known).sum()), first)
        if not known.any():
            return
        self._compare_times(file, numbers[known], times[at[known]])
        begin = file.header.begin_timestamp
        seconds = np.clip((times[at[known]] - begin) // 1000, 0, 0x7FFFFFFF)
        first_key = numbers[known] == 1
        seconds = np.where(first_key, self._first_seconds(file, times[at[known]]), seconds)
        late = (entries["seconds"][known] != seconds) & (seconds >= 0)
        if begin > 0 and late.any():
            count, first = self._late.get(file.name, (0, int(numbers[known][late.argmax()])))
            self._late[file.name] = (count + int(late.sum()), first)

    def _first_seconds(self, file: _IndexFile, times: Longs) -> Longs:
        """What a file's first key says: seconds since the file before ended; -1 = unknown."""
        number = self._files.index(file)
        if number:
            end = self._files[number - 1].header.end_timestamp
            return np.clip((times - end) // 1000, 0, 0x7FFFFFFF)
        return np.full(len(times), 0 if self._log_min == 0 else -1)

    def _compare_times(self, file: _IndexFile, numbers: Longs, times: Longs) -> None:
        """The header repeats the store times of the first and the last key's records."""
        header = file.header
        for number, time, what in (
            (1, header.begin_timestamp, "begins"),
            (file.count - 1, header.end_timestamp, "ends"),
        ):
            at = np.flatnonzero(numbers == number)
            if len(at) and int(times[at[0]]) != time and not self._live:
                self._report(
                    Code.INDEX_HEADER_WRONG,
                    file.name,
                    0,
                    f"it {what} at {time}, its key is of {times[at[0]]}",
                    "queries by key and time miss messages",
                    self._emit_if_quiet,
                )

    def finish(self) -> None:
        """Report what was collected over all blocks."""
        runs = list(self._missing)
        if runs:
            file_size = self._config.mapped_file_size_commit_log
            start, end = runs[0][0], runs[-1][1]
            position = start % file_size
            self._emit(
                Finding(
                    Code.INDEX_KEY_MISSING,
                    Severity.WARNING,
                    f"commitlog/{file_name(start - position)}",
                    position,
                    f"{self._missing_keys} keys of records between log offsets {start} and {end} "
                    f"are not in the index ({len(runs)} stretches)",
                    "queries by key do not find these messages",
                    _REBUILD,
                )
            )
        self._report_entries(self._wrong, Code.INDEX_ENTRY_WRONG, "belong to no record")
        self._report_entries(self._late, Code.INDEX_TIME_WRONG, "have a wrong time")

    def _report_entries(self, found: dict[str, tuple[int, int]], code: Code, what: str) -> None:
        for name, (count, first) in found.items():
            position = entry_position(self._config.max_hash_slot_num, first)
            self._report(code, name, position, f"{count} keys {what}", "queries by key go astray")

    def _are_wanted(self, block: RecordBlock, keys: Longs, start: int) -> NDArray[np.bool_]:
        rows = np.searchsorted(block.offset, (keys >> _HASH_BITS) + start)
        names = self._topics.names
        wanted = self._wanted or frozenset()
        return np.array([names[number] in wanted for number in block.topic[rows].tolist()], bool)

    def _report(
        self,
        code: Code,
        name: str,
        position: int | None,
        what: str,
        effect: str,
        emit: Emit | None = None,
    ) -> None:
        finding = Finding(
            code, Severity.WARNING, f"{INDEX}/{name}", position, what, effect, _REBUILD
        )
        (emit or self._emit)(finding)


def _bisect(offsets: NDArray[Any], wanted: int) -> int:
    """First entry at or behind a log offset; entry 0 is unused. NumPy's search copies the lot."""
    low, high = 1, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


assert _ENTRY.itemsize == INDEX_ENTRY_SIZE
