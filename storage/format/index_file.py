"""An index file: key -> commit log offset (org.apache.rocketmq.store.index.IndexFile, IndexHeader).

    0                   40                       40 + 4 * S                 40 + 4 * S + 20 * N
    +-------------------+------------------------+---------------------------+
    | header            | S slots of 4 bytes     | N entries of 20 bytes     |
    +-------------------+------------------------+---------------------------+
    header: beginTimestamp 8 | endTimestamp 8 | beginPhyOffset 8 | endPhyOffset 8
            | hashSlotCount 4 | indexCount 4
    slot:   number of the newest entry whose hash mod S is this slot; 0, negative or above
            indexCount = empty
    entry:  keyHash 4 | commitlogOffset 8 | seconds since beginTimestamp 4
            | number of the slot's previous entry 4 (0 = none)

indexCount is the number of the next free entry. It starts at 1: entry 0 is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from .prepared import Ints

INDEX_HEADER: Final = Struct(">4q2i")
INDEX_HEADER_SIZE: Final = INDEX_HEADER.size
HASH_SLOT: Final = Struct(">i")
HASH_SLOT_SIZE: Final = HASH_SLOT.size
INDEX_ENTRY: Final = Struct(">iqii")
INDEX_ENTRY_SIZE: Final = INDEX_ENTRY.size
_MAX_INT: Final = 0x7FFFFFFF


class IndexHeader(NamedTuple):
    """The first 40 bytes. Times are store times in ms, offsets commit log bytes.

    ``index_count`` is as stored: 0 in a fresh file; ``next_entry`` is what it means.
    """

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_phy_offset: int = 0
    end_phy_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 0

    @classmethod
    def unpack_from(cls, buffer: bytes | memoryview, position: int = 0) -> Self:
        """Decode the header at ``position``; struct.error beyond the buffer's end."""
        return cls._make(INDEX_HEADER.unpack_from(buffer, position))

    def pack(self) -> bytes:
        """Encode the 40 bytes."""
        return INDEX_HEADER.pack(*self)

    @property
    def next_entry(self) -> int:
        """Number of the next free entry: at least 1 (IndexHeader.load)."""
        return max(1, self.index_count)


class IndexEntry(NamedTuple):
    """One key of one message."""

    key_hash: int
    commitlog_offset: int
    time_diff: int
    """Seconds from the file's begin timestamp to the store timestamp, rounded down."""
    previous: int
    """Number of the entry before it in the same slot, 0 = none."""

    @classmethod
    def unpack_from(cls, buffer: bytes | memoryview, position: int = 0) -> Self:
        """Decode the entry at ``position``; struct.error beyond the buffer's end."""
        return cls._make(INDEX_ENTRY.unpack_from(buffer, position))

    def pack(self) -> bytes:
        """Encode the 20 bytes."""
        return INDEX_ENTRY.pack(*self)


class IndexPuts(NamedTuple):
    """What a run of puts changes in one index file.

    To be written in the order that crash recovery counts on: ``entries`` (one block, the first has
    the number ``first_entry``), then slot ``slots[i]`` = ``slot_values[i]``, in order (each slot
    once), then the header.
    """

    first_entry: int
    entries: bytes
    slots: Ints
    slot_values: Ints
    header: IndexHeader


def index_file_size(hash_slot_num: int, index_num: int) -> int:
    """Give the length of an index file with S slots and N entries."""
    return INDEX_HEADER_SIZE + HASH_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * index_num


def slot_position(slot: int) -> int:
    """Give where slot number ``slot`` lies in the file."""
    return INDEX_HEADER_SIZE + HASH_SLOT_SIZE * slot


def entry_position(hash_slot_num: int, entry: int) -> int:
    """Give where entry number ``entry`` lies in a file with ``hash_slot_num`` slots."""
    return INDEX_HEADER_SIZE + HASH_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * entry


def normalised_slot(value: int, next_entry: int) -> int:
    """Read a slot's value as IndexFile.putKey does: 0 if it cannot be an entry's number."""
    return value if 0 < value <= next_entry else 0


def time_diff(store_timestamp: int, begin_timestamp: int) -> int:
    """Give the seconds that an entry holds: rounded towards 0, 0 .. 2^31 - 1 (IndexFile.putKey)."""
    if begin_timestamp <= 0 or store_timestamp <= begin_timestamp:
        return 0
    return min((store_timestamp - begin_timestamp) // 1000, _MAX_INT)


def free_entries(header: IndexHeader, index_num: int) -> int:
    """Count the keys that a file of ``index_num`` entries still takes."""
    return max(0, index_num - header.next_entry)


def following_header(full: IndexHeader) -> IndexHeader:
    """Make the header of the file after a full one: it begins where that one ends."""
    return IndexHeader(
        full.end_timestamp, full.end_timestamp, full.end_phy_offset, full.end_phy_offset
    )


def put_keys(
    header: IndexHeader,
    hash_slot_num: int,
    read_slot: Callable[[int], int],
    key_hashes: Sequence[int],
    commitlog_offsets: Sequence[int],
    store_timestamps: Sequence[int],
) -> IndexPuts:
    """Compute what putting keys one by one would write (IndexFile.putKey); writes nothing.

    ``read_slot`` gives the value that a slot holds on disk, as a signed int. The other sequences
    have one item a key. The caller puts no more than ``free_entries`` at once.
    """
    first = number = header.next_entry
    begin_timestamp, _, begin_phy_offset, end_phy_offset, slot_count, _ = header
    end_timestamp = header.end_timestamp
    entries = []
    changed: dict[int, int] = {}
    for key_hash, offset, timestamp in zip(
        key_hashes, commitlog_offsets, store_timestamps, strict=True
    ):
        slot = key_hash % hash_slot_num
        previous = changed.get(slot)
        if previous is None:
            previous = read_slot(slot)
            if not 0 < previous <= number:
                previous = 0
        diff = time_diff(timestamp, begin_timestamp) if timestamp > begin_timestamp else 0
        entries.append(INDEX_ENTRY.pack(key_hash, offset, diff, previous))
        changed[slot] = number
        if number == 1:
            begin_timestamp, begin_phy_offset = timestamp, offset
        if previous == 0:
            slot_count += 1
        number += 1
        end_timestamp, end_phy_offset = timestamp, offset
    return IndexPuts(
        first,
        b"".join(entries),
        list(changed),
        list(changed.values()),
        IndexHeader(
            begin_timestamp, end_timestamp, begin_phy_offset, end_phy_offset, slot_count, number
        ),
    )
