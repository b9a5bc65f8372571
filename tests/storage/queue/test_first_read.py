"""Readers of many queues keep a few units of each: what is read from memory, and until when."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.coordination.shared_state import SharedState, SharedStateBounds
from storage.errors import IncompleteStoreWarning
from storage.files.fs import FileSystem
from storage.files.read_files import StoreFiles
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.queue.first_read import Unread, read_first
from storage.readonly import StoreView
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared

CONFIG = SMALL.with_(mapped_file_size_consume_queue=50 * CQ_STORE_UNIT_SIZE)
TOPIC = "T"
LENGTHS = {number: 1 + number * 7 for number in range(20)}
"""Messages by queue: in one file, in several, and queues that end with a file."""
LENGTHS[20] = 50


def put(store: Any, queue_id: int, count: int, name: str = "m") -> None:
    some = [Sample(f"{name}-{queue_id}-{at}", TOPIC, queue_id) for at in range(count)]
    store.put(prepared(some))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = new_store(tmp_path / "store", CONFIG)
    with open_store(root, CONFIG) as store:
        for queue_id, count in LENGTHS.items():
            put(store, queue_id, count)
    return root


@pytest.fixture
def shared(root: Path) -> Iterator[SharedState]:
    found = SharedState(FileSystem(), root, writable=False)
    yield found
    found.close()


def queues() -> list[tuple[str, int]]:
    return [(TOPIC, queue_id) for queue_id in LENGTHS]


def facts(view: StoreView) -> dict[int, Any]:
    """Bounds, all units, and the places of the first and the last message, of each queue."""
    return {
        queue_id: (
            (bounds := view.queue_bounds(TOPIC, queue_id)),
            [view.unit(TOPIC, queue_id, offset) for offset in range(*bounds)],
            view.places(TOPIC, queue_id, {bounds.min_offset, bounds.max_offset - 1}),
        )
        for queue_id in LENGTHS
    }


def test_a_reader_of_many_queues_sees_what_a_reader_of_each_does(root: Path) -> None:
    with StoreView.open(root) as each, StoreView.open(root) as many:
        assert isinstance(many.bounds, SharedStateBounds)
        bounds = many.each_queue_bounds(queues())
        assert bounds == [(0, count) for count in LENGTHS.values()]
        assert facts(many) == facts(each)


def test_a_queue_whose_units_are_kept_is_opened_once(root: Path) -> None:
    with StoreView.open(root) as view:
        expected = facts(view)
    with StoreView.open(root) as view:
        bounds = view.each_queue_bounds(queues())
        (root / "consumequeue").rename(root / "elsewhere")
        view.files.budget.drop()
        for queue_id, (low, high) in zip(LENGTHS, bounds, strict=True):
            _, units, places = expected[queue_id]
            if high % 50:  # the one that ends with a file is left to the check of both
                assert view.places(TOPIC, queue_id, {low, high - 1}) == places
                kept = range(max(0, (high - 1) // 50 * 50, high - 32), high)
                assert [view.unit(TOPIC, queue_id, offset) for offset in kept] == units[
                    kept.start :
                ]
        assert view.unit(TOPIC, 20, 0) is None
        assert view.unit(TOPIC, 19, 60) is None, "one in the middle was never read"


def test_units_that_are_asked_for_are_read_along(root: Path) -> None:
    first = [(count - 1) // 50 * 50 for count in LENGTHS.values()]
    with StoreView.open(root) as view:
        expected = facts(view)
    with StoreView.open(root) as view:
        bounds = view.each_queue_bounds(queues(), first)
        (root / "consumequeue").rename(root / "elsewhere")
        view.files.budget.drop()
        for queue_id, start, (_, high) in zip(LENGTHS, first, bounds, strict=True):
            if high % 50:
                found = [view.unit(TOPIC, queue_id, offset) for offset in range(start, high)]
                assert found == expected[queue_id][1][start:]
                assert view.unit_bytes(TOPIC, queue_id, start, high - start)


@pytest.mark.parametrize("first", [-1, 0, 49, 99, 1 << 40])
def test_units_of_other_files_are_not_asked_for(root: Path, first: int) -> None:
    with StoreView.open(root) as each, StoreView.open(root) as many:
        assert many.each_queue_bounds(queues(), [first] * len(LENGTHS)) == [
            each.queue_bounds(*queue) for queue in queues()
        ]
        assert facts(many) == facts(each)


def test_later_messages_are_read_from_the_files(root: Path) -> None:
    with StoreView.open(root) as view:
        view.each_queue_bounds(queues())
        with open_store(root, CONFIG) as store:
            for queue_id in LENGTHS:
                put(store, queue_id, 3, "later")
        assert view.each_queue_bounds(queues()) == [(0, n + 3) for n in LENGTHS.values()]
        with StoreView.open(root) as each:
            assert facts(view) == facts(each)


def test_a_topic_that_was_deleted_and_made_anew_is_another_one(root: Path) -> None:
    with StoreView.open(root) as view, open_store(root, CONFIG) as store:
        view.each_queue_bounds(queues())
        before = facts(view)
        store.delete_queues(TOPIC)
        assert view.each_queue_bounds(queues()) == [(0, 0)] * len(LENGTHS)
        for queue_id, count in LENGTHS.items():
            put(store, queue_id, count, "another")
        view.each_queue_bounds(queues())
        with StoreView.open(root) as each:
            now = facts(each)
        assert facts(view) == now
        assert all(now[queue_id][1] != before[queue_id][1] for queue_id in LENGTHS)


def test_old_messages_that_were_deleted_are_not_shown(tmp_path: Path) -> None:
    config = CONFIG.with_(mapped_file_size_commit_log=8192)
    root = new_store(tmp_path / "small", config)
    with open_store(root, config) as store:
        for _ in range(12):
            for queue_id in LENGTHS:
                put(store, queue_id, 2)
    with StoreView.open(root) as view:
        assert {low for low, _ in view.each_queue_bounds(queues())} == {0}
        with open_store(root, config) as store:
            os.utime(root / "commitlog" / f"{0:020d}", (1, 1))
            assert store.clean(manual=True).log_files
        found = view.each_queue_bounds(queues())
        assert any(low > 0 for low, _ in found)
        with StoreView.open(root) as each:
            assert [each.queue_bounds(*queue) for queue in queues()] == found
            assert facts(view) == facts(each)


def test_a_wrong_end_is_found_by_a_reader_of_many_queues(root: Path) -> None:
    writable = SharedState(FileSystem(), root, writable=True)
    slot = writable.slot(TOPIC, 5)
    assert slot is not None
    writable.set_next_offset(slot, LENGTHS[5] - 4)
    writable.close()
    with StoreView.open(root) as view:
        bounds = view.each_queue_bounds(queues())
        assert bounds == [(0, count) for count in LENGTHS.values()], "the files count"
        assert not isinstance(view.bounds, SharedStateBounds)


@pytest.mark.filterwarnings(f"error::{IncompleteStoreWarning.__module__}.IncompleteStoreWarning")
def test_unusual_files_are_left_to_the_check(root: Path, shared: SharedState) -> None:
    files = StoreFiles(root, CONFIG)

    def read(queue_id: int) -> Any:
        row = files.queue(TOPIC, queue_id)
        assert row is not None
        return read_first(shared, [Unread(TOPIC, queue_id, row)])[0]

    folder = root / "consumequeue" / TOPIC
    name = f"{0:020d}"
    assert read(1) is not None
    assert read(20) is None, "it ends with a file"
    assert read(77) is None, "it has no files"
    os.truncate(folder / "1" / name, 8 * CQ_STORE_UNIT_SIZE)
    assert read(1) is None, "the unit at its end cannot be read"
    (folder / "2" / name).unlink()
    os.mkfifo(folder / "2" / name)
    assert read(2) is None
    (folder / "3" / name).rename(root / "moved")
    (folder / "3" / name).symlink_to(root / "moved")
    assert read(3) is not None, "a link to a file is one"
    (root / "moved").unlink()
    assert read(3) is None
