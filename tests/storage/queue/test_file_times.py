"""Times of queue files, which say where a time is searched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.names import file_name
from storage.queue.file_times import FileTimes

SIZE = 200
"""Ten units."""
END = 1 << 40


class Clock:
    def __init__(self) -> None:
        self.seconds = 1.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def add(folder: Path, number: int, ms: int) -> Path:
    path = folder / file_name(number * SIZE)
    path.write_bytes(bytes(SIZE))
    touch(path, ms)
    return path


def touch(path: Path, ms: int) -> None:
    os.utime(path, ns=(0, ms * 1_000_000))


def settle(folder: Path) -> None:
    """As if it had been changed long ago."""
    os.utime(folder, ns=(0, 0))


def times_of(folder: Path, clock: Clock) -> FileTimes:
    settle(folder)
    return FileTimes(ReadOnlyFiles(MapBudget(4), str(folder), SIZE), clock)


def test_a_time_is_looked_for_in_the_first_file_that_was_modified_then_or_later(
    tmp_path: Path, clock: Clock
) -> None:
    for number, ms in enumerate((100, 300, 200, 400)):
        add(tmp_path, number, ms)
    times = times_of(tmp_path, clock)
    assert times.segment(100, END) == (0, 10)
    assert times.segment(101, END) == (10, 20)
    assert times.segment(250, END) == (10, 20)
    assert times.segment(301, END) == (30, END)
    assert times.segment(9_999, END) == (30, END)


def test_files_that_begin_behind_the_end_do_not_count(tmp_path: Path, clock: Clock) -> None:
    for number, ms in enumerate((100, 200, 300)):
        add(tmp_path, number, ms)
    times = times_of(tmp_path, clock)
    assert times.segment(250, 20) == (10, 20)
    assert times.segment(250, 15) == (10, 15)
    assert times.segment(50, 5) == (0, 5)
    assert times.segment(50, 0) is None


@given(
    modified=st.lists(st.integers(0, 9), max_size=8),
    timestamp=st.integers(0, 10),
    end=st.integers(0, 90),
)
@pytest.mark.slow
def test_it_is_the_file_that_going_through_all_of_them_finds(
    modified: list[int], timestamp: int, end: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As ConsumeQueue.getOffsetInQueueByTime does."""
    folder = tmp_path_factory.mktemp("queue")
    for number, ms in enumerate(modified):
        add(folder, number, ms)
    begun = [(10 * number, ms) for number, ms in enumerate(modified) if 10 * number < end]
    found = next((first for first, ms in begun if ms >= timestamp), begun[-1][0] if begun else None)
    end_offset = None if found is None or found == begun[-1][0] else found + 10
    segment = FileTimes(ReadOnlyFiles(MapBudget(4), str(folder), SIZE)).segment(timestamp, end)
    assert segment == (None if found is None else (found, end_offset or end))


def test_full_files_are_looked_at_again_after_a_second(tmp_path: Path, clock: Clock) -> None:
    full = add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    times.segment(0, END)
    touch(full, 150)
    assert times.segment(120, END) == (10, END)
    assert times.now() == [(0, 150), (10, 200)]
    clock.seconds += 1.0
    assert times.segment(120, END) == (0, 10)


def test_files_that_come_and_go_are_seen_at_once(tmp_path: Path, clock: Clock) -> None:
    first = add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    assert times.segment(300, END) == (10, END)
    add(tmp_path, 2, 300)
    assert times.segment(300, END) == (20, END)
    add(tmp_path, 3, 400)  # in the same tick of the system's clock, perhaps
    assert times.segment(400, END) == (30, END)
    settle(tmp_path)
    assert times.segment(50, END) == (0, 10)
    first.unlink()
    assert times.segment(50, END) == (10, 20)


def test_who_is_told_of_deletions_does_not_ask_the_folder(tmp_path: Path, clock: Clock) -> None:
    first = add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    settle(tmp_path)
    row = ReadOnlyFiles(MapBudget(4), str(tmp_path), SIZE)
    times = FileTimes(row, clock)
    assert times.segment(50, 20, deletions_reported=True) == (0, 10)
    first.unlink()
    assert times.segment(50, 20, deletions_reported=True) == (0, 10)  # no process has reported
    row.relist()  # as StoreView does with a new generation
    assert times.segment(50, 20, deletions_reported=True) == (10, 20)


def test_a_new_file_is_looked_for_when_the_known_ones_end(tmp_path: Path, clock: Clock) -> None:
    add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    assert times.segment(250, 20, deletions_reported=True) == (10, 20)
    add(tmp_path, 2, 300)
    assert times.segment(250, 20, deletions_reported=True) == (10, 20)
    assert times.segment(250, 21, deletions_reported=True) == (20, 21)


def test_a_queue_without_files_has_no_times_until_there_are_some(
    tmp_path: Path, clock: Clock
) -> None:
    times = FileTimes(ReadOnlyFiles(MapBudget(4), str(tmp_path / "queue"), SIZE), clock)
    assert times.segment(50, END) is None
    (tmp_path / "queue").mkdir()
    add(tmp_path / "queue", 0, 100)
    assert times.segment(50, END) == (0, END)
