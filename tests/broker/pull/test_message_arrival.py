"""Many threads wait on a store that one thread may wait on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection

from broker.pull.message_arrival import MessageArrivals


class Store:
    """A log that grows on request, with room for one waiter; notes what it waited for."""

    def __init__(self) -> None:
        self.end = 0
        self.slept_for: list[set[str] | None] = []
        self.asleep = threading.Semaphore(0)
        self._waker = threading.Semaphore(0)
        self._only_one = threading.Lock()

    def wait(
        self, known_log_end: int, timeout_ms: int, topics: Collection[str] | None = None
    ) -> int:
        assert self._only_one.acquire(blocking=False), "two threads sleep on the store"
        self.slept_for.append(None if topics is None else set(topics))
        self.asleep.release()
        self._waker.acquire(timeout=timeout_ms / 1000)
        self._only_one.release()
        return self.end

    def grow(self) -> None:
        self.end += 1
        self._waker.release()

    def wake(self) -> None:
        self._waker.release()


def waiting(
    arrivals: MessageArrivals, *topics: str, timeout_ms: int = 10_000
) -> tuple[threading.Thread, list[int]]:
    ends: list[int] = []

    def wait() -> None:
        ends.append(arrivals.wait(0, timeout_ms, topics or None))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, ends


def test_one_sleeps_on_the_store_and_all_wake():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    threads = [waiting(arrivals, "T") for _ in range(5)]
    assert store.asleep.acquire(timeout=5)
    store.grow()
    for thread, ends in threads:
        thread.join(5)
        assert ends == [1]
    assert store.slept_for[0] == {"T"}


def test_a_waiter_for_another_topic_has_the_sleeper_sleep_for_both():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    first, _ = waiting(arrivals, "T")
    assert store.asleep.acquire(timeout=5)
    second, _ = waiting(arrivals, "U")
    assert store.asleep.acquire(timeout=5)
    third, _ = waiting(arrivals, "U")
    store.grow()
    for thread in (first, second, third):
        thread.join(5)
    assert store.slept_for == [{"T"}, {"T", "U"}]


def test_no_thread_sleeps_for_a_waiter_that_is_gone():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    arrivals.wait(0, 1, ["T"])
    thread, _ = waiting(arrivals, "U")
    assert store.asleep.acquire(timeout=5)
    assert store.asleep.acquire(timeout=5)
    store.grow()
    thread.join(5)
    assert store.slept_for == [{"T"}, {"U"}]


def test_a_waiter_looks_again_when_it_is_told_to():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    told = threading.Event()
    done = threading.Thread(target=arrivals.wait, args=(0, 10_000, ["T"], told.is_set))
    done.start()
    assert store.asleep.acquire(timeout=5)
    arrivals.wake()
    assert store.asleep.acquire(timeout=5)  # asked, and asleep again
    told.set()
    arrivals.wake()
    done.join(5)
    assert not done.is_alive()


def test_a_message_that_is_there_already_ends_the_wait_at_once():
    store = Store()
    store.end = 3
    arrivals = MessageArrivals(store, lambda: store.end)
    assert arrivals.now() == 3
    assert arrivals.wait(0, 10_000) == 3
    assert store.slept_for == []


def test_closing_ends_all_waits():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    first, first_ends = waiting(arrivals)
    second, second_ends = waiting(arrivals)
    assert store.asleep.acquire(timeout=5)
    arrivals.close()
    for thread in (first, second):
        thread.join(5)
    assert first_ends == second_ends == [0]
    assert arrivals.closed
    assert arrivals.wait(0, 10_000) == 0


def test_waits_for_ever_end_with_a_message():
    store = Store()
    arrivals = MessageArrivals(store, lambda: store.end)
    first = waiting(arrivals, "T")
    assert store.asleep.acquire(timeout=5)
    others = [waiting(arrivals, "U", timeout_ms=sys.maxsize) for _ in range(3)]
    assert store.asleep.acquire(timeout=5), "one of them wakes the sleeper"
    store.grow()
    for thread, ends in [first, *others]:
        thread.join(5)
        assert ends == [1]
