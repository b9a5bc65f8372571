"""What goes into a snapshot, and what does not, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from storage.configs.consumer_offsets import consumer_offset_file
from storage.configs.journal import Journal
from storage.coordination.exclusive import alone
from storage.errors import (
    StoreError,
    StoreInUseError,
    StoreNotFoundError,
    StoreNotWritableError,
)
from storage.files.fs import FileSystem
from storage.format.properties import encode_properties
from storage.queue.deletion import delete_queues
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck.fsck import fsck
from storage.tools.snapshot.file_copy import FileCopier
from storage.tools.snapshot.index_files import place_index
from storage.tools.snapshot.restore import restore_snapshot
from storage.tools.snapshot.snapshot import take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot, verify
from storage.tools.snapshot.staging import staging_path
from tests.support.crash import inspect
from tests.support.oracle import ENTRY, INDEX_HEADER, Found
from tests.support.samples import TINY, Sample, Ticking, batch, new_store, open_store, prepared
from tests.support.watched_fs import WatchedFileSystem

PLENTY = TINY.with_(max_hash_slot_num=7, max_index_num=500)


@pytest.fixture
def root(tmp_path):
    return new_store(tmp_path / "store")


def fill(store, name, count=40):
    puts = [store.put(prepared([sample])) for sample in batch(name, count, "A", (0, 1))]
    return [int(put.commitlog_offsets[0]) for put in puts]


class DeletingFileSystem(FileSystem):
    """Retention comes by when the first log file is about to be linked."""

    def __init__(self, names):
        self.names = names

    def link(self, source, name):
        while self.names:
            self.names.pop(0).unlink()
        super().link(source, name)


@pytest.mark.slow
def test_files_that_retention_deletes_meanwhile_take_older_ones_along(root, tmp_path):
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 160)
    log = sorted((root / "commitlog").iterdir())
    whole = inspect(root, TINY).records
    fs = DeletingFileSystem(log[:2])
    taken = take_snapshot(root, tmp_path / "snap", now_ms=1, fs=fs)
    assert taken.notes == ["2 old files were deleted while they were copied, and are left out"]
    assert taken.manifest.log_min == int(log[2].name)
    with StoreView.open(tmp_path / "snap") as view:
        assert view.log_min_offset() == int(log[2].name)
    expected = [record for record in whole if record.offset >= int(log[2].name)]
    assert taken.manifest.messages == len(expected)
    restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    with StoreView.open(tmp_path / "new") as view:
        found = sum(b - a for a, b in (view.queue_bounds(*queue) for queue in view.queues()))
    assert found == len(expected)


def test_units_that_a_crashed_store_lacks_are_made_with_its_own_delay_levels(tmp_path):
    config = TINY.with_(message_delay_level="1s 7s")
    root = new_store(tmp_path / "store", config)
    properties = encode_properties({"UNIQ_KEY": "m", "DELAY": "2"})
    message = Sample("m", "SCHEDULE_TOPIC_XXXX", 1).inner()
    message = message._replace(properties=properties, delay_time_level=2, delay_ms=7_000)
    with open_store(root, config, clock=Ticking()) as store:
        fill(store, "m", 1)
        store.put_message(message)
        store.put_message(message)
    with StoreView.open(root) as view:
        units = [view.unit("SCHEDULE_TOPIC_XXXX", 1, number) for number in (0, 1)]
        at = view.store_timestamp("SCHEDULE_TOPIC_XXXX", 1, 1)
    assert units[1] is not None
    assert at is not None
    assert units[1][2] == at + 7_000
    (path,) = (root / "consumequeue/SCHEDULE_TOPIC_XXXX/1").iterdir()
    with path.open("r+b") as file:
        file.seek(20)
        file.write(bytes(20))
    (root / "abort").touch()
    (root / "rmqctl/shared").unlink()
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    done = restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    assert done.settled
    with StoreView.open(tmp_path / "new") as view:
        assert [view.unit("SCHEDULE_TOPIC_XXXX", 1, number) for number in (0, 1)] == units


@pytest.mark.parametrize("number", [500, 501, 0x7FFFFFFF])
def test_a_slot_that_names_no_entry_names_none_in_the_copy(tmp_path, number):
    root = new_store(tmp_path / "store", PLENTY)
    with open_store(root, PLENTY, clock=Ticking()) as store:
        fill(store, "m")
    (path,) = (root / "index").iterdir()
    with path.open("r+b") as file:
        file.seek(40)
        file.write(number.to_bytes(4, "big"))
    taken = take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert taken.manifest.messages == len(inspect(root, PLENTY).records)
    (copy,) = (tmp_path / "snap" / "index").iterdir()
    assert copy.read_bytes()[40:44] in (bytes(4), number.to_bytes(4, "big"))


@pytest.mark.parametrize("what", ["queue", "topic"])
def test_a_topic_that_is_deleted_meanwhile_is_left_out(root, tmp_path, what):
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 30)
        for sample in batch("gone", 30, "Z", (0, 1)):
            store.put(prepared([sample]))
    folder = root / "consumequeue/Z"

    class Deleting(FileSystem):
        def link(self, source, name):
            if "consumequeue/A" in str(source):
                shutil.rmtree(folder if what == "topic" else folder / "1", ignore_errors=True)
            super().link(source, name)

    taken = take_snapshot(root, tmp_path / "snap", now_ms=1, fs=Deleting())
    assert taken.manifest.messages > 0
    restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    with StoreView.open(tmp_path / "new") as view:
        assert view.queue_bounds("A", 0) == view.queue_bounds("A", 1) == (0, 15)


class DiesAtQueueFiles(FileSystem):
    """Removes the last file of a queue, and nothing more."""

    def sync_dir(self, path):
        if path.parent.name == "consumequeue":
            raise OSError(5, "dead")
        super().sync_dir(path)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_deletion_of_a_topic_that_died_has_all_its_messages_in_the_copy(root, tmp_path, when):
    clock = Ticking()
    with open_store(root, clock=clock) as store:
        for sample in batch("kept", 10, "Z", (0, 1)):
            store.put(prepared([sample]))
        for _ in range(3):  # the checkpoint vouches for the log files with these messages
            clock.now += 60_000
            fill(store, "m", 100)
    with StoreView.open(root) as view:
        before = [view.queue_bounds("Z", queue_id) for queue_id in (0, 1)]

    def delete():
        with StoreView.open(root) as view, alone(root), suppress(StoreNotWritableError):
            delete_queues(view, "Z", DiesAtQueueFiles())
        assert not (root / "consumequeue/Z/0").exists()

    class Deleting(FileSystem):
        done = when == "before"

        def link(self, source, name):
            if not self.done and "consumequeue/A" in str(source):
                self.done = True
                delete()
            super().link(source, name)

    if when == "before":
        delete()
    take_snapshot(root, tmp_path / "snap", now_ms=1, fs=Deleting())
    restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    with StoreView.open(tmp_path / "new") as view:
        copied = [view.queue_bounds("Z", queue_id) for queue_id in (0, 1)]
    assert copied == before == [(0, 5), (0, 5)]


def test_files_of_a_rebuild_that_runs_or_was_killed_stay_out(root, tmp_path):
    made = root / "rmqctl/rebuilt"
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 3)
        (made / "A/0").mkdir(parents=True)
        (made / "A/0/00000000000000000000").write_bytes(bytes(600))
        (made / "20260101000000000").touch()
        os.truncate(made / "20260101000000000", 420_000_040)
        taken = take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert not [file.path for file in taken.manifest.files if "rebuilt" in file.path]
    assert not (tmp_path / "snap/rmqctl/rebuilt").exists()


@pytest.mark.slow
def test_what_belongs_to_processes_and_past_events_stays_out(root, tmp_path):
    ours = root / "rmqctl"
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 3)
        Journal(root).append({"command": "c"}, 1)
        for name in ("set-aside/x", "quarantine/y/z", "members/a.json", "locks/g", "new-1"):
            (ours / name).parent.mkdir(exist_ok=True, parents=True)
            (ours / name).write_bytes(b"x")
        (ours / "samples").mkdir()
        (ours / "samples/00000001.jsonl").write_bytes(b'{"a":1}\n{"half')
        (ours / "unknown.json").write_bytes(b"{}")
        (root / "config").mkdir(exist_ok=True)
        (root / "config/topics.json.tmp").write_bytes(b"{")
        (root / "foreign").mkdir()
        (root / "foreign/file").write_bytes(b"kept")
        take_snapshot(root, tmp_path / "snap", now_ms=1)
    snap = tmp_path / "snap"
    assert sorted(
        p.relative_to(snap / "rmqctl").as_posix() for p in (snap / "rmqctl").rglob("*")
    ) == [
        "created",
        "journal",
        "journal/00000001.jsonl",
        "samples",
        "samples/00000001.jsonl",
        "settings.json",
        "store.json",
        "unknown.json",
    ]
    assert (snap / "rmqctl/samples/00000001.jsonl").read_bytes() == b'{"a":1}\n'
    assert (snap / "foreign/file").read_bytes() == b"kept"
    assert not list((snap / "config").iterdir())
    assert (snap / "lock").stat().st_mtime_ns == (root / "lock").stat().st_mtime_ns
    assert (snap / "abort").exists()


@pytest.mark.parametrize("count", [40, 41], ids=["full files", "a part of a file"])
def test_a_closed_store_gives_a_closed_snapshot(root, tmp_path, count):
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", count)
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert not (tmp_path / "snap/abort").exists()
    found = Found(tmp_path / "snap", TINY)
    assert found.problems == []
    assert found.records == inspect(root, TINY).records
    with StoreView.open(tmp_path / "snap") as view:
        assert fsck(view).findings == []


@pytest.mark.slow
def test_a_settings_file_is_taken_whole_while_java_replaces_it(root, tmp_path):
    config = root / "config"
    config.mkdir(exist_ok=True)
    target, temporary = config / "topics.json", config / "topics.json.tmp"
    stop, written = threading.Event(), threading.Event()

    def write_like_java() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows = {f"t{i}": {"topicName": f"t{i}", "perm": number} for i in range(300)}
            text = json.dumps({"topicConfigTable": rows}).encode()
            temporary.write_bytes(text)
            if target.exists():
                target.with_name("topics.json.bak").write_bytes(target.read_bytes())
                target.unlink()
            temporary.rename(target)
            written.set()

    thread = threading.Thread(target=write_like_java)
    thread.start()
    try:
        assert written.wait(30)
        for number in range(12):
            taken = take_snapshot(root, tmp_path / f"{number}", now_ms=1)
            assert taken.notes == []
            with StoreView.open(tmp_path / f"{number}") as view:
                assert len(view.topics()) == 300
    finally:
        stop.set()
        thread.join()


def test_a_torn_settings_file_is_copied_as_it_is_and_named(root, tmp_path):
    config = root / "config"
    config.mkdir(exist_ok=True)
    torn = config / "topics.json"
    torn.write_bytes(b'{"topicConfigTable":{')
    os.utime(torn, (time.time() - 60,) * 2)
    taken = take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert taken.notes == [f"{torn} is not whole JSON; copied as it is"]
    assert (tmp_path / "snap/config/topics.json").read_bytes() == torn.read_bytes()


def test_javas_offsets_are_those_of_the_snapshot(root, tmp_path):
    consumer_offset_file(root).save({"offsetTable": {"A@g": {0: 5}}})
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    with StoreView.open(tmp_path / "snap") as view:
        assert view.consumer_offsets() == {"A@g": {0: 5}}


@pytest.mark.parametrize("kept", [1, 2, 9, 10, 39])
def test_keys_behind_the_cut_are_taken_out_of_the_chains(tmp_path, kept):
    root = new_store(tmp_path / "store", PLENTY)
    with open_store(root, PLENTY, clock=Ticking()) as store:
        places = fill(store, "m")
        store.flush()
        cut = places[kept]
        stage = tmp_path / "stage"
        fs = FileSystem()
        place_index(store.view, stage, cut, fs, FileCopier(fs), closed=False)
    (source,) = (root / "index").iterdir()
    (copy,) = (stage / "index").iterdir()
    _check_index(copy.read_bytes(), source.read_bytes(), cut)


def _check_index(copy: bytes, source: bytes, cut: int) -> None:
    """All entries before the cut are there, reached from their slots, and nothing else."""
    slots = PLENTY.max_hash_slot_num
    start = 40 + 4 * slots
    header = INDEX_HEADER.unpack_from(copy)
    count = header[5]
    entries = [ENTRY.unpack_from(copy, start + 20 * i) for i in range(count)]
    assert copy[start : start + 20 * count] == source[start : start + 20 * count]
    assert not any(copy[start + 20 * count :])
    assert entries[-1][1] < cut <= ENTRY.unpack_from(source, start + 20 * count)[1]
    assert (header[2], header[3]) == (entries[1][1], entries[-1][1])
    reached = set()
    for slot in range(slots):
        number = int.from_bytes(copy[40 + 4 * slot : 44 + 4 * slot], "big")
        while number:
            reached.add(number)
            number = entries[number][3]
    assert reached == set(range(1, count))
    assert header[4] == sum(any(copy[40 + 4 * s : 44 + 4 * s]) for s in range(slots))


@pytest.mark.slow
def test_a_damaged_store_is_copied_with_its_damage(root, tmp_path):
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 160)
    middle = sorted((root / "commitlog").iterdir())[1]
    middle.unlink()
    taken = take_snapshot(root, tmp_path / "snap", now_ms=1)
    restored = restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    names = {path.name for path in (root / "commitlog").iterdir()}
    assert {path.name for path in (tmp_path / "new/commitlog").iterdir()} == names
    assert not restored.settled
    assert taken.manifest.messages > 0


@pytest.mark.slow
def test_a_copy_that_does_not_settle_makes_room_for_the_next_one(root, tmp_path):
    with open_store(root, clock=Ticking()) as store:
        fill(store, "m", 160)
    sorted((root / "commitlog").iterdir())[1].unlink()
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    target = tmp_path / "new"
    beside: set[str] = set()

    def watch(instant):
        if instant.kind == "create":
            beside.update(path.name for path in staging_path(target).iterdir())

    source = open_snapshot(tmp_path / "snap")
    assert not restore_snapshot(source, target, run="x", fs=WatchedFileSystem(watch)).settled
    assert beside == {"store"}


def test_two_can_not_make_the_same_thing(root, tmp_path):
    from storage.tools.snapshot.staging import staging

    with staging(tmp_path / "snap"), pytest.raises(StoreInUseError):
        take_snapshot(root, tmp_path / "snap", now_ms=1)
    take_snapshot(root, tmp_path / "snap", now_ms=1)


def test_a_snapshot_can_not_be_opened_for_writing(root, tmp_path):
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    with pytest.raises(StoreNotWritableError, match="store restore"):
        MessageStore.open(tmp_path / "snap")
    with pytest.raises(StoreNotWritableError, match="store restore"), alone(tmp_path / "snap"):
        pass


def test_what_is_no_store_has_no_snapshot(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(StoreNotFoundError):
        take_snapshot(tmp_path / "x", tmp_path / "snap", now_ms=1)
    with pytest.raises(StoreNotFoundError):
        open_snapshot(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("name", ["loop", "rmqctl/loop", "rmqctl/samples", "config/loop", "x/loop"])
@pytest.mark.parametrize("where", [".", "..", "../elsewhere"])
def test_a_link_to_a_folder_is_named_and_not_followed(root, tmp_path, name, where):
    (tmp_path / "elsewhere").mkdir()
    link = root / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "elsewhere" if "elsewhere" in where else where)
    taken = take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert taken.notes == [f"{link} is a link to a folder, and is left out"]
    assert not (tmp_path / "snap" / name).exists()


@pytest.mark.parametrize("client", ["10.0.0.1@DEFAULT", "10.0.0.1@a.lock"])
@pytest.mark.parametrize("group", ["orders", "new-orders", "members", "queues", "lock", "x.new"])
def test_the_progress_of_a_broadcast_consumer_of_any_name_is_in_it(root, tmp_path, client, group):
    kept = Path("rmqctl/broadcast") / client / group / "offsets.json"
    (root / kept).parent.mkdir(parents=True)
    (root / kept).write_text('{"offsetTable": []}')
    (root / kept).with_name("offsets.lock").touch()
    take_snapshot(root, tmp_path / "snap", now_ms=1)
    assert (tmp_path / "snap" / kept).read_text() == (root / kept).read_text()
    restore_snapshot(open_snapshot(tmp_path / "snap"), tmp_path / "new", run="x")
    found = [path.name for path in (tmp_path / "new" / kept).parent.iterdir()]
    assert found == ["offsets.json"]


def longest_manifest(root, tmp_path):
    """Bytes of the manifest of a store, and some more."""
    take_snapshot(root, tmp_path / "first", now_ms=1)
    return (tmp_path / "first/manifest.json").stat().st_size + 20


@pytest.mark.parametrize("name", ["snap", "snap.tar"])
def test_a_snapshot_whose_manifest_no_reader_takes_is_not_made(root, tmp_path, monkeypatch, name):
    length = longest_manifest(root, tmp_path)
    monkeypatch.setattr("storage.tools.snapshot.manifest.MAX_MANIFEST", length)
    take_snapshot(root, tmp_path / name, now_ms=1)
    assert open_snapshot(tmp_path / name).manifest.at_timestamp == 1
    (root / "more").mkdir()
    (root / "more" / "a file with some name").touch()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="can be made: its manifest has .* more than the .* read"):
        take_snapshot(root, tmp_path / f"other-{name}", now_ms=1)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["snap", "snap.tar"])
def test_file_names_that_make_no_manifest_are_found_when_it_is_taken(root, tmp_path, name):
    (root / "more").mkdir()
    for number in range(40):
        (root / "more" / f"{'[' * 250}{number}").touch()
    with pytest.raises(StoreError, match="can be made: its manifest has other rows"):
        take_snapshot(root, tmp_path / name, now_ms=1)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("name", ["snap", "snap.tar"])
def test_a_file_from_before_1970_is_in_it(root, tmp_path, name):
    (root / "more").write_bytes(b"old")
    os.utime(root / "more", ns=(-5_000_000_000, -5_000_000_000))
    take_snapshot(root, tmp_path / name, now_ms=1)
    source = open_snapshot(tmp_path / name)
    assert verify(source) == []
    restore_snapshot(source, tmp_path / "new", run="x")
    assert (tmp_path / "new" / "more").read_bytes() == b"old"
    assert (tmp_path / "new" / "more").stat().st_mtime_ns == 0
