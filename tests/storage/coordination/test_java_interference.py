"""What a Java broker does beside our writers before it fails on our lock, done here by hand."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from storage.files.fs import FileSystem
from storage.format.message import MessageExt
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Severity, fsck
from tests.support.samples import SMALL, TINY, Sample, Ticking, new_store, open_store, prepared

ROOMY = TINY.with_(max_hash_slot_num=50, max_index_num=4000)


def _put(store: MessageStore, *numbers: int) -> None:
    for number in numbers:
        store.put(prepared([Sample(f"id-{number}", "T", keys=(f"key-{number}",))]))


def _check(root: Path, count: int) -> None:
    """Check that messages 0 .. count - 1 are there once, found by their keys once."""
    with StoreView.open(root) as view:
        found: list[MessageExt] = []
        while len(found) < count:
            messages = view.get_message("T", 0, len(found), 32).messages
            assert messages, f"nothing at {len(found)}"
            found += messages
        assert sorted(message.msg_id for message in found) == sorted(
            f"id-{number}" for number in range(count)
        )
        for number in range(count):
            hits = view.query_message("T", f"key-{number}").messages
            assert [hit.msg_id for hit in hits] == [f"id-{number}"]
        findings = fsck(view).findings
        assert [finding for finding in findings if finding.severity is not Severity.INFO] == []


def _only_index_file(root: Path) -> Path:
    [path] = (root / "index").iterdir()
    return path


def _last_queue_file(root: Path) -> Path:
    return max((root / "consumequeue" / "T" / "0").iterdir())


def test_a_deleted_index_file_comes_back_with_the_keys_put_meanwhile(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    clock = Ticking()
    with open_store(root, ROOMY, clock=clock) as one, open_store(root, ROOMY, clock=clock) as two:
        _put(one, 0, 1)
        _put(two, 2)
        _only_index_file(root).unlink()
        _put(one, 3)
        _put(two, 4)
        with open_store(root, ROOMY, clock=clock) as late:  # undoes it as it comes in
            _put(late, 5)
            assert _only_index_file(root).exists()
        _put(one, 6)
        _put(two, 7)
    _check(root, 8)


def test_who_never_put_anything_finds_the_index_file_again(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    clock = Ticking()
    with open_store(root, ROOMY, clock=clock) as one, open_store(root, ROOMY, clock=clock) as two:
        _put(one, 0)
        _only_index_file(root).unlink()
        _put(two, 1)
    _check(root, 2)


def test_a_deleted_queue_file_comes_back_with_the_units_put_meanwhile(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    clock = Ticking()
    with open_store(root, ROOMY, clock=clock) as one, open_store(root, ROOMY, clock=clock) as two:
        _put(one, *range(10))
        _last_queue_file(root).unlink()
        _put(one, 10)  # still has it mapped
        _put(two, 11, 12, 13)  # has to open it, and then the next one
        _last_queue_file(root).unlink()
    _check(root, 14)


def test_queue_and_index_files_that_were_deleted_and_rolled_over_come_back(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY) as store:
        for number in range(60):
            _put(store, number)
            if number in (13, 14, 31, 48):
                store.flush()  # the keys too
                _last_queue_file(root).unlink()
                max((root / "index").iterdir()).unlink()
    _check(root, 60)


def test_the_index_file_that_the_broker_made_goes(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking()) as store:
        _put(store, 0)
    [old] = (root / "index").iterdir()
    with open_store(root, ROOMY, clock=Ticking()) as store:
        _put(store, 1)
        shutil.copy(old, root / "index" / "29991231235959999")
        old.unlink()
        _put(store, 2, 3)
    assert _only_index_file(root) == old
    _check(root, 4)


def test_index_files_from_before_stay(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY, clock=Ticking()) as store:
        _put(store, *range(20))
    before = set((root / "index").iterdir())
    assert len(before) > 2
    with open_store(root, TINY, clock=Ticking()) as store:
        _put(store, *range(20, 24))
        max(before).unlink()
        _put(store, *range(24, 40))
    assert before <= set((root / "index").iterdir())
    _check(root, 40)


def _let_java_try(root: Path) -> None:
    """Delete the newest index file, and make a later one, as a broker does that then fails."""
    newest = max((root / "index").iterdir())
    shutil.copy(newest, root / "index" / "29991231235959999")
    newest.unlink()


@pytest.mark.parametrize("before", [0, 20])
def test_an_attempt_is_over_once_the_store_was_closed_cleanly(tmp_path: Path, before: int) -> None:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY, clock=Ticking()) as store:
        _put(store, *range(before))
    with open_store(root, TINY, clock=Ticking()) as store:
        _put(store, *range(before, before + 20))
        _let_java_try(root)
        _put(store, before + 20)
    made = {path.name: path.stat().st_ino for path in (root / "index").iterdir()}
    assert "29991231235959999" not in made
    with open_store(root, TINY, clock=Ticking()) as store:
        assert store.recovery is None
        found = {path.name: path.stat().st_ino for path in (root / "index").iterdir()}
        assert made == found
        assert not store._session.rivals.attempted()
        _put(store, before + 21)
    _check(root, before + 22)


def test_index_files_stay_if_their_only_writer_was_killed_after_an_attempt(tmp_path: Path) -> None:
    """The next first writer undoes the attempt; its own attempt then takes none of these files."""
    root = new_store(tmp_path / "store", TINY)
    child = os.fork()
    if not child:
        store = open_store(root, TINY, clock=Ticking())
        _put(store, *range(20))
        _let_java_try(root)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with open_store(root, TINY, clock=Ticking()) as store:
        assert store.recovery is None
        made = {path.name: path.stat().st_ino for path in (root / "index").iterdir()}
        assert "29991231235959999" not in made
        _put(store, *range(20, 40))
        _let_java_try(root)
        _put(store, 40)
    found = {path.name: path.stat().st_ino for path in (root / "index").iterdir()}
    assert made.items() <= found.items()
    assert "29991231235959999" not in found
    _check(root, 41)


def test_abort_comes_back(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    clock = Ticking()
    with open_store(root, ROOMY, clock=clock) as one:
        _put(one, 0)
        (root / "abort").unlink()
        _only_index_file(root).unlink()
        open_store(root, ROOMY, clock=clock).close()
        assert (root / "abort").exists()
    assert not (root / "abort").exists()


class _OneName(FileSystem):
    """A file system without hard links."""

    def link(self, source: Path, name: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_where_files_have_one_name_only_a_lost_index_file_is_made_anew(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", TINY)
    with open_store(root, TINY, fs=_OneName(), clock=Ticking()) as store:
        _put(store, *range(20))
    _check(root, 20)
    child = os.fork()
    if not child:  # ends like one that was killed
        store = open_store(root, TINY, fs=_OneName(), clock=Ticking())
        _put(store, *range(20, 40))
        max((root / "index").iterdir()).unlink()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with open_store(root, TINY, fs=_OneName(), clock=Ticking()) as store:
        assert store.recovery is not None
        _put(store, 40)
    _check(root, 41)


def test_nothing_is_kept_of_a_closed_store_and_of_what_was_deleted_on_purpose(
    tmp_path: Path,
) -> None:
    root = new_store(tmp_path / "store", SMALL)
    kept = root / "rmqctl" / "kept"
    clock = Ticking()
    with open_store(root, SMALL, clock=clock) as store:
        _put(store, *range(600))
        assert len(list(kept.iterdir())) == 2 + len(list((root / "index").iterdir()))
        clock.now = 4_000_000_000_000  # long after all files were modified
        cleaned = store.clean(manual=True)
        assert cleaned.index_files
        names = {path.name for path in kept.iterdir()}
        assert names == {"T@0@" + _last_queue_file(root).name} | {
            f"index@{path.name}" for path in (root / "index").iterdir()
        }
    assert list(kept.iterdir()) == []
