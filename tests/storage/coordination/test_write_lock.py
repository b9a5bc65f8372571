"""Only a process that puts one message after the other keeps the write lock."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.coordination.config_lock import config_lock
from storage.coordination.locks import LockFile
from storage.coordination.shared_state import (
    SHARED_STATE_MAGIC,
    SHARED_STATE_NAME,
    SharedState,
    Word,
)
from storage.coordination.write_lock import LONGEST_PAUSE, WRITE_LOCK_BYTE, WriteLock
from storage.coordination.write_lock_idle import change_unmapped
from storage.errors import WriteLockTimeoutError
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY, busy_puppet
from tests.support.crash import fast_folder, inspect
from tests.support.samples import Sample, new_store, open_store, prepared, sync_flush
from tests.support.slim import Slim

WATCH = "write-lock-idle"
holding_on = pytest.mark.skipif(
    os.uname().machine not in {"x86_64", "i686"},
    reason="needs an x86 processor: others let go of the gate after each put",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s", ROOMY)


@pytest.fixture
def rival(root: Path) -> Iterator[LockFile]:
    """Another descriptor of the lock file, which does not request the write lock."""
    open_store(root, ROOMY).close()
    lock = LockFile(root / "lock")
    yield lock
    lock.close()


def put(store: MessageStore, name: str = "m") -> None:
    store.put(prepared([Sample(name, "A")]))


def until(found: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 30
    while not found():
        assert time.monotonic() < deadline, f"30 s later: not {what}"


def put_until_held_on(store: MessageStore) -> None:
    def put_and_look() -> bool:
        put(store)
        return store._write_lock.biased

    until(put_and_look, "held on to")


def free(rival: LockFile) -> bool:
    """Whether the write lock is free."""
    taken = rival.try_lock(WRITE_LOCK_BYTE)
    if taken:
        rival.unlock(WRITE_LOCK_BYTE)
    return taken


def switches(tid: int | None) -> int:
    """How often the thread has gone to sleep."""
    status = Path(f"/proc/self/task/{tid}/status").read_text()
    return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])


def watches() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == WATCH]


def test_one_put_lets_go_at_once_and_starts_no_thread(root: Path, rival: LockFile) -> None:
    with open_store(root, ROOMY) as store:
        for _ in range(3):
            put(store)
            assert free(rival)
        assert watches() == []


def test_puts_now_and_then_never_hold_on(root: Path) -> None:
    with open_store(root, ROOMY) as store:
        for _ in range(40):
            put(store)
            assert not store._write_lock.biased
            time.sleep(0.002)  # what makes it now and then
        assert watches() == []


def test_a_store_that_syncs_each_put_never_holds_on() -> None:
    with fast_folder() as folder:  # where a sync takes no time
        root = new_store(folder / "s", ROOMY)
        with open_store(root, sync_flush(ROOMY)) as store:
            for _ in range(100):
                put(store)
                assert not store._write_lock.biased


@holding_on
def test_an_idle_holder_lets_go_and_its_thread_sleeps(root: Path, rival: LockFile) -> None:
    with open_store(root, ROOMY) as store:
        for _ in range(3):
            put_until_held_on(store)
            until(lambda: free(rival), "free")
            assert not store._write_lock.biased
        assert len(watches()) == 1
        tid = watches()[0].native_id

        def sleeps() -> bool:
            before = switches(tid)
            time.sleep(0.05)  # a poll every few milliseconds would come in this time
            return switches(tid) == before

        until(sleeps, "asleep")


@holding_on
def test_who_asks_gets_the_gate_from_a_busy_holder_after_one_put(
    root: Path, rival: LockFile
) -> None:
    with open_store(root, ROOMY) as store:
        put_until_held_on(store)
        asked = time.monotonic()
        change_unmapped(root, Word.LOCK_WANTED)
        put(store)
        assert free(rival)
        while time.monotonic() < asked + 0.1:
            put(store)
            biased = store._write_lock.biased
            assert not biased or time.monotonic() > asked + 0.2, "not again for a while"


@pytest.mark.slow
@holding_on
def test_others_come_in_put_and_change_settings_beside_a_busy_holder(root: Path) -> None:
    with busy_puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("begin")
        for number in range(20):
            with open_store(root, ROOMY) as store:
                put(store, f"m{number}")
                with store.write_lock():
                    pass
                store.flush()
            with config_lock(root):
                pass
        assert puppet.call("end") > 20
        puppet.call("close")
    assert not (root / "abort").exists()


@holding_on
@pytest.mark.slow
def test_a_second_opening_in_the_same_thread_gets_its_turn(root: Path) -> None:
    with open_store(root, ROOMY) as first, open_store(root, ROOMY) as second:
        put_until_held_on(first)
        put(second)
        put_until_held_on(first)
        put_until_held_on(second)


@holding_on
def test_closing_while_held_on_leaves_no_lock_and_no_thread(root: Path, rival: LockFile) -> None:
    store = open_store(root, ROOMY)
    put_until_held_on(store)
    store.close()
    assert watches() == []
    assert rival.try_lock(0, 2)
    assert not (root / "abort").exists()


@holding_on
def test_closing_while_another_is_in_gives_the_gate_to_it(root: Path) -> None:
    with open_store(root, ROOMY, gate_timeout_ms=30_000) as stays:
        for _ in range(5):
            store = open_store(root, ROOMY)
            put_until_held_on(store)
            store.close()
            put(stays)
        assert (root / "abort").exists()


@holding_on
def test_threads_of_one_process_share_what_is_held_on_to(root: Path) -> None:
    with open_store(root, ROOMY) as store:
        put_until_held_on(store)

        def put_many() -> None:
            for _ in range(300):
                put(store)

        threads = [threading.Thread(target=put_many) for _ in range(4)]
        before = store.view.max_offset_in_queue("A", 0)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert store.view.max_offset_in_queue("A", 0) == before + 1200


@pytest.mark.slow
@holding_on
def test_who_had_to_wait_keeps_the_gate_for_a_turn_though_others_ask(
    root: Path, rival: LockFile
) -> None:
    """One of two that put without a pause; it gets the lock by waiting sooner or later."""
    with busy_puppet() as puppet, open_store(root, ROOMY) as store:
        puppet.call("open", root=str(root))
        puppet.call("begin")

        def kept_though_asked() -> bool:
            put(store)
            if not store._write_lock.biased:
                return False
            change_unmapped(root, Word.LOCK_WANTED)
            put(store)
            return store._write_lock.biased

        until(kept_though_asked, "kept for a turn")
        puppet.call("end")
        until(lambda: free(rival), "free")
        puppet.call("close")


@pytest.mark.slow
@holding_on
def test_a_stopped_holder_is_named_and_a_killed_one_is_forgotten(
    root: Path, rival: LockFile
) -> None:
    with busy_puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("begin")

        def stopped_with_the_gate() -> bool:
            puppet.stop()
            if not free(rival):
                return True
            puppet.go_on()
            return False

        until(stopped_with_the_gate, "stopped with the gate")
        with pytest.raises(WriteLockTimeoutError, match=rf"process {puppet.pid} \(stopped\)"):
            open_store(root, ROOMY, gate_timeout_ms=20)
        puppet.kill()
        with open_store(root, ROOMY) as store:
            assert store.recovery is None
            put(store)


@pytest.mark.slow
@holding_on
def test_a_forked_child_does_not_take_the_gate_along(root: Path) -> None:
    assert Slim("tests.support.forks:fork_while_held_on", root=str(root)).result() == []
    assert inspect(root, ROOMY).problems == []


def test_asking_changes_nothing_where_there_is_no_page_of_ours(tmp_path: Path) -> None:
    change_unmapped(tmp_path, Word.LOCK_WANTED)
    assert list(tmp_path.iterdir()) == []
    shared = tmp_path / "rmqctl" / SHARED_STATE_NAME
    shared.parent.mkdir()
    newer = (SHARED_STATE_MAGIC + 1).to_bytes(8, "little") + bytes(4096)
    shared.write_bytes(newer)
    change_unmapped(tmp_path, Word.LOCK_WANTED)
    assert shared.read_bytes() == newer


def test_every_asking_changes_the_word(root: Path) -> None:
    open_store(root, ROOMY).close()
    shared = SharedState(FileSystem(), root, writable=False)
    seen = set()
    for _ in range(10):
        change_unmapped(root, Word.LOCK_WANTED)
        seen.add(shared.words[Word.LOCK_WANTED])
    shared.close()
    assert len(seen) == 10


def test_a_gate_that_was_not_had_can_be_asked_for_again(root: Path, rival: LockFile) -> None:
    write_lock = WriteLock(root, root / "lock", timeout_ms=10)
    assert rival.try_lock(WRITE_LOCK_BYTE)
    for _ in range(2):
        with pytest.raises(WriteLockTimeoutError), write_lock.held():
            raise AssertionError("taken")
    rival.unlock(WRITE_LOCK_BYTE)
    with write_lock.held():
        assert not free(rival)
    assert free(rival)
    write_lock.close()


def test_the_lock_file_is_closed_in_no_other_thread_s_turn(root: Path) -> None:
    write_lock = WriteLock(root, root / "lock", timeout_ms=60_000)
    in_turn: list[bool] = []

    class Noted(LockFile):
        def close(self) -> None:
            in_turn.append(write_lock.thread_mutex.locked())
            super().close()

    write_lock.lock_file.close()
    write_lock.lock_file = Noted(root / "lock")
    write_lock.close()
    assert in_turn == [True]
    assert not write_lock.thread_mutex.locked()


def test_a_thread_that_keeps_the_turn_does_not_prevent_closing(root: Path) -> None:
    write_lock = WriteLock(root, root / "lock", timeout_ms=10)
    with write_lock.thread_mutex:
        write_lock.close()
    assert write_lock.lock_file.fd == -1


def test_who_has_had_the_gate_long_while_others_asked_leaves_it_free(root: Path) -> None:
    with open_store(root, ROOMY) as store:
        with store.write_lock():
            start = time.monotonic()
            change_unmapped(root, Word.LOCK_WANTED)
            until(lambda: time.monotonic() > start + 0.03, "30 ms later")
            before = time.monotonic()
        with store.write_lock():
            assert time.monotonic() - before > LONGEST_PAUSE


def test_a_time_limit_beyond_all_waits_is_none(root: Path) -> None:
    write_lock = WriteLock(root, root / "lock", timeout_ms=sys.maxsize)
    with write_lock.held():
        pass
    write_lock.close()
