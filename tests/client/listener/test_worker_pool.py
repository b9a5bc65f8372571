"""Threads that share jobs: no work is forgotten, none is done twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint

import pytest

from client.listener.worker_pool import WorkerPool
from tests.support.consumers import PATIENCE_S, eventually


class Parts:
    """A job of several parts."""

    def __init__(self, parts: list[int], do: Callable[[int], object]) -> None:
        self._parts: Iterator[int] = iter(parts)
        self._do = do
        self.size = len(parts)

    def has_more(self) -> bool:
        return length_hint(self._parts) > 1

    def work(self) -> None:
        for part in self._parts:
            self._do(part)


@pytest.fixture
def make_pool() -> Iterator[Callable[..., WorkerPool]]:
    pools: list[WorkerPool] = []

    def make(threads: int, **more: Callable[[], object]) -> WorkerPool:
        pools.append(WorkerPool("pool", threads, **more))
        return pools[-1]

    yield make
    for pool in pools:
        pool.shutdown(0)


def test_every_part_of_every_job_is_done_once(make_pool) -> None:
    pool = make_pool(8)
    done: Counter[int] = Counter()
    lock = threading.Lock()

    def count(part: int) -> None:
        with lock:
            done[part] += 1

    for start in range(0, 20_000, 20):
        pool.submit(Parts(list(range(start, start + 20)), count))
    eventually(lambda: done.total() == 20_000)
    assert set(done.values()) == {1}
    eventually(lambda: not pool.waiting)


@pytest.mark.conformance("E7")
def test_parts_of_one_job_that_block_are_done_by_as_many_threads(make_pool) -> None:
    pool = make_pool(20)
    together = threading.Barrier(20)
    met: list[int] = []

    def meet(part: int) -> None:
        together.wait(PATIENCE_S)
        met.append(part)

    pool.submit(Parts(list(range(20)), meet))
    eventually(lambda: len(met) == 20)


def test_a_blocked_thread_holds_up_nothing_behind_it(make_pool) -> None:
    pool = make_pool(2)
    opened = threading.Event()
    done: list[int] = []

    def do(part: int) -> None:
        if part == 0:
            assert opened.wait(PATIENCE_S)
        done.append(part)

    pool.submit(Parts(list(range(10)), do))
    for part in range(10, 20):
        pool.submit(Parts([part], do))
    eventually(lambda: sorted(done) == list(range(1, 20)))
    opened.set()
    eventually(lambda: 0 in done)


def test_work_that_comes_while_all_rest_is_noticed(make_pool) -> None:
    pool = make_pool(3)
    done: list[int] = []

    def done_until(part: int) -> bool:
        return len(done) == part + 1

    for part in range(300):
        pool.submit(Parts([part], done.append))
        eventually(partial(done_until, part))


def test_threads_come_to_rest_once_there_is_nothing_to_do(make_pool) -> None:
    rested = threading.Event()
    pool = make_pool(1, rest=rested.set)
    pool.submit(Parts([1], lambda part: None))
    assert rested.wait(PATIENCE_S)


def test_a_job_that_fails_does_not_end_its_thread(make_pool) -> None:
    pool = make_pool(1)
    done: list[int] = []

    def fail(part: int) -> None:
        raise ValueError("broken")

    pool.submit(Parts([1], fail))
    pool.submit(Parts([2], done.append))
    eventually(lambda: done == [2])
    assert pool.threads == 1


def test_an_ending_pool_forgets_what_was_not_begun(make_pool) -> None:
    pool = make_pool(1)
    opened, begun = threading.Event(), threading.Event()
    done: list[int] = []

    def do(part: int) -> None:
        begun.set()
        assert opened.wait(PATIENCE_S)
        done.append(part)

    pool.submit(Parts([1], do))
    pool.submit(Parts([2], do))
    assert begun.wait(PATIENCE_S)
    assert not pool.shutdown(0)
    assert not pool.submit(Parts([3], do))
    opened.set()
    assert pool.shutdown(int(PATIENCE_S * 1000))
    assert done == [1]


def test_an_ending_pool_waits_for_all_if_it_is_told_to(make_pool) -> None:
    pool = make_pool(2)
    done: list[int] = []
    pool.submit(Parts(list(range(2_000)), done.append))
    assert pool.shutdown(int(PATIENCE_S * 1000))
    assert len(done) == 2_000


def test_a_pool_can_be_ended_from_a_thread_of_its_own(make_pool) -> None:
    pool = make_pool(2)
    ended: list[bool] = []
    began = time.monotonic()
    pool.submit(Parts([1], lambda part: ended.append(pool.shutdown(60_000))))
    eventually(lambda: ended)
    assert time.monotonic() - began < PATIENCE_S


def test_the_number_of_threads_can_change(make_pool) -> None:
    pool = make_pool(1)
    opened = threading.Event()
    begun: list[int] = []

    def do(part: int) -> None:
        begun.append(part)
        assert opened.wait(PATIENCE_S)

    pool.submit(Parts([1, 2, 3], do))
    eventually(lambda: begun == [1])
    pool.update_core_pool_size(3)
    eventually(lambda: sorted(begun) == [1, 2, 3])
    pool.update_core_pool_size(1)
    opened.set()
    eventually(lambda: pool.threads == 1)
    with pytest.raises(ValueError, match="a thread or more"):
        pool.update_core_pool_size(0)


def test_what_more_was_to_follow_is_done_although_nothing_follows(make_pool) -> None:
    pool = make_pool(2)
    done: list[int] = []
    for part in range(500):
        pool.submit(Parts([part], done.append), more_follows=True)
        if part % 7 == 0:
            eventually(lambda: not pool.waiting)
    eventually(lambda: sorted(done) == list(range(500)))


def test_what_was_left_lying_is_begun_when_it_is_handed_over(make_pool) -> None:
    pool = make_pool(1)
    done: list[int] = []
    lingerer = threading.Lock()
    lingerer.acquire()
    pool._lingering.append(lingerer)
    pool.submit(Parts([1], done.append), more_follows=True)
    assert lingerer.locked()
    assert pool.threads == 0
    pool.hand_over()
    assert not lingerer.locked(), "who lingers was not woken"
    pool.submit(Parts([2], done.append))
    eventually(lambda: done == [1, 2])


@pytest.mark.conformance("E7")
def test_listeners_that_block_get_all_threads_from_who_stands_back_for_them(make_pool) -> None:
    pool = make_pool(20)
    together = threading.Barrier(20)
    met: list[int] = []

    def meet(part: int) -> None:
        together.wait(PATIENCE_S)
        met.append(part)

    quick: list[int] = []
    for part in range(100):  # a worker lingers from now on
        pool.submit(Parts([part], quick.append), more_follows=True)
    for part in range(20):
        pool.submit(Parts([part], meet), more_follows=True)
    eventually(lambda: len(met) == 20, "threads were not woken while one was blocked")
    assert len(quick) == 100


def test_who_stands_back_goes_on_when_a_thread_has_nothing_to_do(make_pool) -> None:
    pool = make_pool(1)
    done: list[int] = []
    opened = threading.Event()

    def do(part: int) -> None:
        assert opened.wait(PATIENCE_S)
        done.append(part)

    submitting = threading.Thread(
        target=lambda: [pool.submit(Parts([n], do), more_follows=True) for n in range(40)]
    )
    submitting.start()
    submitting.join(PATIENCE_S)
    assert not submitting.is_alive(), "nobody waits for a listener that blocks"
    opened.set()
    eventually(lambda: len(done) == 40)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_what_is_left_of_a_job_that_fails_is_done_all_the_same(make_pool, error) -> None:
    pool = make_pool(1)
    done: list[int] = []

    def do(part: int) -> None:
        if part % 2:
            raise error(part)
        done.append(part)

    pool.submit(Parts(list(range(7)), do))
    eventually(lambda: not pool.waiting)
    assert done == [0, 2, 4, 6]
    pool.submit(Parts([8], do))
    eventually(lambda: done[-1] == 8)


def test_a_job_that_fails_before_it_begins_a_part_is_given_up(make_pool) -> None:
    class Broken(Parts):
        def work(self) -> None:
            tried.append(1)
            raise ValueError("it never begins")

    tried: list[int] = []
    pool = make_pool(1)
    pool.submit(Broken([1, 2, 3], print))
    eventually(lambda: not pool.waiting)
    assert len(tried) == 4


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_thread_that_fails_when_it_comes_to_rest_goes_on(make_pool, error) -> None:
    rested = threading.Semaphore(0)
    done: list[int] = []

    def rest() -> None:
        rested.release()
        raise error("no progress")

    pool = make_pool(1, rest=rest)
    for part in range(3):
        pool.submit(Parts([part], done.append))
        assert rested.acquire(timeout=PATIENCE_S)
    eventually(lambda: done == [0, 1, 2])
