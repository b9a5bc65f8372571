"""Queues of a topic that is deleted: gone for writers, readers, recovery and the check."""

import errno
import itertools
import os
import shutil
from contextlib import suppress

import pytest

from storage.configs.deleted_topics import (
    put_deleted_topics,
    read_deleted_topics,
    stage_deleted_topic,
)
from storage.coordination.exclusive import alone
from storage.errors import (
    CorruptFileError,
    StoreInUseError,
    StoreNotWritableError,
    WriteLockTimeoutError,
)
from storage.files.fs import FileSystem
from storage.queue.deletion import delete_queues
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.samples import SMALL, Sample, new_store, prepared

TOPIC, OTHER = "Gone", "Stays"
CONFIG = SMALL.with_(mapped_file_size_consume_queue=10 * 20)


@pytest.fixture
def root(tmp_path):
    """A closed store with three messages in two queues of a topic, the last ones of its log."""
    root = new_store(tmp_path / "s", CONFIG)
    put(root, OTHER, 0, "other")
    for queue_id, name in ((0, "a"), (0, "b"), (1, "c")):
        put(root, TOPIC, queue_id, name)
    return root


def put(root, topic, queue_id, *names):
    with MessageStore.open(root) as store:
        for name in names:
            store.put(prepared((Sample(name, topic, queue_id),)))


def delete(root):
    with StoreView.open(root) as view, alone(root):
        return delete_queues(view, TOPIC)


def note(root, topic, log_end, log_min):
    stage_deleted_topic(root, topic, log_end, log_min, FileSystem())
    put_deleted_topics(root, FileSystem())


def names(root, topic, queue_id=0):
    with StoreView.open(root) as view:
        return found(view, topic, queue_id)


def found(view, topic, queue_id=0):
    messages = view.get_message(topic, queue_id, 0, 32).messages
    return [message.properties["UNIQ_KEY"] for message in messages]


def test_a_folder_among_the_files_of_a_queue_is_refused_before_anything_happens(root):
    (root / "consumequeue" / TOPIC / "1" / "backup").mkdir()
    shared = (root / "rmqctl" / "shared").read_bytes()
    with pytest.raises(StoreNotWritableError, match=r"backup.*move it away, then try again"):
        delete(root)
    assert (root / "rmqctl" / "shared").read_bytes() == shared
    assert names(root, TOPIC) == ["a", "b"]


class FullDisk(FileSystem):
    """A disk that has no room for another file, but for the changes of names."""

    def create_beside(self, path, folder=None):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_full_disk_is_found_before_anything_is_deleted(root):
    called = []
    with (
        StoreView.open(root) as view,
        alone(root),
        pytest.raises(StoreNotWritableError, match="No space left"),
    ):
        delete_queues(view, TOPIC, FullDisk(), before=lambda: called.append(1))
    assert not called
    assert names(root, TOPIC) == ["a", "b"]
    put(root, TOPIC, 0, "new")
    assert names(root, TOPIC) == ["a", "b", "new"]


def test_the_queues_go_and_the_folder_of_the_topic_stays(root):
    assert delete(root) == 2
    assert list((root / "consumequeue" / TOPIC).iterdir()) == []
    with StoreView.open(root) as view:
        assert view.queues() == [(OTHER, 0)]
        assert view.queue_bounds(TOPIC, 0) == (0, 0)
    assert names(root, OTHER) == ["other"]


def test_the_next_message_gets_offset_0_and_the_old_ones_stay_away(root):
    delete(root)
    put(root, TOPIC, 0, "new")
    assert names(root, TOPIC) == ["new"]
    assert names(root, TOPIC, 1) == []


@pytest.mark.parametrize("abort", [False, True])
def test_recovery_does_not_bring_them_back(root, abort):
    delete(root)
    put(root, TOPIC, 0, "new")
    (root / "rmqctl/shared").unlink()
    shutil.rmtree(root / "consumequeue" / OTHER)
    if abort:
        (root / "abort").touch()
    assert names(root, TOPIC) == ["new"]  # a reader that finds the end by itself
    with MessageStore.open(root) as store:
        assert store.recovery is not None
        assert store.view.queues() == [(TOPIC, 0), (OTHER, 0)]
    assert names(root, TOPIC) == ["new"]
    assert names(root, OTHER) == ["other"]


def test_the_check_does_not_miss_them(root):
    delete(root)
    put(root, TOPIC, 0, "new")
    with StoreView.open(root) as view:
        report = fsck(view)
    assert (report.errors, report.warnings) == (0, 0), report.findings


def test_a_reader_that_was_there_before_sees_it(root):
    with MessageStore.open(root):
        view = StoreView.open(root)
        assert view.has_shared_state
    with view:
        assert view.queue_bounds(TOPIC, 0) == (0, 2)
        delete(root)
        assert view.queue_bounds(TOPIC, 0) == (0, 0)
        put(root, TOPIC, 0, "new")
        assert found(view, TOPIC) == ["new"]


def test_it_needs_a_store_that_no_other_process_writes(root):
    with MessageStore.open(root), pytest.raises(StoreInUseError, match="rmqctl"):
        delete(root)
    assert names(root, TOPIC) == ["a", "b"]
    with (
        pytest.raises(WriteLockTimeoutError),
        alone(root),
        MessageStore.open(root, gate_timeout_ms=50),
    ):
        pass


def test_a_store_whose_writer_was_killed_is_no_obstacle(root):
    (root / "abort").touch()
    assert delete(root) == 2
    put(root, TOPIC, 0, "new")
    assert names(root, TOPIC) == ["new"]


class Dies(FileSystem):
    """Does so many things and no more."""

    def __init__(self, most: int) -> None:
        self.left = most

    def _count(self) -> None:
        if not self.left:
            raise OSError(5, "dead")
        self.left -= 1

    def unlink(self, path):
        self._count()
        super().unlink(path)

    def rename(self, source, target):
        self._count()
        super().rename(source, target)

    def sync_dir(self, path):
        self._count()
        super().sync_dir(path)


@pytest.mark.parametrize("most", range(13))
def test_a_death_in_between_deletes_nothing_or_everything(root, most):
    # Several files, so that a queue may lack its end.
    put(root, TOPIC, 0, *[f"more{number}" for number in range(30)])
    before = names(root, TOPIC)
    with StoreView.open(root) as view, alone(root), suppress(StoreNotWritableError):
        delete_queues(view, TOPIC, Dies(most))
    put(root, OTHER, 0, "next")
    with StoreView.open(root) as view:
        report = fsck(view)
        assert (report.errors, report.warnings) == (0, 0), report.findings
        assert found(view, TOPIC) in (before, [])
        assert bool(found(view, TOPIC)) == bool(found(view, TOPIC, 1)) == (most < 11)
    assert delete(root) in (0, 2)
    put(root, TOPIC, 1, "new")
    assert (names(root, TOPIC, 1), names(root, TOPIC)) == (["new"], [])


def log_files(root):
    return len(list((root / "commitlog").iterdir()))


@pytest.mark.parametrize("most", range(16))
def test_nor_does_a_death_where_the_records_lie_before_the_last_files_of_the_log(root, most):
    """A recovery after a clean exit begins there, as RocketMQ's does."""
    put(root, TOPIC, 0, *[f"more{number}" for number in range(30)])
    before = names(root, TOPIC)
    with MessageStore.open(root) as store:
        for number in itertools.count():
            store.put(prepared((Sample(f"later{number}", OTHER, 0),)))
            if log_files(root) == 7:
                break
    checkpoint = (root / "checkpoint").read_bytes()
    with StoreView.open(root) as view, alone(root), suppress(StoreNotWritableError):
        delete_queues(view, TOPIC, Dies(most))
    if most == 15:  # all of it is done
        assert (root / "checkpoint").read_bytes() == checkpoint
        assert not (root / "abort").exists()
    put(root, OTHER, 0, "next")
    with StoreView.open(root) as view:
        report = fsck(view)
        assert (report.errors, report.warnings) == (0, 0), report.findings
        assert found(view, TOPIC) in (before, [])
        assert bool(found(view, TOPIC)) == bool(found(view, TOPIC, 1)) == (most < 11)


def test_topics_without_records_in_the_log_are_forgotten(tmp_path):
    note(tmp_path, "a", 100, 0)
    note(tmp_path, "b", 300, 0)
    note(tmp_path, "a", 400, 200)
    assert read_deleted_topics(tmp_path) == {"a": 400, "b": 300}
    note(tmp_path, "c", 500, 400)
    assert read_deleted_topics(tmp_path) == {"c": 500}


def test_a_damaged_record_of_them_is_an_error(tmp_path):
    note(tmp_path, "a", 100, 0)
    path = tmp_path / "rmqctl/deleted.json"
    path.write_bytes(path.read_bytes().replace(b"100", b"200"))
    with pytest.raises(CorruptFileError, match="check sum"):
        read_deleted_topics(tmp_path)
