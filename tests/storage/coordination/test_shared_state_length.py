"""The shared state with another length than writers give it: readers and writers go on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.coordination.shared_state import FIRST_SLOTS, SLOT_SIZE, SLOTS, SharedState
from storage.files.bounded import MAX_OWN_SIZE
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.tools.fsck import Code, fsck
from tests.support.cli import run
from tests.support.samples import TINY, Sample, batch, new_store, open_store, prepared

LEAST = SLOTS + FIRST_SLOTS * SLOT_SIZE


@pytest.mark.parametrize("length", [LEAST + 1, LEAST + 7, LEAST + 8, LEAST + 1_000_001, 100 << 30])
def test_what_is_past_its_slots_does_not_count(tmp_path: Path, length: int) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root, TINY) as store:
        store.put(prepared(batch("m", 5, "T")))
    path = root / "rmqctl" / "shared"
    os.truncate(path, length)
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 5
        assert fsck(view).findings == []
    assert run("store", "dump", "rmqctl/shared", "-S", root).code == 0
    assert path.stat().st_size == length
    with open_store(root, TINY) as store:
        store.put(prepared([Sample("more", "T", 0)]))
        assert store.view.max_offset_in_queue("T", 0) == 6
    assert path.stat().st_blocks * 512 <= MAX_OWN_SIZE
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 6


@pytest.mark.parametrize("missing", [1, 5, SLOT_SIZE, 50 * SLOT_SIZE])
def test_one_that_lacks_places_for_its_names_is_made_anew(tmp_path: Path, missing: int) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root, TINY) as store:
        store.put(prepared(batch("m", 5, "T")))
    shared = SharedState(FileSystem(), root, writable=True)
    for number in range(1, FIRST_SLOTS + 60):
        shared.add_slot("T", number)  # as a writer that dies before it puts a message
    shared.close()
    os.truncate(root / "rmqctl" / "shared", SLOTS + (FIRST_SLOTS + 60) * SLOT_SIZE - missing)
    with StoreView.open(root) as view:
        assert view.queues() == [("T", 0)]
        assert view.max_offset_in_queue("T", 0) == 5
        assert [found.code for found in fsck(view).findings] == [Code.SHARED_STATE_WRONG]
    with open_store(root, TINY) as store:
        assert store.recovery is not None
        assert store.put(prepared([Sample("x", "T", 0)])).queue_offsets[0] == 5
