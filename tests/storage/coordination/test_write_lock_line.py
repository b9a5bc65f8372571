"""Processes that wait for the write lock are woken in turn, and no death stops the others."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from storage.coordination import write_lock, write_lock_line
from storage.coordination.shared_state import Word
from storage.coordination.write_lock import WriteLock
from storage.coordination.write_lock_idle import change_unmapped
from storage.coordination.write_lock_line import line_of_unmapped
from storage.errors import WriteLockTimeoutError
from storage.files.fs import WORD
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY, busy_puppet
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.line import PATIENCE_S, stands_in_line, until
from tests.support.linux_forms import needs_linux_forms
from tests.support.puppet import Puppet
from tests.support.samples import Sample, new_store, open_store, prepared
from tests.support.slim import Slim

pytestmark = [needs_compiled, needs_linux_forms]


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    monkeypatch.setenv("RMQCTL_PURE", "")  # of the processes that a test starts


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = new_store(tmp_path / "s", ROOMY)
    open_store(root, ROOMY).close()
    return root


@pytest.fixture
def opened(root: Path) -> Iterator[Callable[[], MessageStore]]:
    """Opens the store once more: openings of one process exclude one another as processes do."""
    with ExitStack() as stores:
        yield lambda: stores.enter_context(
            open_store(root, ROOMY, gate_timeout_ms=PATIENCE_S * 1000)
        )


@pytest.fixture
def sleeps_until_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process no sleep in the line ends by itself within the time of a test."""
    for pause in ("LONGEST_PAUSE", "_IN_LINE"):
        monkeypatch.setattr(write_lock, pause, 10.0 * PATIENCE_S)


class Waiting:
    """A thread that waits for the write lock of its own opening, and then does something."""

    def __init__(
        self,
        store: MessageStore,
        then: Callable[[], object] = bool,
        *,
        turn: bool = False,
        rest_of_turn: float = 0.0,
    ) -> None:
        self._lock = store._write_lock
        self._then = then
        self._lock._rest_of_turn = rest_of_turn
        if turn:  # as one that has put many, and has just released the lock
            self._lock._quick = 100
            self._lock._released_at = time.monotonic() + PATIENCE_S
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until(lambda: stands_in_line(os.getpid(), self._thread.native_id), "in line")

    def _run(self) -> None:
        with self._lock.held():
            self._then()

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it still waits"


@pytest.mark.usefixtures("sleeps_until_woken")
@pytest.mark.parametrize("turn", [False, True], ids=["once", "turn"])
def test_who_waits_is_woken_by_the_release(
    opened: Callable[[], MessageStore], *, turn: bool
) -> None:
    holder, other = opened(), opened()
    with holder.write_lock():
        waiting = Waiting(other, turn=turn)
    waiting.join()


@pytest.mark.usefixtures("sleeps_until_woken")
@pytest.mark.parametrize("turn", [False, True], ids=["once", "turn"])
def test_the_one_that_has_waited_longest_is_woken_first(
    opened: Callable[[], MessageStore], *, turn: bool
) -> None:
    holder, others = opened(), [opened() for _ in range(6)]
    order: list[int] = []
    with holder.write_lock():
        waiting = [
            Waiting(other, partial(order.append, number), turn=turn)
            for number, other in enumerate(others)
        ]
    for one in waiting:
        one.join()
    assert order == list(range(6))


@pytest.mark.usefixtures("sleeps_until_woken")
def test_one_that_wants_the_lock_once_goes_before_those_that_wait_for_turns(
    opened: Callable[[], MessageStore],
) -> None:
    holder, others = opened(), [opened() for _ in range(3)]
    order: list[str] = []
    with holder.write_lock():
        first = Waiting(others[0], lambda: order.append("turn"), turn=True)
        second = Waiting(others[1], lambda: order.append("turn"), turn=True)
        third = Waiting(others[2], lambda: order.append("once"))
    for one in (first, second, third):
        one.join()
    assert order == ["once", "turn", "turn"]


@pytest.mark.usefixtures("sleeps_until_woken")
def test_an_interrupted_turn_goes_on_after_all_that_use_the_lock_once(
    opened: Callable[[], MessageStore],
) -> None:
    """However long it has waited, else interrupted turns would interrupt each other, and the one
    that uses the lock once would wait for all of them."""
    holder, others = opened(), [opened() for _ in range(4)]
    order: list[str] = []
    note = {name: partial(order.append, name) for name in ("turn", "interrupted", "once")}
    with holder.write_lock():
        turn = Waiting(others[0], note["turn"], turn=True)
        interrupted = Waiting(others[1], note["interrupted"], turn=True, rest_of_turn=1e-9)
        once = [Waiting(others[2], note["once"]), Waiting(others[3], note["once"])]
    for one in (turn, interrupted, *once):
        one.join()
    assert order == ["once", "once", "interrupted", "turn"]


def is_over(lock: WriteLock) -> bool:
    lock.give_back()
    return not lock.biased


def test_a_turn_goes_on_though_one_that_waits_for_a_turn_asks(
    opened: Callable[[], MessageStore],
) -> None:
    holder, other = opened(), opened()
    lock = holder._write_lock
    with lock.held():  # so that the thread that looks for idleness does not release it
        lock._bias(time.monotonic() + 10 * PATIENCE_S)
        waiting = Waiting(other, turn=True)
        lock.give_back()
        assert lock.biased
        lock._turn_end = 0.0
        lock.give_back()
        assert lock.biased, "it reads no clock before the next one asks"
        until(lambda: is_over(lock), "over")
        assert lock._rest_of_turn == 0
    waiting.join()


@pytest.mark.usefixtures("sleeps_until_woken")
def test_a_request_to_use_it_once_interrupts_a_turn(
    opened: Callable[[], MessageStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the turn comes next, before that of another process."""
    holder, other, third = opened(), opened(), opened()
    lock = holder._write_lock
    here = threading.get_native_id()

    def use_once() -> None:
        order.append("once")
        until(lambda: stands_in_line(os.getpid(), here), "in line")

    order: list[str] = []
    with lock.held():
        lock._bias(time.monotonic() + 10 * PATIENCE_S)
        waiting = Waiting(other, lambda: order.append("turn"), turn=True)
        once = Waiting(third, use_once)
        assert is_over(lock)
    with monkeypatch.context() as patched:
        patched.setattr(write_lock, "_LEFT_FREE", PATIENCE_S)  # however late the other one runs
        with lock.held():
            order.append("rest")
            assert lock.biased
            assert lock._turn_end > time.monotonic() + PATIENCE_S
            lock._turn_end = 0.0
            change_unmapped(holder.root, Word.LOCK_WANTED)
            assert is_over(lock)
    once.join()
    waiting.join()
    assert order == ["once", "rest", "turn"]


@pytest.mark.usefixtures("sleeps_until_woken")
def test_the_releasing_process_lets_the_woken_one_go_first(
    opened: Callable[[], MessageStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would have the lock again before the other one runs. One that is awake for a
    moment, because it has slept long enough, is not woken and has no such right."""
    holder, other = opened(), opened()
    order: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(write_lock, "_LEFT_FREE", PATIENCE_S)  # however late the other one runs
        patched.setattr(write_lock, "_QUICK_FOR_TURN", 1 << 30)  # a turn would go on
        for number in range(20):
            with holder.write_lock():
                waiting = Waiting(other, lambda: order.append("other"))
            with holder.write_lock():
                order.append("holder")
            waiting.join()
            assert order == ["other", "holder"] * (number + 1)


@pytest.mark.usefixtures("sleeps_until_woken")
def test_an_opener_stands_in_line_without_the_shared_state(
    root: Path, opened: Callable[[], MessageStore]
) -> None:
    holder = opened()
    came: list[MessageStore] = []
    with holder.write_lock():
        opener = threading.Thread(target=lambda: came.append(opened()))
        opener.start()
        until(lambda: stands_in_line(os.getpid(), opener.native_id), "in line")
    opener.join(PATIENCE_S)
    assert len(came) == 1


def test_there_is_no_line_without_a_shared_state_of_this_version(root: Path) -> None:
    assert line_of_unmapped(root) is not None
    shared = root / "rmqctl" / "shared"
    content = shared.read_bytes()
    for damaged in (bytes(8) + content[8:], content[:4096], b""):
        shared.write_bytes(damaged)
        assert line_of_unmapped(root) is None
    shared.unlink()
    assert line_of_unmapped(root) is None


@pytest.mark.parametrize("form", ["compiled", "pure"])
def test_waking_one_wakes_the_one_that_has_slept_longest(
    form: str, opened: Callable[[], MessageStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = opened()._shared
    sleep = write_lock_line.sleep_on_word
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    order: list[int] = []
    threads = []
    seen = shared.words[Word.LINE_TURNS]
    for number in range(3):

        def doze(number: int = number) -> None:
            assert sleep(shared.map, WORD * Word.LINE_TURNS, seen, PATIENCE_S * 1_000_000)
            order.append(number)

        threads.append(threading.Thread(target=doze))
        threads[-1].start()
        until(lambda: stands_in_line(os.getpid(), threads[-1].native_id), "in line")
    for thread in threads:
        assert write_lock_line.wake_one(shared.map, WORD * Word.LINE_TURNS) == 1
        thread.join(PATIENCE_S)
    assert order == [0, 1, 2]
    assert write_lock_line.wake_one(shared.map, WORD * Word.LINE_TURNS) == 0
    assert shared.words[Word.LINE_TURNS] == seen + 4
    assert not sleep(shared.map, WORD * Word.LINE_TURNS, seen + 4, 1_000), "its time was over"
    assert sleep(shared.map, WORD * Word.LINE_TURNS, seen + 3, PATIENCE_S * 1_000_000), (
        "it was woken"
    )


@pytest.mark.parametrize("at", [-8, 4, 1 << 40])
def test_only_words_of_the_shared_state_are_slept_on(
    at: int, opened: Callable[[], MessageStore]
) -> None:
    shared = opened()._shared
    with pytest.raises(ValueError, match="no word"):
        write_lock_line.wake_one(shared.map, at)
    with pytest.raises(ValueError, match="no word"):
        write_lock_line.sleep_on_word(shared.map, at, 0, 1)


# -- deaths and stops --------------------------------------------------------------------------


def test_the_death_of_a_holder_lets_the_next_one_in(
    root: Path, opened: Callable[[], MessageStore]
) -> None:
    stores = [opened() for _ in range(4)]
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        puppet.call("take_gate")
        waiting = [Waiting(store, turn=bool(n % 2)) for n, store in enumerate(stores)]
        puppet.kill()
        for one in waiting:
            one.join()


@pytest.mark.slow
def test_a_process_killed_between_releasing_the_lock_and_waking_the_next_one(root: Path) -> None:
    found = Slim("tests.support.line_deaths:killed_before_waking", root=str(root)).result()
    assert found == {"killed": True, "waited": True}


@pytest.mark.slow
def test_a_process_killed_or_stopped_when_it_was_woken(root: Path) -> None:
    for end in (signal.SIGKILL, signal.SIGSTOP):
        found = Slim(
            "tests.support.line_deaths:ended_when_woken", root=str(root), end=int(end)
        ).result()
        assert found == {"woken": True, "waited": True}


@pytest.mark.usefixtures("sleeps_until_woken")
def test_a_stopped_process_is_not_woken(root: Path, opened: Callable[[], MessageStore]) -> None:
    """The kernel has taken it out of the line, and puts it back at the end when it goes on."""
    holder, other = opened(), opened()
    with Puppet() as puppet:
        puppet.call("open", root=str(root))
        with holder.write_lock():
            puppet.send("take_gate")
            until(lambda: stands_in_line(puppet.pid, puppet.pid), "in line")
            puppet.stop()
            waiting = Waiting(other)
        waiting.join()
        puppet.go_on()
        assert puppet.receive() is None
        puppet.call("release_gate")


def test_a_stopped_holder_is_waited_for_as_long_as_the_limit_says(
    root: Path, opened: Callable[[], MessageStore]
) -> None:
    with Puppet() as puppet, open_store(root, ROOMY, gate_timeout_ms=300) as store:
        puppet.call("open", root=str(root))
        puppet.call("take_gate")
        puppet.stop()
        began = time.monotonic()
        with pytest.raises(WriteLockTimeoutError, match=rf"process {puppet.pid} \(stopped\)"):
            store.put(prepared([Sample("a", "A")]))
        assert time.monotonic() - began >= 0.3
        puppet.go_on()
        puppet.call("release_gate")
        store.put(prepared([Sample("a", "A")]))


# -- many at once ------------------------------------------------------------------------------


@pytest.mark.slow
def test_openers_and_changes_of_settings_come_in_beside_several_busy_holders(root: Path) -> None:
    with ExitStack() as puppets:
        busy = [puppets.enter_context(busy_puppet()) for _ in range(3)]
        for puppet in busy:
            puppet.call("open", root=str(root))
        for puppet in busy:
            puppet.call("begin")
        for number in range(20):
            with open_store(root, ROOMY) as store:
                store.put(prepared([Sample(f"m{number}", "A")]))
        assert all(puppet.call("end") > 20 for puppet in busy)
        for puppet in busy:
            puppet.call("close")
    assert not (root / "abort").exists()
