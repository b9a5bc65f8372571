"""A few bytes of files, where more files are read than may be mapped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.files.read_files import MAX_MAPS, StoreFiles
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.read.scan_bounds import ScanBounds
from storage.readonly import StoreView
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


def test_a_store_of_more_queues_than_maps_is_read_from_its_files(tmp_path: Path) -> None:
    """As a dead Java broker leaves it: without a shared state."""
    root = new_store(tmp_path / "store", TINY)
    count = MAX_MAPS + 30
    with open_store(root, TINY) as store:
        for round_number in range(2):
            some = [Sample(f"{round_number}-{n}", "T", n) for n in range(count)]
            for start in range(0, count, 10):
                store.put(prepared(some[start : start + 10]))
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
