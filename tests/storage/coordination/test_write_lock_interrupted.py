"""The write lock is released whatever comes: signals, closings, no more threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from math import inf
from pathlib import Path

import pytest

from storage.coordination.locks import LockFile
from storage.coordination.write_lock import WRITE_LOCK_BYTE
from storage.errors import StoreClosedError, WriteLockTimeoutError
from storage.files.fs import FileSystem
from storage.format.names import ABORT
from tests.support.busy_puppet import ROOMY
from tests.support.crash import fast_folder, inspect
from tests.support.samples import SMALL, Sample, new_store, open_store
from tests.support.slim import Slim


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s", ROOMY)


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [False, True], ids=["shared", "exclusive"])
@pytest.mark.parametrize("several", [False, True], ids=["singles", "batches"])
def test_a_put_after_an_interrupted_one_goes_as_ever(exclusive: bool, several: bool) -> None:
    with fast_folder() as folder:
        found = Slim(
            "tests.support.interrupts:interrupt_puts",
            folder=str(folder),
            seed=1,
            rounds=300,
            exclusive=exclusive,
            several=several,
        ).result()
    assert found["failures"] == []
    assert found["puts"] > 300


class _InterruptsBehindAClosing(FileSystem):
    """Raises Ctrl-C in this thread right after the closing of a file, on request."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.left: int | None = None

    def close(self, fd: int) -> None:
        super().close(fd)  # which raises where it is closed twice
        if self.left is not None and threading.get_ident() == self._thread:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise KeyboardInterrupt


@pytest.mark.parametrize("number", range(24))
def test_no_file_is_closed_twice_when_ctrl_c_comes_behind_its_closing(
    tmp_path: Path, number: int
) -> None:
    """By then its number may be that of another file."""
    root = new_store(tmp_path / "s", SMALL)
    fs = _InterruptsBehindAClosing()
    store = open_store(root, SMALL, fs=fs)

    numbers = count()

    def put(most: float = inf) -> None:
        while most > 0:
            most, each = most - 1, next(numbers)
            store.put_message(Sample(f"m{each}", "T", keys=(f"k{each}",)).inner())

    fs.left = number
    with pytest.raises(KeyboardInterrupt):
        put()
    put(300)
    store.close()
    assert inspect(root, SMALL).problems == []


@pytest.mark.parametrize("exclusive", [False, True], ids=["shared", "exclusive"])
def test_a_thread_that_comes_late_does_not_put_into_a_closed_store(
    root: Path, exclusive: bool
) -> None:
    store = open_store(root, ROOMY, exclusive=exclusive)
    store.put_message(Sample("m", "T").inner())
    write_lock = store._write_lock
    store.close()
    with pytest.raises(StoreClosedError), write_lock.held():
        raise AssertionError("taken")
    assert not write_lock.holding, "which lets put_message pass"


class _TellsWhenIn(FileSystem):
    """Calls ``then`` once, when an opener has opened and is about to release the lock."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then: Callable[[], None] | None = then
        self._announced = False

    def touch(self, path: Path) -> None:
        super().touch(path)
        self._announced = path.name == ABORT

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        if self._announced and self._then is not None:
            self._then()
            self._then = None


def test_an_exclusive_opening_that_gets_no_gate_leaves_nothing_behind(root: Path) -> None:
    """Another process gets the lock between opening and keeping it, sooner or later."""
    rival = LockFile(root / "lock")
    missed = 0
    deadline = time.monotonic() + 30
    while not missed:
        assert time.monotonic() < deadline
        waiter = threading.Thread(target=rival.lock, args=(WRITE_LOCK_BYTE,))
        fs = _TellsWhenIn(waiter.start)
        try:
            open_store(root, ROOMY, fs=fs, exclusive=True, gate_timeout_ms=30).close()
        except WriteLockTimeoutError:
            missed += 1
        waiter.join()
        assert rival.try_lock(0), "nobody is in who has not opened it"
        rival.unlock(0, 2)
    rival.close()
    with open_store(root, ROOMY, exclusive=True) as store:
        store.put_message(Sample("m", "T").inner())


def test_without_another_thread_puts_go_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of the interpreter, or at the system's limit."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with open_store(root, ROOMY) as store:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            for number in range(100):
                assert store.put_message(Sample(f"m{number}", "T").inner()).queue_offsets == (
                    number,
                )
                assert not store._write_lock.biased
        services = [store._flush_service.started]
        store.put_message(Sample("later", "T").inner())
        services.append(store._flush_service.started)
        assert services == [False, True], "tried again"
    assert inspect(root, ROOMY).problems == []
