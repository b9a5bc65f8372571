"""Large pages are made where the machine has them at hand, and small ones where it has not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.append import fast_append
from storage.files import mapped_file
from storage.files.fs import FileSystem
from storage.files.mapped_file import MappedFile
from storage.files.prefault_size import LARGE, SMALL, PrefaultSize
from tests.support.samples import TINY, Sample, new_store, open_store, sync_flush

ROOMY = TINY.with_(mapped_file_size_commit_log=4 * LARGE)


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
    monkeypatch.setattr(mapped_file, "PAGE_SIZES", PrefaultSize(lambda: made.now))
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


def test_pages_are_small_where_each_store_is_synced(file: MappedFile, writes: Writes) -> None:
    file.get_ready(0, LARGE)
    del writes.sizes[:]
    file.get_ready(LARGE, 2 * LARGE, syncs_each=True)
    assert writes.sizes == [SMALL] * (LARGE // SMALL)


@pytest.mark.parametrize("synced", [False, True])
def test_so_they_are_in_a_store_of_that_kind(
    synced: bool, tmp_path: Path, writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = sync_flush(ROOMY) if synced else ROOMY
    sizes = PrefaultSize(lambda: writes.now)
    sizes.note(SMALL, writes.seconds[SMALL])
    for module in (fast_append, mapped_file):
        monkeypatch.setattr(module, "PAGE_SIZES", sizes)
    with open_store(new_store(tmp_path / "store", config), config, fs=writes) as store:
        store._appender.one.begin_run()
        for number in range(10):
            store.put_message(Sample(f"id-{number}", "T").inner())
    assert (max(writes.sizes) > SMALL) is not synced


def test_what_a_record_across_a_window_leaves_of_a_large_one_is_written_at_once(
    file: MappedFile, writes: Writes
) -> None:
    file.get_ready(0, LARGE)
    del writes.sizes[:]
    file.get_ready(LARGE + 100, 2 * LARGE)
    file.get_ready(2 * LARGE, 3 * LARGE - 100)
    assert writes.sizes == [LARGE - 100, LARGE - 100]


def test_one_that_is_too_dear_makes_all_small_for_a_moment(
    file: MappedFile, writes: Writes
) -> None:
    file.get_ready(0, LARGE)
    assert writes.sizes == [SMALL, LARGE - SMALL]
    writes.seconds[LARGE] = 1.3e-3  # small ones: 0.64 ms
    del writes.sizes[:]
    file.get_ready(0, 2 * LARGE + 2 * SMALL + 100)
    assert writes.sizes == [LARGE, SMALL, SMALL, 100]
    writes.now += 0.06
    del writes.sizes[:]
    file.get_ready(0, 4 * LARGE)
    assert writes.sizes == [LARGE - 2 * SMALL - 100, LARGE], "it is tried again"


def pauses(sizes: PrefaultSize, now: list[float], took_s: float, times: int) -> list[float]:
    """How long pages are small after each large one that took so long."""
    found = []
    for _ in range(times):
        start = now[0]
        sizes.note(LARGE, took_s)
        while not sizes.are_large:
            now[0] += 0.001
        found.append(round(now[0] - start, 2))
    return found


def test_it_is_tried_more_seldom_each_time_and_a_good_one_makes_that_up() -> None:
    now = [0.0]
    sizes = PrefaultSize(lambda: now[0])
    sizes.note(SMALL, 1e-5)
    assert pauses(sizes, now, 5e-3, 11) == [
        *(0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.0, 10.0)
    ]
    assert pauses(sizes, now, 2e-4, 3) == [0.0, 0.0, 0.0]
    assert pauses(sizes, now, 5e-3, 2) == [1.25, 2.5]


def test_one_small_page_that_was_interrupted_is_no_measure() -> None:
    now = [0.0]
    sizes = PrefaultSize(lambda: now[0])
    for took_s in (1e-5, 1e-3):
        sizes.note(SMALL, took_s)
    assert pauses(sizes, now, 5e-3, 1) == [0.02]
    for _ in range(300):  # all of them
        sizes.note(SMALL, 1e-3)
    assert pauses(sizes, now, 5e-3, 1) == [0.0]


def test_they_stay_large_however_many_there_are() -> None:
    sizes = PrefaultSize(lambda: 0.0)
    sizes.note(SMALL, 6e-6)  # 0.38 ms for as many bytes as a large one
    for _ in range(10_000):
        sizes.note(LARGE, 2e-4)
        assert sizes.are_large


def test_what_is_too_little_for_a_large_one_tells_what_small_ones_take(
    file: MappedFile, writes: Writes
) -> None:
    file.get_ready(0, LARGE)
    del writes.sizes[:]
    file.get_ready(LARGE, LARGE + 4 * SMALL)
    assert writes.sizes == [SMALL] * 4
    writes.seconds[SMALL] = 1e-6
    file.get_ready(LARGE + 4 * SMALL, LARGE + 5 * SMALL)
    del writes.sizes[:]
    file.get_ready(2 * LARGE, 4 * LARGE)
    assert writes.sizes == [LARGE, *[SMALL] * (LARGE // SMALL)], "small ones became cheaper"


def test_large_ones_may_take_long_where_small_ones_do(file: MappedFile, writes: Writes) -> None:
    writes.seconds = {SMALL: 1e-3, LARGE: 2e-2}
    file.get_ready(0, 4 * LARGE)
    assert writes.sizes == [SMALL, LARGE - SMALL, LARGE, LARGE, LARGE]


def test_what_is_stored_between_is_not_written_over(file: MappedFile) -> None:
    file.map[: 3 * SMALL] = b"x" * (3 * SMALL)
    file.get_ready(3 * SMALL, LARGE)
    assert file.read(0, LARGE) == b"x" * (3 * SMALL) + bytes(LARGE - 3 * SMALL)
