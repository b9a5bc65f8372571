"""Recognising a folder as a store, and the lengths of a foreign store's files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from storage.config import FIXED_FIELDS, StoreConfig
from storage.detect import detect_config, not_covered, version_hint
from storage.errors import (
    CorruptFileError,
    DamagedFileWarning,
    StoreNotFoundError,
    StoreVersionError,
    UnsupportedStoreError,
)
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Code, fsck
from tests.support import golden
from tests.support.hand_made import TINY, HandMade

KEYS = {
    "mapped_file_size_commit_log": "mappedFileSizeCommitLog",
    "mapped_file_size_consume_queue": "mappedFileSizeConsumeQueue",
    "max_hash_slot_num": "maxHashSlotNum",
    "max_index_num": "maxIndexNum",
}


@pytest.mark.parametrize("name", golden.names())
def test_lengths_of_real_stores_are_those_of_the_brokers_settings(name: str) -> None:
    found = detect_config(golden.store(name))
    settings = golden.manifest(name)["settings"]
    defaults = StoreConfig()
    for field, key in KEYS.items():
        if field == "mapped_file_size_consume_queue" and "cq-all-missing" in name:
            continue  # no file shows it
        if field.startswith("max_") and "no-index" in name:
            continue
        assert getattr(found, field) == settings.get(key, getattr(defaults, field)), field


@pytest.mark.parametrize(
    ("slots", "entries", "keys"), [(1, 2, 1), (7, 100, 3), (10, 40, 39), (64, 31, 25), (5, 20, 90)]
)
def test_slots_and_entries_of_an_index_are_found_by_its_chains(
    tmp_path: Path, slots: int, entries: int, keys: int
) -> None:
    made = HandMade(TINY.with_(max_hash_slot_num=slots, max_index_num=entries))
    made.put("T", body=b"without a key")
    for number in range(keys):
        made.put("T", keys=[f"key{number}"])
    found = detect_config(made.write(tmp_path))
    assert (found.max_hash_slot_num, found.max_index_num) == (slots, entries)
    with StoreView.open(tmp_path) as view:
        for number in range(keys):
            assert len(view.find_unique("T", f"key{number}")) == 1


def test_settings_that_are_not_lengths_are_kept(tmp_path: Path) -> None:
    made = HandMade()
    made.put()
    found = detect_config(made.write(tmp_path), StoreConfig(max_transfer_count_in_memory=5))
    assert found.max_transfer_count_in_memory == 5
    assert found.mapped_file_size_commit_log == TINY.mapped_file_size_commit_log


def test_a_store_of_our_own_says_its_lengths_itself(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "rmqctl").mkdir()
    record = {"version": 1} | {name: getattr(TINY, name) for name in FIXED_FIELDS}
    (tmp_path / "rmqctl" / "store.json").write_text(json.dumps(record))
    assert detect_config(tmp_path) == StoreConfig(
        **{k: v for k, v in record.items() if k != "version"}
    )
    assert version_hint(tmp_path) == "rmqctl"


def test_a_record_of_lengths_that_is_newer_or_damaged_is_refused_by_writers(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "rmqctl").mkdir()
    path = tmp_path / "rmqctl" / "store.json"
    path.write_text('{"version": 99}')
    with pytest.raises(StoreVersionError, match="version 99"):
        StoreView.open(tmp_path)
    path.write_text("{oops")
    with pytest.warns(DamagedFileWarning, match="sizes of files are taken from the files"):
        StoreView.open(tmp_path)
    with pytest.raises(CorruptFileError):
        MessageStore.open(tmp_path)


def test_what_is_no_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no such folder"):
        StoreView.open(tmp_path / "none")
    with pytest.raises(StoreNotFoundError, match="it is empty"):
        StoreView.open(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(StoreNotFoundError, match="no commitlog folder"):
        StoreView.open(tmp_path)
    with pytest.raises(StoreNotFoundError, match="a file, not a folder"):
        StoreView.open(tmp_path / "notes.txt")


def test_queues_in_rocksdb_are_named_not_misread(tmp_path: Path) -> None:
    made = HandMade()
    made.put()
    root = made.write(tmp_path)
    (root / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    with pytest.raises(UnsupportedStoreError, match="RocksDB"):
        StoreView.open(root)


def test_other_parts_that_are_not_read_are_named(tmp_path: Path) -> None:
    made = HandMade()
    made.put()
    root = made.write(tmp_path)
    assert not_covered(root) == []
    for name in ("batchconsumequeue/Orders/0", "consumequeue_ext/T/0", "kvStore/x", "timerlog/x"):
        (root / name).mkdir(parents=True)
    sentences = not_covered(root)
    assert len(sentences) == 4
    assert any("Orders" in sentence for sentence in sentences)


@pytest.mark.parametrize("name", golden.names())
def test_the_version_of_the_writer_is_guessed_right(name: str) -> None:
    assert version_hint(golden.store(name)) == ("5.x" if name.endswith("5.3") else "4.9")


def test_foreign_names_in_the_folders_are_passed_over(tmp_path: Path) -> None:
    made = HandMade()
    for _ in range(12):
        made.put("T")
    root = made.write(tmp_path)
    for name in ("commitlog/notes", "commitlog/00000000000000000007", "consumequeue/T/x"):
        (root / name).mkdir()
    (root / "consumequeue/T/0/123").write_bytes(b"abc")
    (root / "index/readme").write_text("hello")
    (root / "consumequeue/file").write_text("hello")
    for name in ("commitlog/00000000000000002048", "index/20990101000000000"):
        (root / name).mkdir()
    os.mkfifo(root / "commitlog/00000000000000003072")
    os.mkfifo(root / "consumequeue/T/0/00000000000000000300")
    with StoreView.open(root) as view:
        assert view.queues() == [("T", 0)]
        assert view.queue_bounds("T", 0) == (0, 12)
        assert not view.query_message("T", "key").messages
        assert Code.FOREIGN_FILE in {finding.code for finding in fsck(view).findings}
