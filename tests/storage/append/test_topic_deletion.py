"""The queues of a topic are deleted while other processes read and write the store."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from storage.config import FlushDiskType, StoreConfig
from storage.configs.deleted_topics import DELETED_FILE, read_deleted_topics
from storage.coordination.kept_links import KEPT
from storage.coordination.shared_state import STAGE_DELETE, STAGE_DISPATCH, STAGE_NONE, Word
from storage.errors import CorruptFileError, StoreBrokenError, StoreNotWritableError
from storage.format.encode_column import prepare_column
from storage.format.names import OURS
from storage.format.prepared import PreparedRecords
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.crash import shared_out
from tests.support.durable_fs import DurableFileSystem
from tests.support.every_instant import LATER, lose_page
from tests.support.killed_topic_deletion import names_of
from tests.support.samples import (
    HOST,
    SMALL,
    START_MS,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
    sync_flush,
)
from tests.support.watched_fs import Instant, WatchedFileSystem

TOPIC, OTHER = "Gone", "Stays"
CONFIG = SMALL.with_(mapped_file_size_consume_queue=10 * 20)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s", CONFIG)


def put(store: MessageStore, name: str, topic: str = TOPIC, queue_id: int = 0) -> int:
    return int(store.put(prepared((Sample(name, topic, queue_id),))).queue_offsets[0])


def names(view: StoreView, topic: str = TOPIC, queue_id: int = 0) -> list[str]:
    return names_of(view, topic, queue_id)


def words(store: MessageStore) -> Any:
    return store._shared.words


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("count", [1, 9, 10, 25])
def test_no_opening_writes_into_the_files_that_are_gone(root: Path, count: int, sync: bool) -> None:
    flush = FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH
    config = CONFIG.with_(flush_disk_type=flush)
    with (
        MessageStore.open(root, config) as deleter,
        MessageStore.open(root, config) as one,
        MessageStore.open(root, config) as two,
        StoreView.open(root) as reader,
    ):
        put(two, "other", OTHER)
        for n in range(count):
            put((one, two)[n % 2], f"old-{n}")
        put(two, "in another queue", queue_id=1)
        assert len(names(reader)) == len(names(one.view)) == count
        new: list[str] = []
        for again in range(3):  # deleted and made anew again and again
            assert deleter.delete_queues(TOPIC) == (2 if again == 0 else 1)
            for view in (one.view, two.view, reader, deleter.view):
                assert names(view) == names(view, queue_id=1) == []
                assert view.queues() == [(OTHER, 0)]
                assert view.queue_bounds(TOPIC, 0) == (0, 0)
            assert not list((root / "consumequeue" / TOPIC).iterdir())
            order = [two, one, two, one, deleter] * 5
            new = [f"new-{again}-{n}" for n in range(len(order))]
            assert [put(store, name) for store, name in zip(order, new, strict=True)] == [
                *range(len(order))
            ]
            for view in (one.view, two.view, reader, deleter.view):
                assert names(view) == new
                assert view.queues() == [(TOPIC, 0), (OTHER, 0)]
        assert put(one, "other 2", OTHER) == 1
        assert names(reader, OTHER) == ["other", "other 2"]
        report = fsck(reader)
        assert (report.errors, report.warnings) == (0, 0), report.findings
    (root / "rmqctl/shared").unlink()
    with MessageStore.open(root, config) as store:  # recovery brings nothing back
        assert store.recovery is not None
        assert names(store.view) == new


def test_single_messages_and_batches_find_the_new_queue_too(root: Path) -> None:
    with MessageStore.open(root, CONFIG) as one, MessageStore.open(root, CONFIG) as two:
        batch = [Sample(f"b{n}", TOPIC, 0) for n in range(40)]
        two.put(prepared(batch[:20]), whole=True)
        two.put(prepared(batch[20:]), whole=True)
        one.delete_queues(TOPIC)
        assert put(one, "first") == 0
        found = two.put(prepared(batch), whole=True)
        assert list(found.queue_offsets) == list(range(1, 41))
        assert len(names(one.view)) == 41
        assert names(two.view)[:2] == ["first", "b0"]


def test_a_batch_of_compiled_code_finds_the_new_queue_too(tmp_path: Path) -> None:
    def column(name: str) -> PreparedRecords:
        return prepare_column(
            TOPIC,
            [n % 2 for n in range(40)],
            [f"{name}-{n}".encode() for n in range(40)],
            born_timestamp=START_MS,
            born_host=HOST,
            store_host=HOST,
            unique_ids=[f"{name}-{n:02}".encode() for n in range(40)],
        )

    config = CONFIG.with_(mapped_file_size_consume_queue=20 * 8000)
    root = new_store(tmp_path / "roomy", config)
    with MessageStore.open(root, config) as one, MessageStore.open(root, config) as two:
        for name in ("a", "b", "c"):
            two.put(column(name))
        one.delete_queues(TOPIC)
        for queue_id in (0, 1):
            assert put(one, f"first-{queue_id}", queue_id=queue_id) == 0
        two.put(column("d"))
        two.put(column("e"))
        for queue_id in (0, 1):
            new = [f"{name}-{n:02}" for name in ("d", "e") for n in range(queue_id, 40, 2)]
            for view in (one.view, two.view):
                assert names(view, queue_id=queue_id) == [f"first-{queue_id}", *new]


def test_a_reader_that_comes_in_between_trusts_the_shared_state(root: Path) -> None:
    seen: list[tuple[list[str], list[str]]] = []
    stage: list[Any] = []

    def look(instant: Instant) -> None:
        if stage and stage[0][Word.STAGE] == STAGE_DELETE:
            with StoreView.open(root) as view:
                seen.append((names(view), names(view, OTHER)))
                assert view.queues() in ([(TOPIC, 0), (OTHER, 0)], [(OTHER, 0)])
                assert view.has_shared_state, instant

    with MessageStore.open(root, CONFIG, fs=WatchedFileSystem(look)) as store:
        put(store, "old")
        put(store, "other", OTHER)
        stage.append(words(store))
        store.delete_queues(TOPIC)
    assert [found for found, _ in seen if found] == [["old"]], "the slot is the first to go"
    assert len(seen) > 8
    assert all(other == ["other"] for _, other in seen)


def test_a_kept_second_name_does_not_bring_a_file_back(root: Path) -> None:
    with MessageStore.open(root, CONFIG) as one, MessageStore.open(root, CONFIG) as two:
        put(two, "old")
        assert any(path.name.startswith(TOPIC) for path in (root / "rmqctl" / KEPT).iterdir())
        one.delete_queues(TOPIC)
        assert not any(path.name.startswith(TOPIC) for path in (root / "rmqctl" / KEPT).iterdir())
    with StoreView.open(root) as view:
        assert view.queues() == []


def test_a_topic_without_queues_and_one_that_is_missing(root: Path) -> None:
    with MessageStore.open(root, CONFIG) as store:
        put(store, "other", OTHER)
        assert store.delete_queues("NotThere") == 0
        assert store.delete_queues(OTHER) == 1
        assert store.delete_queues(OTHER) == 0
        assert set(read_deleted_topics(root)) == {OTHER}


def test_a_damaged_list_of_deleted_topics_is_found_before_anything_happens(root: Path) -> None:
    with MessageStore.open(root, CONFIG) as store:
        put(store, "old")
        (root / "rmqctl" / DELETED_FILE).write_text("{")
        with pytest.raises(CorruptFileError, match=DELETED_FILE):
            store.delete_queues(TOPIC)
        assert words(store)[Word.STAGE] == STAGE_NONE
        assert names(store.view) == ["old"]
        assert put(store, "next") == 1


def test_what_comes_first_may_refuse_and_nothing_has_happened(root: Path) -> None:
    class Refusal(Exception):
        pass

    def refuse() -> None:
        raise Refusal

    with MessageStore.open(root, CONFIG) as store:
        put(store, "old")
        with pytest.raises(Refusal):
            store.delete_queues(TOPIC, refuse)
        assert names(store.view) == ["old"]
        assert put(store, "next") == 1


def test_links_that_stand_for_queues_go_and_files_beside_queues_stay(root: Path) -> None:
    topic, elsewhere = root / "consumequeue" / TOPIC, root.with_name("elsewhere")
    with MessageStore.open(root, CONFIG) as store:
        put(store, "old")
    (topic / "0").rename(elsewhere)
    (topic / "0").symlink_to(elsewhere)
    (topic / "7").write_text("no queue")
    with MessageStore.open(root, CONFIG) as one, MessageStore.open(root, CONFIG) as two:
        put(two, "other", OTHER)
        assert one.delete_queues(TOPIC) == 1
        assert words(two)[Word.STAGE] == STAGE_NONE
        assert [path.name for path in topic.iterdir()] == ["7"]
        assert list(elsewhere.iterdir()) == []
        assert put(two, "other", OTHER) == 1
        assert put(two, "new") == 0


def test_a_folder_among_the_files_of_a_queue_is_refused_before_anything_happens(
    root: Path,
) -> None:
    with MessageStore.open(root, CONFIG) as one, MessageStore.open(root, CONFIG) as two:
        put(two, "old")
        foreign = root / "consumequeue" / TOPIC / "0" / "backup"
        foreign.mkdir()
        with pytest.raises(StoreNotWritableError, match="backup.*move it away, then try again"):
            one.delete_queues(TOPIC)
        assert words(two)[Word.STAGE] == STAGE_NONE
        assert put(two, "next") == 1
        assert put(one, "other", OTHER) == 0
        foreign.rmdir()
        assert one.delete_queues(TOPIC) == 1


def test_a_deletion_that_an_error_breaks_off_is_finished_by_the_next_writer(root: Path) -> None:
    failing = [True]

    def fail(instant: Instant) -> None:
        if failing[0] and instant.kind == "rename" and instant.what.endswith(DELETED_FILE):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), instant.what)

    with (
        MessageStore.open(root, CONFIG) as two,
        MessageStore.open(root, CONFIG, fs=WatchedFileSystem(fail)) as one,
    ):
        put(two, "old")
        with pytest.raises(StoreNotWritableError, match="the next process that writes the store"):
            one.delete_queues(TOPIC)
        failing[0] = False
        assert words(two)[Word.STAGE] == STAGE_DELETE
        assert names(two.view) == []
        assert put(two, "other", OTHER) == 0
        assert words(two)[Word.STAGE] == STAGE_NONE
        assert set(read_deleted_topics(root)) == {TOPIC}
        assert put(one, "new") == 0
        assert names(two.view) == ["new"]


@pytest.mark.parametrize("stage", [STAGE_DISPATCH, STAGE_DELETE])
def test_a_deletion_that_did_not_begin_is_not_called_one_that_is_finished(
    root: Path, stage: int
) -> None:
    """A full disk keeps what another writer left half done from being finished first."""
    failing = [True]

    def fail(instant: Instant) -> None:
        full = instant.what.endswith(DELETED_FILE) or "/New/" in instant.what
        if failing[0] and instant.kind == "rename" and full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), instant.what)

    with (
        MessageStore.open(root, CONFIG, fs=WatchedFileSystem(fail)) as two,
        MessageStore.open(root, CONFIG, fs=WatchedFileSystem(fail)) as one,
        StoreView.open(root) as reader,
    ):
        put(two, "old")
        put(two, "other", OTHER)
        if stage == STAGE_DELETE:
            with pytest.raises(StoreNotWritableError, match="finishes the deletion"):
                one.delete_queues(OTHER)
        else:
            with pytest.raises(StoreBrokenError):
                put(one, "new", "New")
        assert words(two)[Word.STAGE] == stage
        called: list[int] = []
        with pytest.raises(StoreNotWritableError, match="No space left on device$"):
            two.delete_queues(TOPIC, lambda: called.append(1))
        assert not called
        assert names(reader) == ["old"]
        failing[0] = False
        assert two.delete_queues(TOPIC) == 1
        assert names(reader, OTHER) == ([] if stage == STAGE_DELETE else ["other"])


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_a_deletion_killed_at_any_instant_is_done_or_has_not_begun(every: int) -> None:
    found = shared_out("killed_topic_deletion:killed_at_every_instant", every)
    assert all(one["outcomes"]["deleted"] > 1 and one["outcomes"]["kept"] > 1 for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("later_files", [0, 4])
def test_after_a_power_loss_all_messages_of_the_topic_are_there_or_none(
    tmp_path: Path, later_files: int
) -> None:
    """Also where the checkpoint vouches for the log files with the topic's messages."""
    config = sync_flush(CONFIG)
    root = new_store(tmp_path / "store", config)
    old = [f"old-{n}" for n in range(13)]
    chance, deleting = random.Random(7), [False]
    found: list[list[str]] = []

    def cut(what: str) -> None:
        for share in (None, 0.5, 1.0) if deleting[0] else ():
            image = fs.buffer(tmp_path / "image", None if share is None else chance, share or 0)
            lose_page(image)
            with StoreView.open(image, config) as view:
                before = names(view)
            assert (before == []) == (image / OURS / DELETED_FILE).exists(), what
            with open_store(image, config, clock=Ticking(LATER)) as store:
                assert names(store.view) == before, what
                assert names(store.view, OTHER)[0] == "other"
                assert put(store, "new") == len(before)
                assert names(store.view) == [*before, "new"]
            with StoreView.open(image, config) as view:
                report = fsck(view)
                assert (report.errors, report.warnings) == (0, 0), report.findings
            found.append(before)
            shutil.rmtree(image)

    clock = Ticking()
    with open_store(root, config, clock=clock) as one:  # closing it makes a checkpoint
        put(one, "other", OTHER)
    fs = DurableFileSystem(root, cut)
    with open_store(root, config, fs=fs, clock=clock) as one:
        for name in old:
            put(one, name)
        clock.now += 60_000
        for number in itertools.count() if later_files else ():
            put(one, f"later-{number}", OTHER)
            if len(list((root / "commitlog").iterdir())) > later_files + 1:
                break
        clock.now += 60_000
        put(one, "last", OTHER)
        one.flush()
        deleting[0] = True
        one.delete_queues(TOPIC)
        deleting[0] = False
    assert found[0] == old
    assert found[-1] == []
    assert all(before in (old, []) for before in found)
    assert found == sorted(found, reverse=True), "first all, then none"


def test_after_a_power_loss_new_messages_of_a_deleted_topic_are_not_deleted(
    tmp_path: Path,
) -> None:
    """The log may end before the place up to which messages were deleted, without SYNC_FLUSH."""
    root = new_store(tmp_path / "store", CONFIG)
    fs = DurableFileSystem(root)
    image = tmp_path / "image"
    with open_store(root, CONFIG, fs=fs, clock=Ticking()) as one:
        put(one, "other", OTHER)
        one.flush()
        for number in range(5):
            put(one, f"old-{number}")
        one.delete_queues(TOPIC)
        fs.buffer(image)
    with open_store(image, CONFIG, clock=Ticking(LATER)) as store:
        end = store.log_end
        assert put(store, "new") == 0
    assert all(noted <= end for noted in read_deleted_topics(image).values())
    (image / OURS / "shared").unlink()
    shutil.rmtree(image / "consumequeue" / TOPIC)
    with open_store(image, CONFIG, clock=Ticking(LATER)) as store:
        assert names(store.view) == ["new"]


def test_settings_of_an_opening_do_not_matter(root: Path) -> None:
    with MessageStore.open(root) as store:
        assert isinstance(store.config, StoreConfig)
        put(store, "old")
        assert store.delete_queues(TOPIC) == 1
