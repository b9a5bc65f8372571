"""Index files: one put after the other, and many at once."""

from array import array
from collections.abc import Callable
from struct import Struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from storage.format.index_file import (
    HASH_SLOT,
    INDEX_ENTRY_SIZE,
    IndexEntry,
    IndexHeader,
    IndexPuts,
    entry_position,
    following_header,
    free_entries,
    index_file_size,
    normalised_slot,
    put_keys,
    slot_position,
    time_diff,
)
from storage.format.index_many import put_many_keys, write_slots
from tests.support.compiled import compiled, needs_compiled

times = st.integers(0, 1 << 45) | st.integers(0, 20_000)
headers = st.builds(
    IndexHeader,
    begin_timestamp=st.sampled_from([0, -1, 5_000, 1 << 40]),
    end_timestamp=times,
    begin_phy_offset=st.integers(0, 1 << 40),
    end_phy_offset=st.integers(0, 1 << 40),
    hash_slot_count=st.integers(0, 100),
    index_count=st.sampled_from([-1, 0, 1, 2, 40]),
)
keys = st.lists(
    st.tuples(st.integers(0, 9) | st.integers(0, (1 << 31) - 1), st.integers(0, 1 << 40), times),
    min_size=1,
    max_size=12,
)
slot_tables = st.lists(
    st.sampled_from([0, 0, -1, 1, 39, 40, 41, 44, 1 << 30]), min_size=1, max_size=5
)


def reader(table: bytes) -> Callable[[int], int]:
    def read(slot: int) -> int:
        value: int = HASH_SLOT.unpack_from(table, HASH_SLOT.size * slot)[0]
        return value

    return read


def put_as_java_does(
    header: IndexHeader, slots: list[int], given: list[tuple[int, int, int]]
) -> tuple[IndexHeader, list[int], bytes]:
    """IndexFile.putKey, key by key, over plain lists."""
    count = max(1, header.index_count)
    begin, end, begin_phy, end_phy, used, _ = header
    entries = b""
    for key_hash, offset, timestamp in given:
        slot = key_hash % len(slots)
        previous = slots[slot]
        if previous <= 0 or previous > count:
            previous = 0
        diff = timestamp - begin
        diff = int(diff / 1000) if diff >= 0 else -1
        if begin <= 0:
            diff = 0
        diff = min(max(diff, 0), (1 << 31) - 1)
        entries += Struct(">iqii").pack(key_hash, offset, diff, previous)
        slots[slot] = count
        if count <= 1:
            begin_phy, begin = offset, timestamp
        if previous == 0:
            used += 1
        count += 1
        end_phy, end = offset, timestamp
    return IndexHeader(begin, end, begin_phy, end_phy, used, count), slots, entries


def columns(given: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    hashes, offsets, timestamps = zip(*given, strict=True)
    return list(hashes), list(offsets), list(timestamps)


@given(headers, slot_tables, keys)
@pytest.mark.slow
def test_both_ways_give_what_java_gives(
    header: IndexHeader, slots: list[int], given: list[tuple[int, int, int]]
) -> None:
    table = b"".join(map(HASH_SLOT.pack, slots))
    expected_header, expected_slots, expected_entries = put_as_java_does(header, list(slots), given)
    one_by_one = put_keys(header, len(slots), reader(table), *columns(given))
    at_once = put_many_keys(header, table, *columns(given))
    for puts in (one_by_one, at_once):
        assert puts.header == expected_header
        assert puts.entries == expected_entries
        assert puts.first_entry == max(1, header.index_count)
        assert len(set(puts.slots)) == len(puts.slots)
        after = bytearray(table)
        write_slots(after, puts)
        assert after == b"".join(map(HASH_SLOT.pack, expected_slots))


@needs_compiled
@given(headers, slot_tables, keys, st.booleans())
@pytest.mark.slow
def test_the_compiled_form_writes_what_java_writes(
    header: IndexHeader, slots: list[int], given: list[tuple[int, int, int]], at_once: bool
) -> None:
    if at_once:
        given = [(key_hash, offset, given[0][2]) for key_hash, offset, _ in given]
    expected_header, expected_slots, expected_entries = put_as_java_does(header, list(slots), given)
    file = bytearray(header.pack() + b"".join(map(HASH_SLOT.pack, slots)))
    hashes, offsets, timestamps = (array("q", column) for column in columns(given))
    times_of = given[0][2] if at_once else timestamps
    entries, rest = compiled.index_entries(file, len(slots), hashes, offsets, times_of)
    assert file == header.pack() + b"".join(map(HASH_SLOT.pack, slots)), "nothing is stored yet"
    compiled.index_finish(file, rest)
    assert entries == expected_entries
    assert file == expected_header.pack() + b"".join(map(HASH_SLOT.pack, expected_slots))


@needs_compiled
def test_what_the_compiled_form_does_not_take_is_left_to_the_pure_one() -> None:
    column = array("q", [7])
    file = bytearray(IndexHeader().pack() + bytes(40))
    assert compiled.index_entries(file, 10, array("q", [-1]), column, column) is None
    assert compiled.index_entries(file, 10, array("q", [1 << 31]), column, column) is None
    full = IndexHeader(hash_slot_count=(1 << 31) - 1)
    assert compiled.index_entries(full.pack() + bytes(40), 10, column, column, 5) is None
    for wrong in (array("q", [1, 2]), bytearray(8)[:3]):
        with pytest.raises(ValueError, match="length"):
            compiled.index_entries(file, 10, column, wrong, 5)
    for wrong_slots in (0, -1, 11):
        with pytest.raises(ValueError, match="no index file"):
            compiled.index_entries(file, wrong_slots, column, column, 5)
    _, rest = compiled.index_entries(file, 10, column, column, 5)
    with pytest.raises(ValueError, match="none of the file's"):
        compiled.index_finish(bytearray(50), rest)


@given(headers, st.lists(st.integers(0, 1 << 30), min_size=1, max_size=5), times)
def test_one_offset_and_one_time_stand_for_all_keys(
    header: IndexHeader, hashes: list[int], timestamp: int
) -> None:
    spread = put_many_keys(header, bytes(40), hashes, [77] * len(hashes), [timestamp] * len(hashes))
    short = put_many_keys(header, bytes(40), hashes, 77, timestamp)
    for of_short, of_spread in zip(short, spread, strict=True):
        assert np.array_equal(of_short, of_spread)


def chain(puts: IndexPuts, slot_count: int, key_hash: int) -> list[int]:
    """Walk a slot's entries from the newest, as a query does."""
    found = []
    number = dict(zip(puts.slots, puts.slot_values, strict=True)).get(key_hash % slot_count, 0)
    while number > 0:
        entry = IndexEntry.unpack_from(puts.entries, INDEX_ENTRY_SIZE * (number - puts.first_entry))
        if entry.key_hash == key_hash:
            found.append(entry.commitlog_offset)
        number = entry.previous
    return found


def test_a_slot_leads_to_all_its_keys_newest_first() -> None:
    given = [(3, 100, 1), (13, 200, 1), (4, 300, 1), (3, 400, 1)]
    puts = put_keys(IndexHeader(), 10, lambda _: 0, *columns(given))
    assert chain(puts, 10, 3) == [400, 100]
    assert chain(puts, 10, 13) == [200]
    assert chain(puts, 10, 4) == [300]
    assert puts.header.hash_slot_count == 2


def test_sizes_and_places_of_a_default_file() -> None:
    assert index_file_size(5_000_000, 20_000_000) == 420_000_040
    assert slot_position(0) == 40
    assert entry_position(5_000_000, 0) == slot_position(5_000_000) == 20_000_040
    assert entry_position(100, 3) == 40 + 400 + 60


def test_a_file_holds_one_key_less_than_it_has_entries() -> None:
    assert free_entries(IndexHeader(), 20) == 19
    assert free_entries(IndexHeader(index_count=19), 20) == 1
    assert free_entries(IndexHeader(index_count=20), 20) == 0
    assert free_entries(IndexHeader(index_count=21), 20) == 0


def test_the_file_after_a_full_one_begins_where_that_ends() -> None:
    assert following_header(IndexHeader(1, 2, 3, 4, 5, 6)) == (2, 2, 4, 4, 0, 0)


@pytest.mark.parametrize(("value", "meaning"), [(0, 0), (-3, 0), (5, 5), (6, 6), (7, 0)])
def test_a_slot_that_can_not_be_right_is_empty(value: int, meaning: int) -> None:
    assert normalised_slot(value, 6) == meaning


@pytest.mark.parametrize(
    ("stored", "begin", "seconds"),
    [(1999, 1000, 0), (2000, 1000, 1), (999, 1000, 0), (5000, 0, 0), (1 << 50, 1, (1 << 31) - 1)],
)
def test_time_is_kept_in_whole_seconds(stored: int, begin: int, seconds: int) -> None:
    assert time_diff(stored, begin) == seconds


@given(headers)
def test_headers_come_back(header: IndexHeader) -> None:
    assert IndexHeader.unpack_from(b"?" + header.pack(), 1) == header


def test_a_header_and_an_entry_come_back_from_the_beginning_of_a_buffer() -> None:
    assert IndexHeader() == (0, 0, 0, 0, 0, 0)
    assert IndexHeader().next_entry == 1
    header = IndexHeader(1 << 40, 2 << 40, 3, 4, 5, 6)
    assert IndexHeader.unpack_from(header.pack() + b"rest") == header
    assert IndexHeader.unpack_from(b"\0" + header.pack(), 1) == header
    puts = put_keys(header, 7, lambda _: 0, [9], [1 << 50], [(1 << 40) + 2500])
    entry = IndexEntry.unpack_from(puts.entries)
    assert entry == IndexEntry(9, 1 << 50, 2, 0)
    assert entry.pack() == puts.entries
