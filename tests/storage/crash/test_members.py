"""Which processes may open and write, and the errors of those that may not."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.coordination.locks import LockFile
from storage.coordination.shared_state import SHARED_STATE_VERSION
from storage.errors import StoreInUseError, StoreVersionError, WriteLockTimeoutError
from tests.support.copies import copy_store
from tests.support.crash import Acknowledged, inspect, missing
from tests.support.puppet import Puppet, PuppetError
from tests.support.samples import TINY, Sample, new_store, open_store, prepared
from tests.support.slim import Slim
from tests.support.watched_fs import Instant, WatchedFileSystem

pytestmark = [pytest.mark.crash, pytest.mark.slow]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "store")


@pytest.fixture
def puppet() -> Iterator[Puppet]:
    with Puppet() as found:
        yield found


def test_the_gate_timeout_names_a_stopped_holder_and_the_wait_goes_on_later(root, puppet):
    puppet.call("open", root=str(root))
    puppet.call("take_gate")
    puppet.stop()
    with pytest.raises(WriteLockTimeoutError, match=rf"process {puppet.pid} \(stopped\)"):
        open_store(root, gate_timeout_ms=30)
    puppet.go_on()
    puppet.call("release_gate")
    with open_store(root) as store:
        puppet.call("take_gate")
        puppet.stop()
        for _ in range(2):
            named = pytest.raises(WriteLockTimeoutError, match=rf"process {puppet.pid} \(stopped\)")
            with named, store._write_lock.held(timeout_ms=20):
                raise AssertionError("taken")
        puppet.go_on()
        puppet.call("release_gate")
        store.put(prepared([Sample("later", "A")]))
        assert puppet.call("put", name="theirs")[1] == 1
        puppet.call("close")
    assert inspect(root, TINY).problems == []


def test_a_waiter_that_gave_up_does_not_keep_the_gate(root, puppet):
    named = pytest.raises(PuppetError, match=f"WriteLockTimeoutError: .*process {os.getpid()}")
    with open_store(root) as store, store.write_lock(), named:
        puppet.call("open", root=str(root), gate_timeout_ms=30)
    for name in ("one", "two"):
        with open_store(root, gate_timeout_ms=1_000) as store:
            store.put(prepared([Sample(name, "A")]))


def test_a_java_broker_keeps_writers_out_and_is_named(root, puppet):
    assert puppet.call("lock_as_java", root=str(root)) is True
    with pytest.raises(StoreInUseError, match=f"pid {puppet.pid}"):
        open_store(root)
    puppet.call("unlock_as_java")
    with open_store(root) as store:
        assert store.recovery is not None, "a Java broker ran: the page is not right any more"
        assert puppet.call("lock_as_java", root=str(root)) is False
    assert puppet.call("lock_as_java", root=str(root)) is True


def test_a_java_broker_that_fails_to_start_leaves_the_page_alone(root, puppet):
    open_store(root).close()
    with open_store(root):
        assert puppet.call("lock_as_java", root=str(root)) is False
    with open_store(root) as store:
        assert store.recovery is None


def test_a_page_of_a_newer_version_is_refused_unchanged(root):
    open_store(root).close()
    shared = root / "rmqctl" / "shared"
    with shared.open("r+b") as file:
        (magic,) = struct.unpack("<q", file.read(8))
        file.seek(0)
        file.write(struct.pack("<q", magic + 1))
    before = shared.read_bytes()
    with pytest.raises(StoreVersionError, match=f"version {SHARED_STATE_VERSION}"):
        open_store(root)
    assert shared.read_bytes() == before
    assert not (root / "abort").exists()


def test_a_copied_store_is_recovered_because_its_page_is_a_copy(root, puppet, tmp_path):
    puppet.call("open", root=str(root))
    place, offset = puppet.call("put", name="one")
    puppet.kill()
    copy = copy_store(root, tmp_path / "copy")
    with open_store(copy) as store:
        assert store.recovery is not None
    with open_store(root) as store:
        assert store.recovery is None, "the original is as its killed writer left it"
    for place_of_store in (root, copy):
        found = inspect(place_of_store, TINY)
        problems = found.problems + missing(
            found, [Acknowledged(Sample("one", "A"), place, offset)]
        )
        assert problems == []


def test_only_the_first_in_recovers_and_only_the_last_out_removes_abort(root, puppet):
    assert puppet.call("open", root=str(root)) is True
    with Puppet() as second:
        assert second.call("open", root=str(root)) is False
        puppet.call("close")
        assert (root / "abort").exists()
        assert puppet.call("open", root=str(root)) is False
        second.call("close")
        assert (root / "abort").exists()
        puppet.call("close")
        assert not (root / "abort").exists()
        assert second.call("open", root=str(root)) is False
        second.kill()
        assert (root / "abort").exists(), "nobody closed it"
        assert puppet.call("open", root=str(root)) is False
        puppet.call("close")
        assert not (root / "abort").exists()


def test_an_exclusive_opening_keeps_others_out_until_it_closes_or_dies(root, puppet):
    puppet.call("open", root=str(root), exclusive=True)
    puppet.call("put", name="one")
    with pytest.raises(WriteLockTimeoutError, match=f"process {puppet.pid}"):
        open_store(root, gate_timeout_ms=20)
    puppet.call("close")
    open_store(root, gate_timeout_ms=20).close()
    puppet.call("open", root=str(root), exclusive=True)
    puppet.kill()
    with open_store(root, gate_timeout_ms=20) as store:
        assert store.recovery is None
    assert inspect(root, TINY).problems == []


def test_a_forked_child_can_not_use_the_store_and_leaves_the_locks_alone(root):
    assert Slim("tests.support.forks:use_after_fork", root=str(root)).result() == []
    assert inspect(root, TINY).problems == []


def test_a_start_after_a_kill_takes_no_longer_than_others(root):
    def opening(*, after_kill: bool) -> float:
        with Puppet() as writer:
            writer.call("open", root=str(root))
            for number in range(30):
                writer.call("put", name=f"{number}")
            if not after_kill:
                writer.call("close")
        start = time.perf_counter()
        store = open_store(root)
        took = time.perf_counter() - start
        assert store.recovery is None
        store.close()
        return took

    opening(after_kill=False)
    usual = min(opening(after_kill=False) for _ in range(3))
    killed = min(opening(after_kill=True) for _ in range(3))
    assert killed < usual + 0.1


def test_nothing_is_locked_after_the_last_close(root):
    open_store(root).close()
    lock = LockFile(root / "lock")
    assert lock.try_lock(0, 2, exclusive=True)
    lock.close()


def test_the_background_sync_outlives_a_holder_that_keeps_the_gate_too_long(root):
    rounds, written = threading.Semaphore(0), threading.Event()

    def watch(instant: Instant) -> None:
        if instant.kind == "sync" and instant.what.endswith("/checkpoint"):
            written.set()

    config = TINY.with_(flush_interval_commit_log_ms=1, flush_consume_queue_thorough_interval_ms=0)
    fs = WatchedFileSystem(watch)
    with open_store(root) as holder, open_store(root, config, fs=fs, gate_timeout_ms=2) as store:
        store.services.add(rounds.release, interval_ms=0, first_ms=0)
        with holder.write_lock():
            store.start_services()
            for _ in range(3):
                assert rounds.acquire(timeout=10)
            assert not written.is_set()
        assert written.wait(timeout=10), "the thread has ended"


def test_closing_needs_the_gate_so_that_two_closers_never_take_each_other_for_one_that_stays(
    root, puppet
):
    puppet.call("open", root=str(root))
    store = open_store(root, gate_timeout_ms=20)
    puppet.call("take_gate")
    with pytest.raises(WriteLockTimeoutError):
        store.close()
    puppet.call("release_gate")
    puppet.call("close")
    assert not (root / "abort").exists(), "who could not close cleanly is not in any more"
    assert inspect(root, TINY).problems == []
