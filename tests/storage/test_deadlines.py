"""Bounded waits: what is left of them, and what is done when they are over."""

import threading
import time

import pytest

from storage.deadlines import MAX_CLOSE_S, Deadline, ends_within, held_within, waitable


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test sets."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_closing_ends_within_three_seconds():
    assert 2 < MAX_CLOSE_S < 3


def test_the_steps_share_what_is_left_and_later_ones_keep_their_part(clock):
    deadline = Deadline(2.5)
    assert deadline.left() == 2.5
    clock[0] += 1.5
    assert deadline.left() == 1.0
    assert deadline.left(reserve=0.25) == 0.75
    assert deadline.left(reserve=1.25) == 0.0
    clock[0] += 60
    assert deadline.left() == 0.0


def test_a_free_lock_is_held_for_the_block_and_free_again_after_it():
    lock = threading.Lock()
    with held_within(lock, 0) as held:
        assert held
        assert lock.locked()
    assert not lock.locked()
    with pytest.raises(ZeroDivisionError), held_within(lock, 0):
        raise ZeroDivisionError
    assert not lock.locked()


def test_without_the_lock_the_block_runs_and_the_lock_stays_with_its_holder():
    lock = threading.Lock()
    with lock:
        with held_within(lock, 0.001) as held:
            assert not held
        assert lock.locked()


def test_an_action_that_ends_in_time_runs_once_in_a_daemon_of_its_own():
    seen = []

    def action():
        thread = threading.current_thread()
        seen.append((thread.name, thread.daemon))

    assert ends_within(20, action, "closing")
    assert seen == [("closing", True)]


def test_an_action_that_takes_its_time_is_waited_for():
    assert ends_within(20, lambda: threading.Event().wait(0.05), "slow")


def test_an_action_that_goes_on_is_left_running():
    ended = threading.Event()
    assert not ends_within(0.001, lambda: ended.wait(20), "blocked")
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "blocked"]
    ended.set()
    thread.join(20)
    assert not thread.is_alive()


def test_the_exception_of_an_action_is_raised_to_the_caller():
    def action():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ends_within(20, action, "failing")


def test_without_a_thread_the_caller_does_it(monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    seen = []
    assert ends_within(0.001, lambda: seen.append(threading.current_thread()), "closing")
    assert seen == [threading.main_thread()]


@pytest.mark.parametrize("seconds", [threading.TIMEOUT_MAX + 1, 1e300, float("inf")])
def test_a_wait_beyond_what_threading_takes_is_one_that_it_takes(seconds):
    free = threading.Lock()
    with held_within(free, seconds) as held:
        assert held
    assert ends_within(seconds, lambda: None, "ends")
    assert free.acquire(timeout=waitable(seconds))


def test_a_wait_that_threading_takes_is_as_long_as_asked():
    assert (waitable(0), waitable(2.5)) == (0, 2.5)
