"""The time of Java's lock file is never an old one, however rarely it is looked up by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from storage.coordination.java_start import JavaStart, lock_mtime
from tests.support.linux_forms import needs_linux_forms

OPEN_FILES = Path("/proc/self/fd")


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Lock:
    """A lock file in a folder, and what is known of its time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "store" / "lock"
        self.path.parent.mkdir()
        self.clock = Clock()
        self.time = JavaStart(str(self.path), self.clock)

    def write(self, seconds: int) -> int:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(b"lock")
        os.utime(self.path, (seconds, seconds))
        return seconds * 1_000_000_000


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Lock]:
    made = Lock(tmp_path)
    yield made
    made.time.close()


def test_without_a_file_it_is_nought(lock: Lock) -> None:
    assert lock.time.ns() == 0
    assert lock.time.ns() == lock_mtime(str(lock.path))


def test_a_file_that_comes_later_is_seen_at_once(lock: Lock) -> None:
    assert lock.time.ns() == 0
    assert lock.write(5) == lock.time.ns() == lock_mtime(str(lock.path))


def test_each_write_is_seen_at_once(lock: Lock) -> None:
    for seconds in range(1, 20):
        assert lock.write(seconds) == lock.time.ns() == lock.time.ns()


def test_a_deleted_file_is_noticed_at_once(lock: Lock) -> None:
    lock.write(5)
    lock.time.ns()
    lock.path.unlink()
    assert lock.time.ns() == 0


def test_a_file_that_takes_its_place_is_noticed_at_once(lock: Lock) -> None:
    lock.write(5)
    lock.time.ns()
    other = lock.path.with_name("other")
    other.touch()
    os.utime(other, (7, 7))
    other.replace(lock.path)
    assert lock.time.ns() == 7_000_000_000


def test_a_file_that_is_renamed_is_noticed_at_once(lock: Lock) -> None:
    lock.write(5)
    lock.time.ns()
    lock.path.rename(lock.path.with_name("other"))
    assert lock.time.ns() == 0


def test_a_folder_that_is_exchanged_is_noticed_after_a_tenth_of_a_second(lock: Lock) -> None:
    lock.write(5)
    lock.time.ns()
    lock.path.parent.rename(lock.path.parent.with_name("other"))
    lock.write(9)
    lock.clock.now += 0.2
    assert lock.time.ns() == 9_000_000_000


@needs_linux_forms
def test_it_lets_go_of_its_file(lock: Lock) -> None:
    lock.write(5)
    lock.time.ns()
    assert is_open(lock.path)
    lock.time.close()
    assert not is_open(lock.path)
    assert lock.time.ns() == 5_000_000_000


def is_open(path: Path) -> bool:
    for number in os.listdir(OPEN_FILES):  # noqa: PTH208 - what is listed may be gone
        with suppress(FileNotFoundError):
            if (OPEN_FILES / number).readlink() == path:
                return True
    return False
