"""Many threads wait on a store that one thread may wait on."""

from __future__ import annotations

import threading

from broker.arrivals import Arrivals


class Store:
    """A log that grows when told, with room for one sleeper; notes what it slept for."""

    def __init__(self) -> None:
        self.end = 0
        self.slept_for: list[str | None] = []
        self.asleep = threading.Semaphore(0)
        self._bell = threading.Semaphore(0)
        self._only_one = threading.Lock()

    def wait(self, known: int, timeout_ms: int, topic: str | None) -> int:
        assert self._only_one.acquire(blocking=False), "two threads sleep on the store"
        self.slept_for.append(topic)
        self.asleep.release()
        self._bell.acquire(timeout=timeout_ms / 1000)
        self._only_one.release()
        return self.end

    def grow(self) -> None:
        self.end += 1
        self._bell.release()


def waiting(arrivals: Arrivals, topic: str | None) -> tuple[threading.Thread, list[int]]:
    ends: list[int] = []
    thread = threading.Thread(target=lambda: ends.append(arrivals.wait(0, 10_000, topic)))
    thread.start()
    return thread, ends


def test_one_sleeps_on_the_store_and_all_wake():
    store = Store()
    arrivals = Arrivals(store.wait, lambda: store.end)
    threads = [waiting(arrivals, "T") for _ in range(5)]
    assert store.asleep.acquire(timeout=5)
    store.grow()
    for thread, ends in threads:
        thread.join(5)
        assert ends == [1]
    assert store.slept_for[0] == "T"


def test_waiters_of_two_topics_are_woken_by_any():
    store = Store()
    arrivals = Arrivals(store.wait, lambda: store.end)
    arrivals.wait(0, 1, "T")
    thread, _ = waiting(arrivals, "U")
    assert store.asleep.acquire(timeout=5)
    assert store.asleep.acquire(timeout=5)
    store.grow()
    thread.join(5)
    assert store.slept_for == ["T", None]


def test_nobody_waits_for_what_is_there_already():
    store = Store()
    store.end = 3
    arrivals = Arrivals(store.wait, lambda: store.end)
    assert arrivals.now() == 3
    assert arrivals.wait(0, 10_000) == 3
    assert store.slept_for == []


def test_closing_lets_nobody_wait_any_more():
    store = Store()
    arrivals = Arrivals(store.wait, lambda: store.end)
    first, first_ends = waiting(arrivals, None)
    second, second_ends = waiting(arrivals, None)
    assert store.asleep.acquire(timeout=5)
    closer = threading.Thread(target=arrivals.close)
    closer.start()
    store._bell.release()
    for thread in (closer, first, second):
        thread.join(5)
    assert first_ends == second_ends == [0]
    assert arrivals.closed
    assert arrivals.wait(0, 10_000) == 0
