"""One sync for all waiting threads: covered threads go on, the others get the next one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from storage.append import group_commit
from storage.append.group_commit import GroupCommit
from tests.support.broken_off import broken_off

LONG_S = 30.0


class Device:
    """Syncs when the test says so; ``written`` is what a sync covers that begins now."""

    def __init__(self) -> None:
        self.written = 0
        self.flushed = 0
        self.error: OSError | None = None
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)

    def sync(self) -> None:
        covers = self.written
        self.begun.release()
        assert self.ended.acquire(timeout=LONG_S)
        if self.error is not None:
            raise self.error
        self.flushed = max(self.flushed, covers)


class Thread:
    """A committing thread; ``result`` is its result, or what was raised."""

    def __init__(self, commits: GroupCommit, end: int, timeout: float = LONG_S) -> None:
        self.result: bool | BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(commits, end, timeout))
        self._thread.start()

    def _run(self, commits: GroupCommit, end: int, timeout: float) -> None:
        try:
            self.result = commits.commit(end, timeout)
        except OSError as error:
            self.result = error

    def over(self) -> bool | BaseException | None:
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        return self.result


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread to get somewhere."""
    deadline = threading.Event()
    for _ in range(30_000):
        if condition():
            return
        deadline.wait(0.001)
    raise AssertionError("it never happened")


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def commits(device: Device) -> GroupCommit:
    return GroupCommit(lambda: device.flushed, device.sync)


def test_what_is_on_the_device_needs_no_sync(device: Device, commits: GroupCommit) -> None:
    device.flushed = 10
    assert commits.commit(10, LONG_S)
    assert not device.begun.acquire(blocking=False)


def test_all_whom_a_sync_covers_go_on_while_the_next_one_runs(
    device: Device, commits: GroupCommit
) -> None:
    device.written = 1
    first = Thread(commits, 1)
    assert device.begun.acquire(timeout=LONG_S)
    device.written = 3  # the sync that runs may not cover these
    covered = [Thread(commits, end) for end in (2, 3, 3)]
    until(lambda: len(commits._waiting) == 3)
    device.ended.release()
    assert first.over() is True
    assert device.begun.acquire(timeout=LONG_S)  # one of the three does the next one, up to 3
    device.written = 4
    late = Thread(commits, 4)
    until(lambda: len(commits._waiting) == 3)
    device.ended.release()
    assert [thread.over() for thread in covered] == [True, True, True]
    assert device.begun.acquire(timeout=LONG_S)  # while this one still runs
    device.ended.release()
    assert late.over() is True
    assert not device.begun.acquire(blocking=False)


def test_a_thread_that_was_covered_stays_so_when_a_slower_process_notes_less(
    device: Device,
) -> None:
    waits = threading.local()

    def flushed_to() -> int:
        return 1 if getattr(waits, "here", False) else device.flushed

    commits = GroupCommit(flushed_to, device.sync)
    device.written = 1
    first = Thread(commits, 1)
    assert device.begun.acquire(timeout=LONG_S)
    device.written = 2
    second = Thread(commits, 2)  # it does the next sync
    until(lambda: len(commits._waiting) == 1)
    covered: list[bool] = []

    def wait() -> None:
        waits.here = True
        covered.append(commits.commit(2, LONG_S))

    third = threading.Thread(target=wait)
    third.start()
    until(lambda: len(commits._waiting) == 2)
    device.ended.release()
    assert first.over() is True
    assert device.begun.acquire(timeout=LONG_S)
    device.ended.release()
    assert second.over() is True
    third.join(LONG_S)
    assert covered == [True]
    assert not device.begun.acquire(blocking=False)


def test_no_thread_waits_longer_than_its_timeout(device: Device, commits: GroupCommit) -> None:
    device.written = 1
    first = Thread(commits, 1)
    assert device.begun.acquire(timeout=LONG_S)
    assert Thread(commits, 2, timeout=0.01).over() is False
    assert not commits._waiting
    device.ended.release()
    assert first.over() is True
    assert not device.begun.acquire(blocking=False)  # no thread is left that needs it


def test_each_who_was_not_covered_hears_of_the_failure(
    device: Device, commits: GroupCommit
) -> None:
    device.written, device.error = 1, OSError("gone")
    first = Thread(commits, 1)
    assert device.begun.acquire(timeout=LONG_S)
    others = [Thread(commits, 2), Thread(commits, 2)]
    until(lambda: len(commits._waiting) == 2)
    for _ in range(3):
        device.ended.release()
    assert all(isinstance(thread.over(), OSError) for thread in (first, *others))


class Interrupted(BaseException):
    """What a signal raises."""


def test_who_is_interrupted_when_the_next_sync_is_his_leaves_it_to_the_others(
    device: Device, commits: GroupCommit
) -> None:
    device.written = 1
    first = Thread(commits, 1)
    assert device.begun.acquire(timeout=LONG_S)
    device.written = 3
    others: list[Thread] = []

    def interrupt(*_: object) -> None:
        others.append(Thread(commits, 3))
        until(lambda: len(commits._waiting) == 2)
        device.ended.release()  # of the first, which is followed by this thread
        until(lambda: len(commits._waiting) == 1)
        raise Interrupted

    def wait_and_interrupt() -> None:
        until(lambda: len(commits._waiting) == 1)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        threading.Thread(target=wait_and_interrupt).start()
        with pytest.raises(Interrupted):
            commits.commit(2, LONG_S)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert first.over() is True
    assert device.begun.acquire(timeout=LONG_S)
    device.ended.release()
    assert others[0].over() is True


class Crowd:
    """While the first sync runs others come."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.flushed = 0
        self.come = True
        self.others: list[Thread] = []
        self.commits = GroupCommit(lambda: self.flushed, self._sync)

    def commit(self) -> None:
        self.commits.commit(1, LONG_S)

    def _sync(self) -> None:
        if self.come:
            self.come = False
            self.others = [Thread(self.commits, 2, timeout=0.05) for _ in range(self._count)]
            until(lambda: len(self.commits._waiting) == self._count)
        self.flushed += 1


@pytest.mark.parametrize(("count", "least"), [(0, 6), (2, 11)], ids=["alone", "others wait"])
def test_after_a_signal_at_any_instant_syncs_go_on(count: int, least: int) -> None:
    crowd = Crowd(count)
    instants = 0
    for _ in broken_off(lambda: crowd.commit(), group_commit):  # noqa: B023 - the present one
        crowd.come = False
        for other in crowd.others:
            other.over()
        wanted = crowd.flushed + 1
        assert crowd.commits.commit(wanted, 0.0), "somebody else is thought to sync"
        assert crowd.flushed == wanted
        assert not crowd.commits._waiting
        instants += 1
        crowd = Crowd(count)
    assert instants >= least
    assert all(other.over() for other in crowd.others)
