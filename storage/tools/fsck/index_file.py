"""One file of the key index, mapped, and its own consistency."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage import native
from storage.config import StoreConfig
from storage.format.index_file import (
    HASH_SLOT_SIZE,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    slot_position,
)
from storage.record_batch.arrays import Longs

from .findings import Code

_ENTRY: Final = np.dtype(
    [("key_hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
)
_BLOCK: Final = 1 << 17
chains_are_sound: Final = native.form("chains_are_sound", native.nothing)
"""Whether all chains are sound; None where it is not compiled."""


class Problem(NamedTuple):
    """One problem of a file, and its byte."""

    code: Code
    position: int | None
    what: str
    effect: str


class IndexFile:
    """One index file. ``live``: a process may be writing it, so it may be ahead of itself."""

    def __init__(self, path: Path, config: StoreConfig, *, live: bool) -> None:
        self.name = path.name
        self.live = live
        self.problems: list[Problem] = []
        with path.open("rb") as opened:
            # Bytes past the length of an index file are unused, and may be gigabytes.
            length = min(path.stat().st_size, config.index_file_size)
            self._map = mmap.mmap(opened.fileno(), length, access=mmap.ACCESS_READ)
        view = memoryview(self._map)
        self._slots = config.max_hash_slot_num
        self._max_entries = config.max_index_num
        head = self._map[:INDEX_HEADER_SIZE].ljust(INDEX_HEADER_SIZE, b"\0")  # it may be cut
        self.header = IndexHeader.unpack_from(head)
        self.whole = len(self._map) >= config.index_file_size
        """Whether it has the length that readers need; a shorter one is not searched."""
        self.slots: NDArray[Any] = np.zeros(0, ">i4")
        self.entries: NDArray[Any] = np.zeros(1, _ENTRY)
        if self.whole:
            count = self.header.next_entry
            if live:
                self._read_slots()
                # A writer stores entries, then slots, then the count: slots name whole entries.
                named = int(self.slots.max(initial=0))
                count = max(count, 1 + named if named < self._max_entries else 0)
            start = entry_position(self._slots, 0)
            count = min(count, self._max_entries)
            self.entries = np.frombuffer(view, _ENTRY, count, start)
        self.ordered = True
        self.wrong: list[tuple[Longs, Longs]] = []
        """Numbers and log offsets of entries outside of the log's range."""
        self._order: Longs | None = None  # made when entries of a damaged file have to be sorted
        self._sorted: Longs | None = None

    @property
    def count(self) -> int:
        """Number of the next entry."""
        return len(self.entries)

    @property
    def header_sound(self) -> bool:
        """Whether the header's log offsets are plausible."""
        bad = (Code.INDEX_HEADER_WRONG, Code.INDEX_FILE_LENGTH)
        return self.whole and not any(problem.code in bad for problem in self.problems)

    def position(self, number: int) -> int:
        """The position of an entry."""
        return entry_position(self._slots, number)

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

    def _read_slots(self) -> None:
        self.slots = np.frombuffer(self._map, ">i4", self._slots, INDEX_HEADER_SIZE).copy()

    # -- its own consistency ------------------------------------------------------------

    def check(self, log_min: int, log_end: int) -> int:
        """Find contradictions; gives the number of keys past the log's end."""
        if self.whole and not self.live:
            self.slots = np.frombuffer(self._map, ">i4", self._slots, INDEX_HEADER_SIZE)
        self._check_header()
        if not self.whole:
            return 0
        self._check_chains()
        return self._check_range(log_min, log_end)

    def look_at_order(self) -> None:
        """Check whether the entries ascend in the log; before :meth:`between`."""
        last = -1
        for start in range(1, self.count, _BLOCK):
            offsets = self.entries["offset"][start : start + _BLOCK].astype(np.int64)
            self.ordered &= bool((np.diff(offsets, prepend=last) >= 0).all())
            last = int(offsets[-1])

    def _check_header(self) -> None:
        count, header = self.count, self.header
        found = []
        if header.index_count > self._max_entries or header.index_count < 0:
            found.append(f"it counts {header.index_count - 1} keys")
        if count > 1 and not self.live:
            if self.entries[1]["offset"] != header.begin_phy_offset:
                found.append("it does not begin with its first key")
            if self.entries[-1]["offset"] != header.end_phy_offset:
                found.append("it does not end with its last key")
        used = int(np.count_nonzero(self.slots))
        if self.whole and not self.live and used != header.hash_slot_count:
            found.append(f"it counts {header.hash_slot_count} used slots of {used}")
        if not self.live and self._has_more():
            found.append(f"it counts {count - 1} keys, more follow")
        if found:
            self.header_wrong("; ".join(found))

    def _has_more(self) -> bool:
        """Whether a slot leads to an entry after those that the header counts."""
        if not self.whole or self.count >= self._max_entries:
            return False
        start, end = self.position(self.count), self.position(self.count + 1)
        return any(self._map[start:end]) and int(self.slots.max(initial=0)) >= self.count

    def header_wrong(self, what: str) -> None:
        """Note a problem of the header."""
        effect = "queries by key may miss messages, and new keys may overwrite old ones"
        self.problems.append(Problem(Code.INDEX_HEADER_WRONG, 0, what, effect))

    def _check_chains(self) -> None:
        """Every entry must be reached once, from its own slot."""
        if not self.live:
            end = INDEX_HEADER_SIZE + self._slots * HASH_SLOT_SIZE
            with memoryview(self._map) as view, view[INDEX_HEADER_SIZE:end] as slots:
                start, past_end = self.position(0), self.position(self.count)
                with view[start:past_end] as entries:
                    if chains_are_sound(slots, entries):
                        return
        self._look_at_chains()

    def _look_at_chains(self) -> None:
        """The same with NumPy; reports the problems."""
        count, slots = self.count, self._slots
        reached = np.zeros(count, np.uint8)
        broken = 0
        astray: list[int] = []  # links that lead nowhere
        unlike: list[int] = []  # links to an entry of another slot
        for start in range(0, slots, _BLOCK):
            named = self.slots[start : start + _BLOCK].astype(np.int64)
            used = np.flatnonzero(named)
            named = named[used]
            inside = (named > 0) & (named < count)
            broken += _note(used[~inside] + start, astray, slot_position)
            used, named = used[inside] + start, named[inside]
            other = self.entries["key_hash"][named] % slots != used
            broken += _note(used[other], unlike, slot_position)
            reached[named] += 1  # an entry that two slots name is of another slot for one of them
        for start in range(1, count, _BLOCK):
            block = self.entries[start : start + _BLOCK]
            numbers = np.arange(start, start + len(block))
            previous = block["previous"].astype(np.int64)
            linked = previous != 0
            sound = linked & (previous > 0) & (previous < numbers)
            broken += _note(numbers[linked & ~sound], astray, self.position)
            before = self.entries["key_hash"][previous[sound]] % slots
            other = before != block["key_hash"][sound] % slots
            broken += _note(numbers[sound][other], unlike, self.position)
            np.add.at(reached, previous[sound], 1)
        lone = reached[1:] == 0 if self.live else reached[1:] != 1
        if self.live:  # unlinked entries are of a batch that is being put
            lone &= np.arange(1, count) < self.header.next_entry
        missed: list[int] = []
        broken += _note(np.flatnonzero(lone) + 1, missed, self.position)
        if broken:
            place = min(astray or unlike or missed)
            what = f"{broken} links of its chains are broken"
            effect = "queries by key miss messages"
            self.problems.append(Problem(Code.INDEX_CHAIN_BROKEN, place, what, effect))

    def _check_range(self, log_min: int, log_end: int) -> int:
        """Keys of deleted records come first, those past the log's end last."""
        if self.ordered:
            return max(0, self.count - _bisect(self.entries["offset"], log_end))
        past_end = 0
        first_kept, last_inside = self.count, 0
        for start in range(1, self.count, _BLOCK):
            offsets = self.entries["offset"][start : start + _BLOCK].astype(np.int64)
            past_end += int((offsets >= log_end).sum())
            kept = np.flatnonzero(offsets >= log_min)
            if len(kept):
                first_kept = min(first_kept, start + int(kept[0]))
            inside = np.flatnonzero(offsets < log_end)
            if len(inside):
                last_inside = start + int(inside[-1])
        offsets = self.entries["offset"].astype(np.int64)
        numbers = np.arange(self.count)
        wrong = (offsets < log_min) & (numbers > first_kept)
        wrong |= (offsets >= log_end) & (numbers < last_inside)
        wrong |= offsets < 0
        wrong[:1] = False
        self.wrong.append((numbers[wrong], offsets[wrong]))
        past_end -= int((wrong & (offsets >= log_end)).sum())
        return past_end


def _note(numbers: Longs, places: list[int], position: Any) -> int:
    """Keep the position of the first of some broken links; gives how many there are."""
    if len(numbers) and not places:
        places.append(position(int(numbers[0])))
    return len(numbers)


def _bisect(offsets: NDArray[Any], wanted: int) -> int:
    """First entry at or after a log offset; entry 0 is unused. NumPy's search copies the array."""
    low, high = 1, len(offsets)
    while low < high:
        middle = (low + high) // 2
        if offsets[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


assert _ENTRY.itemsize == INDEX_ENTRY_SIZE
