"""The number of slots and entries in the index files of a foreign store.

A file's length, 40 + 4 * S + 20 * N, has two unknowns. The entries decide: number 0 is never used,
number 1 is of the first record of the header, the last one of the last record of the header, and
following the chain of an entry's slot leads to the entry.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.format.index_file import (
    HASH_SLOT,
    HASH_SLOT_SIZE,
    INDEX_ENTRY,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    IndexHeader,
    entry_position,
    index_file_size,
    slot_position,
)

if TYPE_CHECKING:
    from storage.config import StoreConfig

_DEFAULT_SLOTS: Final = 5_000_000
_SAMPLES: Final = 64
_LONGEST_CHAIN: Final = 100_000
_LONGEST: Final = 1 << 31
"""No Java broker maps a file of so many bytes."""
_MOST_PLACES: Final = 10_000
"""Positions of one number that are checked: a damaged header may hold zeros, which are all over the
file."""


def find_index_sizes(files: list[Path], base: StoreConfig) -> tuple[int, int] | None:
    """Give (slots, entries) of a store's index files; None if nothing is known of them.

    Files without keys fit any sizes; a damaged one counts only as far as it is consistent.
    """
    lengths = set()
    for path in files:
        with path.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            if not INDEX_HEADER_SIZE <= length < _LONGEST:
                continue
            lengths.add(length)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                found = _told_by(mapped, base)
        if found is not None:
            return found
    for slots in (base.max_hash_slot_num, _DEFAULT_SLOTS):
        if index_file_size(slots, 4 * slots) in lengths:
            return slots, 4 * slots
    for length in sorted(lengths):
        if (length - INDEX_HEADER_SIZE) % 84 == 0 and length > INDEX_HEADER_SIZE:
            return (length - INDEX_HEADER_SIZE) // 84, (length - INDEX_HEADER_SIZE) // 21
    return None


def _told_by(mapped: mmap.mmap, base: StoreConfig) -> tuple[int, int] | None:
    header = IndexHeader.unpack_from(mapped[:INDEX_HEADER_SIZE])
    if header.index_count <= 1:
        return None
    for slots in _candidates(mapped, header, base):
        entries = _entries_beside(len(mapped), slots)
        if _fits(mapped, header, slots, entries):
            return slots, entries
    return None


def _entries_beside(length: int, slots: int) -> int:
    return (length - INDEX_HEADER_SIZE - HASH_SLOT_SIZE * slots) // INDEX_ENTRY_SIZE


def _candidates(mapped: mmap.mmap, header: IndexHeader, base: StoreConfig) -> Iterator[int]:
    length = len(mapped)
    if length == base.index_file_size:
        yield base.max_hash_slot_num
    if length == index_file_size(_DEFAULT_SLOTS, 4 * _DEFAULT_SLOTS):
        yield _DEFAULT_SLOTS
    if (length - INDEX_HEADER_SIZE) % 84 == 0:
        yield (length - INDEX_HEADER_SIZE) // 84  # four entries a slot, the usual proportion
    # The entry that the header ends with: its position gives the number of slots.
    wanted = header.end_phy_offset.to_bytes(8, "big", signed=True)
    after_slots = INDEX_ENTRY_SIZE * (header.index_count - 1) + 4
    at = mapped.find(wanted, INDEX_HEADER_SIZE + after_slots)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return
        slots, odd = divmod(at - after_slots - INDEX_HEADER_SIZE, HASH_SLOT_SIZE)
        rest = length - INDEX_HEADER_SIZE - HASH_SLOT_SIZE * slots
        if not odd and slots > 0 and rest > 0 and rest % INDEX_ENTRY_SIZE == 0:
            yield slots
        at = mapped.find(wanted, at + 1)


def _fits(mapped: mmap.mmap, header: IndexHeader, slots: int, entries: int) -> bool:
    """Whether nearly all of the file agrees with these sizes: a byte may be damaged."""
    count = header.index_count
    if slots < 1 or entries < 2 or count > entries:
        return False
    last = INDEX_ENTRY.unpack_from(mapped, entry_position(slots, count - 1))
    first = INDEX_ENTRY.unpack_from(mapped, entry_position(slots, 1))
    agreed = [
        not any(mapped[entry_position(slots, 0) : entry_position(slots, 1)]),
        first[1] == header.begin_phy_offset,
        last[1] == header.end_phy_offset,
    ]
    samples = range(1, count, max(1, (count - 1) // _SAMPLES))
    reached = sum(_is_reached(mapped, slots, number) for number in samples)
    return sum(agreed) >= 2 and 4 * reached >= 3 * len(samples)


def _is_reached(mapped: mmap.mmap, slots: int, wanted: int) -> bool:
    """Whether the chain of the entry's slot leads to it."""
    key_hash = INDEX_ENTRY.unpack_from(mapped, entry_position(slots, wanted))[0]
    if key_hash < 0:
        return False
    (number,) = HASH_SLOT.unpack_from(mapped, slot_position(key_hash % slots))
    for _ in range(_LONGEST_CHAIN):
        if number == wanted:
            return True
        if number < wanted or entry_position(slots, number + 1) > len(mapped):
            return False
        before = INDEX_ENTRY.unpack_from(mapped, entry_position(slots, number))[3]
        if not 0 < before < number:
            return False
        number = before
    return False
