"""client.timing: what is due runs, in order, and nothing else."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

from client import timing
from client.timing import ThreadScheduler
from tests.support.consumers import eventually
from tests.support.manual_time import ManualClock, ManualScheduler

pytestmark = pytest.mark.timeout(30)


@contextmanager
def time_stands_still() -> Iterator[None]:
    """However long the test is kept waiting, for timers it is one moment."""
    now = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "time", SimpleNamespace(monotonic=lambda: now))
        yield


def test_actions_run_in_the_order_of_their_times() -> None:
    scheduler = ThreadScheduler("timers")
    ran: list[str] = []
    done = threading.Event()
    with time_stands_still():
        scheduler.call_later(40, done.set)
        scheduler.call_later(20, lambda: ran.append("second"))
        scheduler.call_later(1, lambda: ran.append("first"))
    assert done.wait(10)
    assert ran == ["first", "second"]
    scheduler.shutdown()


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_failing_action_is_logged_and_stops_neither_itself_nor_others(
    caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    scheduler = ThreadScheduler("timers")
    twice = threading.Semaphore(0)

    def fail() -> None:
        twice.release()
        raise error("broken")

    scheduler.call_every(0, 1, fail)
    assert twice.acquire(timeout=10)
    assert twice.acquire(timeout=10)
    scheduler.shutdown()
    assert "a timer failed" in caplog.text


def test_nothing_runs_after_a_cancel_or_a_shutdown() -> None:
    scheduler = ThreadScheduler("timers that end")
    ran: list[str] = []
    after = threading.Event()
    with time_stands_still():
        scheduler.call_later(5, lambda: ran.append("cancelled")).cancel()
        scheduler.call_later(10, after.set)
    assert after.wait(10)
    scheduler.shutdown()
    scheduler.call_later(0, lambda: ran.append("too late"))
    assert ran == []
    eventually(lambda: not any(it.name == "timers that end" for it in threading.enumerate()))


def test_no_thread_is_started_before_the_first_use() -> None:
    ThreadScheduler("unused timers")
    assert not any(thread.name == "unused timers" for thread in threading.enumerate())


def test_the_manual_scheduler_stands_at_each_timers_own_time() -> None:
    clock = ManualClock(1000)
    scheduler = ManualScheduler(clock)
    seen: list[tuple[str, int]] = []
    scheduler.call_every(10, 20, lambda: seen.append(("tick", clock.now_ms())))
    scheduler.call_later(
        30, lambda: scheduler.call_later(5, lambda: seen.append(("x", clock.now_ms())))
    )
    scheduler.advance(50)
    assert seen == [("tick", 1010), ("tick", 1030), ("x", 1035), ("tick", 1050)]
    assert clock.now_ms() == 1050
    assert scheduler.pending_ms == [20]


@pytest.mark.parametrize("delay_ms", [10**14, sys.maxsize])
def test_a_timer_that_is_never_due_leaves_the_others_running(delay_ms: int) -> None:
    scheduler = ThreadScheduler("timers")
    scheduler.call_later(delay_ms, lambda: None)
    scheduler.call_every(delay_ms, delay_ms, lambda: None)
    for _ in range(3):
        ran = threading.Event()
        scheduler.call_later(1, ran.set)
        assert ran.wait(10)
    scheduler.shutdown()


class Nothing:
    """An action that does nothing."""

    def __call__(self) -> None: ...


@pytest.mark.parametrize("stuck", [False, True], ids=["all end", "an early one goes on"])
def test_cancelled_timers_do_not_pile_up_until_they_are_due(stuck: bool) -> None:
    scheduler = ThreadScheduler("timers")
    kept: weakref.WeakSet[Nothing] = weakref.WeakSet()
    if stuck:
        scheduler.call_later(600_000, Nothing())
    most = 0
    for _ in range(10_000):
        action = Nothing()
        kept.add(action)
        scheduler.call_later(900_000, action).cancel()
        most = max(most, len(kept))
    assert most < 2_000
    ran = threading.Event()
    scheduler.call_later(1, ran.set)
    assert ran.wait(10)
    scheduler.shutdown()


def test_among_many_cancelled_timers_each_other_one_runs_in_its_order() -> None:
    scheduler = ThreadScheduler("timers")
    ran: list[int] = []
    done = threading.Event()
    with time_stands_still():
        for n in range(5_000):
            scheduler.call_later(50 - n // 100, lambda: ran.append(-1)).cancel()
            scheduler.call_later(1 + n // 100, partial(ran.append, n))
        scheduler.call_later(60, done.set)
    assert done.wait(10)
    assert ran == list(range(5_000))
    scheduler.shutdown()
