"""The read-only view of a store that rmqctl processes write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.coordination.shared_state import SharedStateBounds
from storage.read.scan_bounds import ScanBounds
from storage.readonly import StoreView
from storage.results import GetMessageStatus as Status
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared


def sample(number: int) -> Sample:
    return Sample(f"id-{number}", "T", queue_id=number % 2, tags="Tag", keys=(f"k{number}",))


def bodies(view: StoreView) -> set[bytes]:
    found = set()
    for topic, queue_id in view.queues():
        for offset in range(*view.queue_bounds(topic, queue_id)):
            found |= {m.body for m in view.get_message(topic, queue_id, offset, 1).messages}
    return found


@pytest.mark.conformance("A15")
def test_every_put_is_seen_at_once(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store, StoreView.open(root) as view:
        assert isinstance(view.bounds, SharedStateBounds)
        expected = set()
        for number in range(60):
            store.put(prepared([sample(number)]))
            expected.add(sample(number).body())
            assert bodies(view) == expected
            assert view.find_unique("T", f"id-{number}")
    with StoreView.open(root) as view:
        assert bodies(view) == expected


def test_without_a_page_to_trust_the_files_give_the_same(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared([sample(number) for number in range(80)]))
        with StoreView.open(root) as by_page:
            (root / "rmqctl" / "shared").rename(tmp_path / "page")
            with StoreView.open(root) as by_files:
                assert isinstance(by_files.bounds, ScanBounds)
                assert by_files.log_max_offset() == by_page.log_max_offset()
                assert by_files.queues() == by_page.queues()
                assert bodies(by_files) == bodies(by_page)
            (tmp_path / "page").rename(root / "rmqctl" / "shared")


def test_a_view_leaves_the_page_when_a_java_broker_has_run(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared([sample(0)]))
    with StoreView.open(root) as view:
        assert isinstance(view.bounds, SharedStateBounds)
        os.utime(root / "lock", ns=(1, 1))  # as Java does when it starts
        assert view.max_offset_in_queue("T", 0) == 1
        assert isinstance(view.bounds, ScanBounds)
        assert view.get_message("T", 0, 0, 1).status is Status.FOUND


def test_closing_a_view_leaves_the_store_to_its_writer(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        with StoreView.open(root) as view:
            view.close()
        store.put(prepared([sample(0)]))
        assert store.view.max_offset_in_queue("T", 0) == 1
