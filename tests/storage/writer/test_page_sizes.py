"""Large pages are made where the machine has them at hand, and small ones where it has not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.files import mapped_file
from storage.files.fs import FileSystem
from storage.files.mapped_file import MappedFile
from storage.files.page_sizes import LARGE, SMALL, PageSizes


class Writes(FileSystem):
    """Notes what is written, and says that a page takes so many seconds."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.seconds = {SMALL: 1e-5, LARGE: 2e-4}
        self.now = 0.0

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        self.sizes.append(len(data))
        self.now += self.seconds.get(len(data), 0)
        super().write(fd, data, offset)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Writes:
    made = Writes()
    monkeypatch.setattr(mapped_file, "thread_time", lambda: made.now)
    monkeypatch.setattr(mapped_file, "PAGE_SIZES", PageSizes(lambda: made.now))
    return made


@pytest.fixture
def file(tmp_path: Path, writes: Writes) -> Iterator[MappedFile]:
    path = tmp_path / "00000000000000000000"
    path.touch()
    os.truncate(path, 6 * LARGE)
    made = MappedFile(writes, path, 6 * LARGE, 0, writable=True)
    yield made
    made.close()


def test_pages_are_large_and_lie_where_large_ones_may(file: MappedFile, writes: Writes) -> None:
    file.get_ready(1000, 3 * LARGE)
    assert writes.sizes == [SMALL - 1000, SMALL, LARGE - 2 * SMALL, LARGE, LARGE]
    file.get_ready(1000, 3 * LARGE + 10)
    assert writes.sizes[5:] == [10], "what is ready is not written again"


def test_one_that_costs_more_than_small_ones_makes_all_small_for_a_while(
    file: MappedFile, writes: Writes
) -> None:
    file.get_ready(0, LARGE)
    assert writes.sizes == [SMALL, LARGE - SMALL]
    writes.seconds[LARGE] = 7e-4
    del writes.sizes[:]
    file.get_ready(0, 2 * LARGE + 2 * SMALL + 100)
    assert writes.sizes == [LARGE, SMALL, SMALL, 100]
    writes.now += 10
    del writes.sizes[:]
    file.get_ready(0, 4 * LARGE)
    assert writes.sizes == [LARGE - 2 * SMALL - 100, LARGE], "it is tried again"


def test_large_ones_may_take_long_where_small_ones_do(file: MappedFile, writes: Writes) -> None:
    writes.seconds = {SMALL: 1e-3, LARGE: 2e-2}
    file.get_ready(0, 4 * LARGE)
    assert writes.sizes == [SMALL, LARGE - SMALL, LARGE, LARGE, LARGE]


def test_what_is_stored_between_is_not_written_over(file: MappedFile) -> None:
    file.map[: 3 * SMALL] = b"x" * (3 * SMALL)
    file.get_ready(3 * SMALL, LARGE)
    assert file.read(0, LARGE) == b"x" * (3 * SMALL) + bytes(LARGE - 3 * SMALL)
