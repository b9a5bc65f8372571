"""A process that waits for the write lock gives up only where its holder makes no progress."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from storage.coordination.locks import LockFile
from storage.coordination.shared_state import SHARED_STATE_NAME, SharedState, Word
from storage.coordination.write_lock import WRITE_LOCK_BYTE
from storage.coordination.write_lock_progress import WriteLockProgress
from storage.errors import WriteLockTimeoutError
from storage.files.fs import FileSystem
from storage.platform import LINUX
from tests.support.crash import inspect
from tests.support.puppet import Puppet
from tests.support.samples import TINY, new_store, open_store
from tests.support.slim import Slim


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s")


@pytest.mark.slow
def test_a_process_that_waits_does_not_give_up_beside_one_that_stores(root: Path) -> None:
    """The time limit passes four times, and in each of them a record is begun."""
    open_store(root).close()
    rival = LockFile(root / "lock")
    assert rival.try_lock(WRITE_LOCK_BYTE)
    shared = SharedState(FileSystem(), root, writable=True)
    errors: list[Exception] = []

    def open_it() -> None:
        try:
            open_store(root, gate_timeout_ms=500).close()
        except Exception as error:  # noqa: BLE001 - the test judges it
            errors.append(error)

    opener = threading.Thread(target=open_it)
    begin = time.monotonic()
    opener.start()
    while time.monotonic() < begin + 2 and opener.is_alive():
        shared.words[Word.FROM] += 1
        opener.join(0.01)
    assert opener.is_alive()
    shared.words[Word.FROM] = shared.words[Word.LOG_END]
    shared.close()
    rival.close()
    opener.join()
    assert errors == []


@pytest.mark.long
def test_many_processes_that_open_at_once_wait_their_turn(root: Path) -> None:
    errors = Slim(
        "tests.support.openers:open_at_once", root=str(root), processes=400, gate_timeout_ms=10_000
    ).result()
    assert errors == []
    assert inspect(root, TINY).problems == []


@pytest.mark.slow
def test_another_holder_is_progress(root: Path) -> None:
    with Puppet() as first, Puppet() as second:
        first.call("open", root=str(root))
        second.call("open", root=str(root))
        progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
        first.call("take_gate")
        assert [progress.is_made() for _ in range(3)] == [False, False, False]
        first.call("release_gate")
        second.call("take_gate")
        assert [progress.is_made() for _ in range(2)] == [True, False]


def test_a_stored_message_is_progress(root: Path) -> None:
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
        assert not progress.is_made()
        puppet.call("put", name="m")
        assert [progress.is_made() for _ in range(2)] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [b"", bytes(8192)], ids=["empty", "zeros"])
def test_work_on_a_page_that_is_rebuilt_is_progress(root: Path, shared: bytes) -> None:
    open_store(root).close()
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("take_gate")
        (root / "rmqctl" / SHARED_STATE_NAME).write_bytes(shared)
        progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
        assert not progress.is_made()
        puppet.call("work", milliseconds=50 if LINUX else 1_100)  # ps counts seconds
        assert [progress.is_made() for _ in range(2)] == [True, False]


def test_a_page_that_has_been_rebuilt_is_progress(root: Path) -> None:
    open_store(root).close()
    page = root / "rmqctl" / SHARED_STATE_NAME
    whole = page.read_bytes()
    holder = LockFile(root / "lock")
    assert holder.try_lock(WRITE_LOCK_BYTE)
    page.write_bytes(b"")
    progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
    assert not progress.is_made()
    page.write_bytes(whole)
    assert [progress.is_made() for _ in range(3)] == [True, False, False]
    holder.close()


def test_work_of_this_process_is_no_progress_of_a_holder_in_it(root: Path) -> None:
    open_store(root).close()
    holder = LockFile(root / "lock")
    assert holder.try_lock(WRITE_LOCK_BYTE)
    (root / "rmqctl" / SHARED_STATE_NAME).write_bytes(b"")
    progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
    assert not progress.is_made()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    assert not progress.is_made()
    holder.close()


@pytest.mark.slow
def test_work_beside_a_page_that_counts_is_no_progress(root: Path) -> None:
    """A holder that turns in a circle stores nothing."""
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("take_gate")
        progress = WriteLockProgress(root, root / "lock", WRITE_LOCK_BYTE)
        assert not progress.is_made()
        puppet.call("work", milliseconds=50)
        assert not progress.is_made()


@pytest.mark.slow
def test_a_waiter_gives_up_beside_a_holder_that_stands_still(root: Path) -> None:
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("take_gate")
        with pytest.raises(WriteLockTimeoutError, match=rf"waited \d+ ms .*process {puppet.pid}"):
            open_store(root, gate_timeout_ms=100)
