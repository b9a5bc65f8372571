"""The trusted part of index files after an abnormal exit: vouched files, and whole entries."""

from __future__ import annotations

import struct

import pytest

from storage.format.index_file import IndexHeader
from storage.index.prefix import count_vouched, entries_to_look_at, whole_entries

ENTRIES = 10
LOG_END = 1000
GOOD = [(5, 100, 0, 0), (7, 100, 0, 0), (5, 300, 1, 1), (0, 999, 2, 0)]


def header(end: int, *, full: bool = True) -> IndexHeader:
    count = ENTRIES if full else ENTRIES - 1
    return IndexHeader(0, end, 0, end * 10, 3, count)


@pytest.mark.parametrize(
    ("ends", "timestamp", "count"),
    [
        ([], 100, 0),
        ([10, 20], 100, 2),
        ([10, 20, 30], 20, 2),
        ([10, 20, 20, 30], 20, 2),
        ([10, 20], 19, 1),
        ([10, 20], 9, 0),
        ([10, 20], 0, 0),
        ([10, 10], 10, 1),
    ],
)
def test_full_files_up_to_the_time_of_the_checkpoint_are_vouched_for(
    ends: list[int], timestamp: int, count: int
) -> None:
    assert count_vouched([header(end) for end in ends], ENTRIES, timestamp) == count


def test_a_file_that_is_not_full_is_not_vouched_for_and_none_behind_it() -> None:
    headers = [header(10), header(20, full=False), header(30)]
    assert count_vouched(headers, ENTRIES, 100) == 1
    assert header(10).next_entry == ENTRIES


def test_entries_are_looked_at_behind_the_header_and_within_the_file() -> None:
    assert entries_to_look_at(header(10), ENTRIES) == ENTRIES - 1
    few = IndexHeader(0, 0, 0, 0, 0, 1)
    assert entries_to_look_at(few, ENTRIES) == ENTRIES - 1
    assert entries_to_look_at(few, 1 << 20) == few.next_entry - 1 + 65_536


def packed(entries: list[tuple[int, int, int, int]]) -> bytes:
    return b"".join(struct.pack(">iqii", *entry) for entry in entries)


def count_whole(entries: list[tuple[int, int, int, int]]) -> int:
    return len(whole_entries(packed(entries), LOG_END))


def test_whole_entries_are_all_believed() -> None:
    assert count_whole(GOOD) == len(GOOD)
    assert count_whole([]) == 0
    assert len(whole_entries(packed(GOOD) + b"torn", LOG_END)) == len(GOOD)
    assert count_whole([(3, 0, 0, 0), (0, 5, 0, 0)]) == 2


@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize(
    "wrong",
    [
        (0, 0, 0, 0),
        (-1, 500, 0, 0),
        (5, -1, 0, 0),
        (5, LOG_END, 0, 0),
        (5, 500, 0, -1),
        (5, 500, 0, 9),
    ],
    ids=["zeros", "hash", "below", "behind the log", "previous", "a later one"],
)
def test_what_follows_an_entry_that_is_not_whole_is_not_believed(
    number: int, wrong: tuple[int, int, int, int]
) -> None:
    assert count_whole([*GOOD[:number], wrong, *GOOD[number:]]) == number


def test_an_entry_names_no_entry_but_one_in_front_of_it() -> None:
    assert count_whole([(5, 1, 0, 0), (5, 2, 0, 1), (5, 3, 0, 2)]) == 3
    assert count_whole([(5, 1, 0, 0), (5, 2, 0, 2)]) == 1
    assert count_whole([(5, 1, 0, 1)]) == 0


def test_records_come_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [(5, 10 * number, 0, 0) for number in range(1, 9)]
    for block in (1, 2, 3, 100):
        monkeypatch.setattr("storage.index.prefix._BLOCK", block)
        assert count_whole(entries) == 8
        for back in range(1, 8):
            assert count_whole([*entries[:back], (5, 10 * back - 1, 0, 0), *entries[back:]]) == back
            assert count_whole([*entries[:back], (5, 10 * back, 0, 0), *entries[back:]]) == 9
