"""Times of queue files: the last one's at each question, the others' now and then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.files.read_files import FileRow, MapBudget
from storage.format.names import file_name
from storage.reading.file_times import FileTimes

SIZE = 200
"""Ten units."""


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
    return FileTimes(FileRow(MapBudget(4), str(folder), SIZE), clock)


def test_the_last_file_is_looked_at_each_time(tmp_path: Path, clock: Clock) -> None:
    add(tmp_path, 0, 100)
    last = add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    assert times() == [(0, 100), (10, 200)]
    touch(last, 300)
    assert times() == [(0, 100), (10, 300)]


def test_the_others_are_looked_at_again_after_a_second(tmp_path: Path, clock: Clock) -> None:
    full = add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    times()
    touch(full, 150)
    assert times() == [(0, 100), (10, 200)]
    clock.seconds += 1.0
    assert times() == [(0, 150), (10, 200)]


def test_files_that_come_and_go_are_seen_at_once(tmp_path: Path, clock: Clock) -> None:
    first = add(tmp_path, 0, 100)
    add(tmp_path, 1, 200)
    times = times_of(tmp_path, clock)
    times()
    add(tmp_path, 2, 300)
    assert times() == [(0, 100), (10, 200), (20, 300)]
    add(tmp_path, 3, 400)  # in the same tick of the system's clock, perhaps
    assert times() == [(0, 100), (10, 200), (20, 300), (30, 400)]
    settle(tmp_path)
    times()
    first.unlink()
    assert times() == [(10, 200), (20, 300), (30, 400)]


def test_a_queue_without_files_has_no_times_until_there_are_some(
    tmp_path: Path, clock: Clock
) -> None:
    times = FileTimes(FileRow(MapBudget(4), str(tmp_path / "queue"), SIZE), clock)
    assert times() == []
    (tmp_path / "queue").mkdir()
    add(tmp_path / "queue", 0, 100)
    assert times() == [(0, 100)]
