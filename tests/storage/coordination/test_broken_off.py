"""Ctrl-C or a failed call leaves nothing of wakers, process entries and watches."""

from __future__ import annotations

import errno
import gc
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from storage.coordination import failure_detector, processes as stations_module, waiter, wakeup
from storage.coordination.failure_detector import FailureDetector
from storage.coordination.locks import LockFile
from storage.coordination.processes import ProcessEntries, ProcessEntry
from storage.coordination.shared_state import WAITER_FLAGS, SharedState, Word
from storage.coordination.waiter import Waiter
from storage.coordination.wakeup import BY_SOCKET, Waker, slots_path
from storage.files.fs import FileSystem
from storage.platform import LINUX
from tests.support.broken_off import BROKEN, broken_off, starts_broken_off
from tests.support.compiled import native
from tests.support.examples import one_in
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import TINY, new_store, open_store

PATIENCE_S = 20
# A socket that is lost before it has an owner closes itself, with a warning.
pytestmark = [
    pytest.mark.usefixtures("frozen_objects"),
    pytest.mark.filterwarnings(
        "ignore:unclosed:ResourceWarning",
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
    ),
]


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, not files


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


# -- wakers -----------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s", TINY)


@pytest.fixture
def shared(root: Path) -> Iterator[SharedState]:
    with open_store(root) as store:
        yield store._session.shared


@pytest.fixture
def _sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", None)


def slot_is_free(shared: SharedState) -> bool:
    rival = LockFile(slots_path(shared.path))
    try:
        return rival.try_lock(WAITER_FLAGS)
    finally:
        rival.close()


class _MakesNoFolder(FileSystem):
    def make_dirs(self, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.slow
@pytest.mark.usefixtures("_sockets")
def test_a_bell_that_can_not_be_made_leaves_its_slot_free(
    root: Path, shared: SharedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []
    before = descriptors()
    for number in range(3):
        with pytest.raises(OSError, match="No space left") as caught:
            Waker.take(_MakesNoFolder(), shared, root)
        kept.append(caught.value)
        assert slot_is_free(shared)
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", refuse)
            with pytest.raises(OSError, match="Too many open files") as caught:
                Waker.take(FileSystem(), shared, root)
        kept.append(caught.value)
        assert slot_is_free(shared)
        assert descriptors() == before, f"in round {number}"
    waker = Waker.take(FileSystem(), shared, root)
    assert waker is not None
    waker.close()


@pytest.mark.parametrize("pure", [False, True], ids=["compiled", "pure"])
@pytest.mark.slow
def test_a_bell_whose_making_is_interrupted_leaves_its_slot_free(
    root: Path, shared: SharedState, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr(native, "compiled", None)
    kept: list[BaseException] = []
    taken: list[Waker | None] = []

    def take() -> None:
        try:
            taken.append(Waker.take(FileSystem(), shared, root))
        except BaseException as error:
            kept.append(error)
            raise

    for at in broken_off(take, wakeup):
        assert slot_is_free(shared), f"after an interrupt at instant {at}"
    assert len(kept) > 3
    (waker,) = taken
    assert waker is not None
    waker.close()
    assert slot_is_free(shared)
    kept.clear()
    gc.collect()  # while warnings of a lost socket are ignored


@pytest.mark.slow
@pytest.mark.parametrize("pure", one_in(2, [False, True]), ids=["compiled", "pure"])
def test_a_waiter_whose_closing_is_interrupted_is_closed_anew(
    root: Path, shared: SharedState, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr(native, "compiled", None)
    before = descriptors()

    def with_bell() -> Waiter:
        made = Waiter(shared, root)
        made.wait(shared.words[Word.LOG_END], 1, None)
        assert not slot_is_free(shared)
        return made

    made = [with_bell()]
    for at in broken_off(lambda: made[-1].close(), wakeup, waiter):
        made[-1].close()  # which raises where a descriptor is closed twice
        made[-1].close()
        assert slot_is_free(shared), f"after an interrupt at instant {at}"
        assert descriptors() == before, f"after an interrupt at instant {at}"
        made.append(with_bell())
    assert slot_is_free(shared)
    assert descriptors() == before


@pytest.mark.usefixtures("_sockets")
def test_closing_a_bell_twice_leaves_the_next_owner_of_its_slot_alone(
    root: Path, shared: SharedState
) -> None:
    first = Waker.take(FileSystem(), shared, root)
    assert first is not None
    first.close()
    second = Waker.take(FileSystem(), shared, root)
    assert second is not None
    second.arm(None)
    first.close()
    assert shared.map[WAITER_FLAGS] == BY_SOCKET
    assert (root / "rmqctl" / "bells" / "0").exists()
    second.wake()
    assert second.sleep(1000)
    second.close()


# -- process entries --------------------------------------------------------------------------


@pytest.mark.slow
def test_stations_whose_closing_is_interrupted_are_closed_anew(tmp_path: Path) -> None:
    process_entry = ProcessEntry(ProcessEntries(tmp_path), {})
    before = descriptors()

    def which_ring() -> ProcessEntries:
        made = ProcessEntries(tmp_path)
        made.notify(process_entry.name)
        assert descriptors() == before + (2 if LINUX else 1)
        return made

    made = [which_ring()]
    for at in broken_off(lambda: made[-1].close(), stations_module):
        made[-1].close()  # which raises where a descriptor is closed twice
        assert descriptors() == before, f"after an interrupt at instant {at}"
        made.append(which_ring())
    assert descriptors() == before
    process_entry.close()


@pytest.mark.slow
def test_a_ring_without_a_socket_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = ProcessEntries(tmp_path)
    process_entry = ProcessEntry(processes, {})
    before = descriptors()
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                processes.notify(process_entry.name)
            assert descriptors() == before
    processes.notify(process_entry.name)
    process_entry.sleep()
    processes.close()
    process_entry.close()
    assert descriptors() < before


# -- watches ----------------------------------------------------------------------------------


class _FewDescriptors:
    """``os.open`` that fails for lives in a death watch; ``failed`` when it has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = os.open
        self.failing = True
        self.failed = threading.Event()
        monkeypatch.setattr(os, "open", self)
        monkeypatch.setattr(failure_detector, "RETRY_S", 0.01)

    def __call__(self, path: Any, *arguments: Any, **named: Any) -> int:
        if self.failing and threading.current_thread().name == "failure-detector":
            self.failed.set()
            refuse()
        return self._open(path, *arguments, **named)


@pytest.fixture
def end_of_watches() -> Callable[[], None]:
    """Waits for the threads that watch since the test has begun."""
    before = set(threading.enumerate())

    def wait() -> None:
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    return wait


@needs_linux_forms  # each owner of a lock opens its file
def test_a_death_is_told_though_there_were_no_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_of_watches: Callable[[], None]
) -> None:
    processes = ProcessEntries(tmp_path)
    watched = ProcessEntry(processes, {})
    told = threading.Event()
    few = _FewDescriptors(monkeypatch)
    FailureDetector(processes, "a", told.set).follow([watched.name])
    assert few.failed.wait(PATIENCE_S)
    few.failed.clear()
    assert few.failed.wait(PATIENCE_S), "it is tried again"
    assert not told.is_set()
    few.failing = False
    watched.close()
    assert told.wait(PATIENCE_S)
    end_of_watches()


@needs_linux_forms  # each owner of a lock opens its file
def test_what_can_not_be_watched_is_left_when_it_is_not_asked_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_of_watches: Callable[[], None]
) -> None:
    processes = ProcessEntries(tmp_path)
    watched = ProcessEntry(processes, {})
    few = _FewDescriptors(monkeypatch)
    monkeypatch.setattr(failure_detector, "RETRY_S", 3 * PATIENCE_S)
    told = threading.Event()
    watch = FailureDetector(processes, "a", told.set)
    watch.follow([watched.name])
    assert few.failed.wait(PATIENCE_S)
    watch.close()
    end_of_watches()
    few.failing = False
    FailureDetector(processes, "b", told.set).follow([watched.name])
    assert not told.is_set()
    watched.close()
    assert told.wait(PATIENCE_S)
    end_of_watches()


def test_a_watch_whose_beginning_fails_begins_with_the_next_look(
    tmp_path: Path, broken_starts: Callable[..., Any], end_of_watches: Callable[[], None]
) -> None:
    processes = ProcessEntries(tmp_path)
    watched = ProcessEntry(processes, {})
    told = threading.Event()
    watch = FailureDetector(processes, "a", told.set)
    with broken_starts("failure-detector"), pytest.raises(BROKEN):
        watch.follow([watched.name])
    watch.follow([watched.name])
    watched.close()
    assert told.wait(PATIENCE_S)
    end_of_watches()


def test_a_thread_that_was_not_noted_ends_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end_of_watches: Callable[[], None]
) -> None:
    processes = ProcessEntries(tmp_path)
    watched = ProcessEntry(processes, {})
    with starts_broken_off("failure-detector", runs=True), pytest.raises(BROKEN):
        FailureDetector(processes, "a", lambda: None).follow([watched.name])
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    watched.close()
    end_of_watches()
    assert raised == []
