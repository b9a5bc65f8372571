"""A put after a while: the compiled form takes and releases the write lock for it, in one step."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from storage.config import FlushDiskType
from storage.coordination.locks import LockFile
from storage.coordination.shared_state import Word
from storage.coordination.write_lock import WRITE_LOCK_BYTE, WriteLock
from storage.coordination.write_lock_idle import change_unmapped
from storage.errors import StoreBrokenError
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import SMALL, Sample, new_store, open_store
from tests.support.woken import is_rung_by

ROOMY = SMALL.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=20 * 4000)
SYNCED = ROOMY.with_(flush_disk_type=FlushDiskType.SYNC_FLUSH)
EACH = 300
PUTTER = f"""
import sys, time
from pathlib import Path
from tests.storage.append import test_lone_puts
from tests.storage.append.test_lone_puts import wait_a_while
from tests.support.samples import Sample, open_store

with open_store(Path(sys.argv[1]), getattr(test_lone_puts, sys.argv[3])) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range({EACH}):
        wait_a_while(store)
        result = store.put_message(Sample(f"{{sys.argv[2]}}-{{number}}", "T").inner())
        print(result.commitlog_offsets[0], result.queue_offsets[0])
"""
pytestmark = [needs_compiled, needs_linux_forms]


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "store", ROOMY)


@pytest.fixture
def store(root: Path) -> Iterator[MessageStore]:
    with open_store(root, ROOMY) as opened:
        for number in range(4):  # what they make and learn is the pure form's affair
            opened.put_message(Sample(f"{number}", "T").inner())
        yield opened


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[MessageStore]:
    with open_store(new_store(tmp_path / "synced", SYNCED), SYNCED) as opened:
        for number in range(4):
            opened.put_message(Sample(f"{number}", "T").inner())
        yield opened


def wait_a_while(store: MessageStore) -> None:
    """Wait as long as makes the next put no run of puts."""
    deadline = time.monotonic() + 0.05  # the lock shows nothing while a process keeps it
    while time.monotonic() <= min(store._write_lock.uncontended_after, deadline):
        pass


def put_alone(store: MessageStore, name: str) -> bool:
    """Whether the compiled form alone puts it."""
    assert store._put_alone is not None
    return store._put_alone(Sample(name, "T").inner()) is not None


def test_it_takes_the_gate_and_gives_it_back(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(WriteLock, "take", lambda *_: taken.append("taken"))
    wait_a_while(store)
    assert not store._write_lock.holding
    assert put_alone(store, "a")
    assert taken == []
    assert store._shared.words[Word.HOLDER_PID] == 0
    rival = LockFile(store.root / "lock")
    assert rival.try_lock(WRITE_LOCK_BYTE)
    rival.close()


def test_puts_one_after_the_other_are_left_to_who_notes_them(store: MessageStore) -> None:
    wait_a_while(store)
    assert put_alone(store, "a")
    store._write_lock.uncontended_after += 60  # as if no time had passed since
    assert not put_alone(store, "b")


def test_it_does_not_wait_for_a_lock_that_is_held(store: MessageStore) -> None:
    rival = LockFile(store.root / "lock")
    assert rival.try_lock(WRITE_LOCK_BYTE)
    wait_a_while(store)
    end = store.log_end
    assert not put_alone(store, "a")
    assert store.log_end == end
    assert store._shared.words[Word.HOLDER_PID] == 0
    rival.close()
    assert put_alone(store, "a")


def test_who_asks_is_heard_first(store: MessageStore) -> None:
    wait_a_while(store)
    change_unmapped(store.root, Word.LOCK_WANTED)
    assert not put_alone(store, "a")
    store.put_message(Sample("a", "T").inner())
    wait_a_while(store)
    assert put_alone(store, "b")


def test_a_thread_that_has_the_turn_is_waited_for(store: MessageStore) -> None:
    wait_a_while(store)
    with store._write_lock.thread_mutex:
        assert not put_alone(store, "a")
    assert put_alone(store, "a")


def test_who_was_greedy_leaves_the_gate_free(store: MessageStore) -> None:
    wait_a_while(store)
    store._write_lock._contended_time = (
        1.0  # as the last of many puts that others asked in between leaves it
    )
    with store._write_lock.thread_mutex:
        store._write_lock._release(time.monotonic())
    assert store._write_lock.uncontended_after == float("inf")
    store.put_message(Sample("a", "T").inner())
    wait_a_while(store)
    assert put_alone(store, "b")


def test_nothing_is_put_behind_the_last_turn(root: Path) -> None:
    write_lock = WriteLock(root, root / "lock", timeout_ms=10)
    with write_lock.held():
        pass
    assert write_lock.uncontended_after < float("inf")
    with write_lock.held():
        write_lock.shut()
    assert write_lock.uncontended_after == float("inf")
    write_lock.close()


def test_who_waits_for_a_message_is_rung(store: MessageStore) -> None:
    def put() -> bool:
        wait_a_while(store)
        return put_alone(store, "a")

    assert is_rung_by(store, put)


def test_where_each_is_synced_each_is_a_lone_one(
    synced: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(WriteLock, "take", lambda *_: taken.append("taken"))
    for number in range(100):
        result = synced.put_message(Sample(f"{number}", "T").inner())
        assert result.queue_offsets == (4 + number,)
        assert synced._shared.words[Word.FLUSHED_TO] == synced.log_end
    assert taken == []


def test_who_waits_hears_of_it_after_its_sync(
    synced: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[bool] = []
    notify = synced._ringer.wake_for

    def note(topic: str) -> None:
        flushed.append(synced._shared.words[Word.FLUSHED_TO] == synced.log_end)
        notify(topic)

    monkeypatch.setattr(synced._ringer, "wake_for", note)
    assert is_rung_by(synced, lambda: synced.put_message(Sample("a", "T").inner()))
    assert flushed == [True]


def test_a_write_that_fails_is_one_clear_error_and_loses_nothing(synced: MessageStore) -> None:
    root, whole = synced.root, resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_store(root, SYNCED) as other:
        resource.setrlimit(resource.RLIMIT_FSIZE, (synced.log_end + 50, whole[1]))
        try:
            with pytest.raises(StoreBrokenError, match="File too large"):
                synced.put_message(Sample("half of it", "T").inner())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, whole)
        with pytest.raises(StoreBrokenError):
            synced.put_message(Sample("not tried", "T").inner())
        assert other.put_message(Sample("4", "T").inner()).queue_offsets == (4,)
    with StoreView.open(root) as view:
        assert fsck(view).healthy


@pytest.mark.slow
@pytest.mark.parametrize("config", ["ROOMY", "SYNCED"])
def test_processes_that_put_at_the_same_time_get_places_of_their_own(
    tmp_path: Path, config: str
) -> None:
    root = new_store(tmp_path / "store", globals()[config])
    with ExitStack() as stack:
        putters = [stack.enter_context(_putter(root, name, config)) for name in ("a", "b")]
        for process in putters:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in putters:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=60)[0] for process in putters]
    places = [tuple(map(int, line.split())) for text in said for line in text.splitlines()]
    assert sorted(offset for _, offset in places) == list(range(2 * EACH))
    assert [offset for _, offset in sorted(places)] == list(range(2 * EACH))
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 2 * EACH
        assert fsck(view).findings == []


def _putter(root: Path, name: str, config: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PUTTER, root, name, config],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
