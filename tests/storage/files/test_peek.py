"""A few bytes of files, where more files are read than may be mapped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.files.read_files import MAX_MAPS, StoreFiles
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.read.scan_bounds import ScanBounds
from storage.readonly import StoreView
from tests.support.java_lock import java_lock
from tests.support.samples import TINY, Sample, new_store, open_store, prepared

UNIT = CQ_STORE_UNIT_SIZE
QUEUES = range(6)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY) as store:
        for queue_id in QUEUES:
            store.put(prepared([Sample(f"{queue_id}-{at}", "T", queue_id) for at in range(3)]))
    return root


def path_of(root: Path, queue_id: int) -> Path:
    return root / "consumequeue" / "T" / str(queue_id) / f"{0:020d}"


@pytest.mark.parametrize("max_maps", [2, MAX_MAPS])
def test_it_gives_the_bytes_of_the_file(root: Path, max_maps: int) -> None:
    files = StoreFiles(root, TINY, max_maps)
    for queue_id in QUEUES:
        row = files.queue("T", queue_id)
        assert row is not None
        whole = path_of(root, queue_id).read_bytes()
        assert row.peek(0, 1000) == whole
        for position in (0, UNIT, len(whole) - UNIT):
            assert row.peek(position, UNIT) == whole[position : position + UNIT]
        assert not row.peek(len(whole), UNIT), "there is no second file"
        assert not row.peek(-UNIT, UNIT)
        assert bool(row.opened) == (queue_id < max_maps), "no more files are mapped than may be"


def test_a_file_that_comes_again_and_again_is_mapped(root: Path) -> None:
    files = StoreFiles(root, TINY, 2)
    rows = [row for queue_id in QUEUES if (row := files.queue("T", queue_id)) is not None]
    for _ in range(10):
        for row in rows:
            row.peek(0, UNIT)
    assert [bool(row.opened) for row in rows] == [True, True, False, False, False, False]
    for _ in range(10):
        rows[5].peek(0, UNIT)
    assert rows[5].opened


@pytest.mark.parametrize("max_maps", [1, MAX_MAPS])
def test_what_is_no_whole_file(root: Path, max_maps: int) -> None:
    files = StoreFiles(root, TINY, max_maps)
    rows = [files.queue("T", queue_id) for queue_id in QUEUES]
    cut, missing, pipe, folder = (path_of(root, queue_id) for queue_id in (1, 2, 3, 4))
    os.truncate(cut, UNIT + 7)
    for path in (missing, pipe, folder):
        path.unlink()
    os.mkfifo(pipe)
    folder.mkdir()
    assert rows[0] is not None
    assert len(rows[0].peek(0, UNIT)) == UNIT, "it is mapped"
    found = [len(row.peek(0, 2 * UNIT)) for row in rows[1:5] if row is not None]
    assert found == [UNIT + 7, 0, 0, 0]


COUNT = MAX_MAPS + 30


def many_queues(tmp_path: Path) -> Path:
    """A store with more queues than maps, two messages in each."""
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY) as store:
        for round_number in range(2):
            some = [Sample(f"{round_number}-{n}", "T", n) for n in range(COUNT)]
            for start in range(0, COUNT, 10):
                store.put(prepared(some[start : start + 10]))
    return root


@pytest.mark.slow
def test_a_store_of_more_queues_than_maps_is_read_from_its_files(tmp_path: Path) -> None:
    """As a dead Java broker leaves it: without a shared state."""
    root, count = many_queues(tmp_path), COUNT
    queues = [("T", queue_id) for queue_id in range(count)]
    with StoreView.open(root) as by_page:
        expected = [by_page.units(*queue, 0, 5) for queue in queues]
    (root / "rmqctl" / "shared").unlink()
    with StoreView.open(root) as view:
        assert isinstance(view.bounds, ScanBounds)
        assert view.queues() == queues
        assert view.each_queue_bounds(queues) == [(0, 2)] * count
        assert [view.units(*queue, 0, 5) for queue in queues] == expected
        assert all(len(units) == 2 for units in expected)


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
def test_the_end_of_many_queues_is_found_by_one_look_at_each(tmp_path: Path, clean: bool) -> None:
    """Each further look would open thousands of files of a large store again."""
    root = many_queues(tmp_path)
    (root / "rmqctl" / "shared").unlink()
    if not clean:
        (root / "abort").touch()
        (root / "checkpoint").unlink()  # so all units are compared with the log
    files = StoreFiles(root, TINY)
    bounds = ScanBounds(files, TINY)
    bounds.log_end()
    rows = [files.queue("T", queue_id) for queue_id in range(COUNT)]
    assert [row for row in rows if row is None or row.opened] == [], "none is mapped"
    assert files.budget.peeks == 0
    assert [bounds.next_offset("T", queue_id) for queue_id in range(COUNT)] == [2] * COUNT


@pytest.mark.slow
def test_beside_a_java_broker_queues_are_read_once_more(tmp_path: Path) -> None:
    """It may have written while they were read one after the other."""
    root = many_queues(tmp_path)
    (root / "rmqctl" / "shared").unlink()
    files = StoreFiles(root, TINY, 2)
    with java_lock(root):
        scan = ScanBounds(files, TINY)
        for _ in range(2):
            assert {scan.next_offset("T", queue_id) for queue_id in range(COUNT)} == {2}
            assert files.budget.peeks > COUNT / 2


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
def test_queues_at_rest_are_read_once(tmp_path: Path, clean: bool) -> None:
    root = many_queues(tmp_path)
    (root / "rmqctl" / "shared").unlink()
    if not clean:
        (root / "abort").touch()
    files = StoreFiles(root, TINY, 2)
    scan = ScanBounds(files, TINY)
    reads = []
    for _ in range(3):
        assert {scan.next_offset("T", queue_id) for queue_id in range(COUNT)} == {2}
        reads.append(files.budget.peeks)
    assert reads == [0, 0, 0], "no program writes: what was read first is all"
    queues = [("T", queue_id) for queue_id in range(COUNT)]
    with StoreView.open(root) as view:
        bounds = view.each_queue_bounds(queues)
        (root / "consumequeue").rename(root / "elsewhere")
        assert view.each_queue_bounds(queues) == bounds == [(0, 2)] * COUNT
        found = [view.units(*queue, 0, 2) for queue in queues]
        (root / "elsewhere").rename(root / "consumequeue")
    with StoreView.open(root) as view:
        assert [view.units(*queue, 0, 2) for queue in queues] == found


def test_the_head_of_a_file_is_given_where_only_zeros_follow(root: Path) -> None:
    size = 20 * 50_000
    files = StoreFiles(root, TINY.with_(mapped_file_size_consume_queue=size))
    rows = [row for queue_id in QUEUES if (row := files.queue("T", queue_id)) is not None]
    for queue_id, length in enumerate((100, 8_000, size, size, size)):
        os.truncate(path_of(root, queue_id), length)
    with path_of(root, 3).open("r+b") as file:
        file.seek(size // 2)
        file.write(b"x")
    data = path_of(root, 0).read_bytes()[: 3 * UNIT]
    path_of(root, 5).unlink()
    assert rows[0].head(0, 8_000) == (data.ljust(100, b"\0"), 100)
    assert rows[1].head(0, 8_000) == (path_of(root, 1).read_bytes(), 8_000)
    found = rows[2].head(0, 8_000)
    if found is not None:  # a file system without holes says nothing
        assert found == (path_of(root, 2).read_bytes()[:8_000], size)
    assert rows[3].head(0, 8_000) is None
    assert rows[5].head(0, 8_000) is None
    rows[4].look(0)
    assert rows[4].head(0, 8_000) is None, "its map is there"
