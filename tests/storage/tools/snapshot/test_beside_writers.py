"""A snapshot while four processes write: what it holds, and what becomes of it."""

from __future__ import annotations

import time

import pytest

from storage.config import StoreConfig
from storage.configs.progress import ProgressFile
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck.fsck import fsck
from storage.tools.snapshot.restore import restore_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot, verify
from tests.support.busy_writer import KEY, TOPIC, busy_writers, told, wait_for_more
from tests.support.cli import run
from tests.support.crash import inspect
from tests.support.oracle import ENTRY, UNIT

SIZES = StoreConfig(
    mapped_file_size_commit_log=64 << 10,
    mapped_file_size_consume_queue=200 * 20,
    max_hash_slot_num=100,
    max_index_num=1_000,
    min_free_bytes=0,
)
WRITERS = 4
SNAPSHOTS = 2
MOST = 12


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("form", ["folder", "copies"])
def test_a_snapshot_holds_what_was_acknowledged_and_ends_at_one_place(tmp_path, form):
    root = tmp_path / "store"
    MessageStore.create(root, SIZES)
    options = ["--copy"] if form == "copies" else []
    times: list[tuple[int, int]] = []
    with busy_writers(root, tmp_path, WRITERS) as journals:
        # On a busy machine a snapshot may be taken while no writer has its turn: then one more.
        while len(times) < SNAPSHOTS or (len(times) < MOST and not _beside(journals, times)):
            wait_for_more(journals, 200)
            started = time.monotonic_ns()
            target = tmp_path / f"{len(times)}"
            result = run("store", "snapshot", "-S", root, "--save", target, *options)
            assert (result.code, result.err) == (0, "")
            times.append((started, time.monotonic_ns()))
        wait_for_more(journals, 50)
    assert _beside(journals, times), "nothing was written while snapshots were taken"
    writers = [told(journal) for journal in journals]
    MessageStore.open(root).close()
    sent = inspect(root, SIZES)
    assert sent.problems == []
    for number, (started, _) in enumerate(times):
        source = open_snapshot(tmp_path / f"{number}")
        assert verify(source) == []
        assert _behind(source.path, source.manifest.log_end) == []
        target = tmp_path / f"restored-{number}"
        assert restore_snapshot(source, target, run="x").settled
        found = inspect(target, SIZES)
        assert found.problems == []
        cut = source.manifest.log_end
        assert found.records == [record for record in sent.records if record.offset < cut]
        there = {record.id for record in found.records}
        acked = {one.id for writer in writers for one in writer.acked if one.at < started}
        assert acked <= there
        assert source.manifest.messages == len(found.records)
        progress = ProgressFile(target).read().offsets()[KEY]
        with StoreView.open(target) as view:
            for queue_id, offset in progress.items():
                known = [one.offset for one in writers[queue_id].committed if one.at < started]
                assert max(known) <= offset <= view.max_offset_in_queue(TOPIC, queue_id)
            assert len(view.key_offsets(TOPIC, "all")) == len(found.records)


def _beside(journals, times):
    """Whether messages were acknowledged while a snapshot was being taken."""
    acked = [one.at for journal in journals for one in told(journal).acked]
    return any(started < at < ended for started, ended in times for at in acked)


def _behind(snapshot, cut):
    """Whatever of the log, the queues and the index lies past the cut."""
    size = SIZES.mapped_file_size_commit_log
    logs = sorted((snapshot / "commitlog").iterdir())
    found = [path.name for path in logs if int(path.name) >= cut]
    found += [path.name for path in logs[-1:] if any(path.read_bytes()[cut - int(path.name) :])]
    assert all(path.stat().st_size == size for path in logs)
    for path in (snapshot / "consumequeue").rglob("*"):
        if path.is_file():
            units = UNIT.iter_unpack(path.read_bytes())
            found += [f"unit at {offset}" for offset, length, _ in units if offset + length > cut]
    for path in (snapshot / "index").iterdir():
        entries = ENTRY.iter_unpack(path.read_bytes()[40 + 4 * SIZES.max_hash_slot_num :])
        found += [f"key at {offset}" for _, offset, _, _ in entries if offset >= cut]
    return found


@pytest.mark.slow
def test_a_group_goes_on_in_a_restored_store_where_it_was(tmp_path):
    root, target = tmp_path / "store", tmp_path / "again"
    MessageStore.create(root, SIZES)
    run("produce", "t", "-Q", 0, "-S", root, stdin=b"a\nb\nc\nd\n")
    assert run("consume", "t", "-g", "g", "--from-where", "first", "-c", 2, "-S", root).lines == [
        "a",
        "b",
    ]
    assert run("store", "snapshot", "--save", tmp_path / "snap", "-S", root).code == 0
    assert run("consume", "t", "-g", "g", "-c", 1, "-S", root).lines == ["c"]
    restored = run("store", "restore", tmp_path / "snap", "-S", target, "--execute", "--yes")
    assert restored.code == 0, restored.err
    assert run("consume", "t", "-g", "g", "-e", "-S", target).lines == ["c", "d"]
    with StoreView.open(target) as view:
        assert fsck(view).findings == []
