"""Snapshots of stores that are open, ours and Java's; RocketMQ 4.9.7 opens what was restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck.findings import AS_SENT
from storage.tools.fsck.fsck import fsck
from storage.tools.snapshot.restore import restore_snapshot
from storage.tools.snapshot.snapshot import take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot, verify
from tests.interop import answers
from tests.interop.our_writing import write, write_lines
from tests.interop.samples import SMALL_FILES, our_config, samples
from tests.interop.store_probe import Row, StoreProbe

pytestmark = pytest.mark.interop


def test_java_opens_a_restored_store_and_goes_on(probe49: StoreProbe, tmp_path: Path) -> None:
    root, target = tmp_path / "store", tmp_path / "restored"
    MessageStore.create(root, our_config(SMALL_FILES))
    with MessageStore.open(root) as store:
        write(store, samples(120))
        write_lines(store, 100)
        expected = answers.dump(store.view)
        take_snapshot(root, tmp_path / "snapshot", now_ms=1)
        write(store, samples(60, first=120))
    _restore(tmp_path / "snapshot", target)
    with probe49.opened(target, SMALL_FILES) as java, StoreView.open(target) as view:
        dumped = java.dump()
        answers.same_as(expected, dumped)
        keys = answers.key_questions(expected)
        assert answers.query_by_key(view, keys) == java.query_by_key(keys)
        java.append([sample.java_message() for sample in samples(60, first=1000)])
        assert _count(java.dump()) == _count(expected) + 60


def test_a_snapshot_is_taken_beside_a_broker_that_runs(probe49: StoreProbe, tmp_path: Path) -> None:
    root, target = tmp_path / "store", tmp_path / "restored"
    root.mkdir()
    with probe49.opened(root, SMALL_FILES) as java:
        java.append([sample.java_message() for sample in samples(150)])
        expected = java.dump()
        taken = take_snapshot(root, tmp_path / "snapshot", now_ms=1)
        assert (taken.manifest.whole, taken.notes) == (True, [])
        java.append([sample.java_message() for sample in samples(60, first=150)])
    _restore(tmp_path / "snapshot", target)
    with StoreView.open(target) as view:
        answers.same_as(answers.dump(view), expected)
    with probe49.opened(target, SMALL_FILES) as java:
        assert java.dump()["messages"] == expected["messages"]


def _restore(snapshot: Path, target: Path) -> None:
    source = open_snapshot(snapshot)
    assert verify(source) == []
    assert restore_snapshot(source, target, run="x").settled
    with StoreView.open(target) as view:
        left = [f for f in fsck(view).findings if f.severity != "info" and f.code not in AS_SENT]
        assert left == []


def _count(dump: Row) -> int:
    return len(dump["messages"])
