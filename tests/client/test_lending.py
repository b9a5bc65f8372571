"""Whoever brings a job may do it in place of an idle thread: as many listeners as threads run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from broker.port.progress import ConsumeFromWhere
from client.consuming.worker_pool import Lent, WorkerPool
from client.pushing.push_consumer import PushConsumer
from client.subscribing.consumer_config import ConsumerConfig
from tests.support.consumers import PATIENCE_S, Heard, eventually, fill


class One:
    """A job that is one call."""

    size = 1

    def __init__(self, do: Callable[[], object]) -> None:
        self._do = do

    def has_more(self) -> bool:
        return False

    def work(self) -> None:
        self._do()


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool("pool", 1)
    ran = threading.Event()
    made.submit(One(ran.set))
    assert ran.wait(PATIENCE_S)
    eventually(lambda: made._idle)  # its only thread sleeps
    made._was_quick = True  # whatever this machine took for it
    yield made
    made.shutdown(0)


def lent(pool: WorkerPool, do: Callable[[], object]) -> Lent:
    found = pool.lend(One(do))
    assert found is not None
    return found


def test_the_caller_does_it_and_the_thread_sleeps_on(pool: WorkerPool) -> None:
    threads: list[int] = []
    lent(pool, lambda: threads.append(threading.get_ident())).work()
    assert threads == [threading.get_ident()]
    assert not pool.waiting
    pool.submit(One(lambda: threads.append(threading.get_ident())))
    eventually(lambda: len(threads) == 2)
    assert threads[1] != threads[0]


def test_what_is_left_is_done_by_the_thread(pool: WorkerPool) -> None:
    threads: list[int] = []
    lent(pool, lambda: threads.append(threading.get_ident())).leave()
    eventually(lambda: threads)
    assert threads != [threading.get_ident()]


def test_nothing_is_lent_where_no_thread_sleeps_or_jobs_take_long(pool: WorkerPool) -> None:
    assert WorkerPool("new", 1).lend(One(lambda: None)) is None
    first = lent(pool, lambda: None)
    assert pool.lend(One(lambda: None)) is None
    first.work()
    lent(pool, lambda: time.sleep(0.002)).work()
    assert pool.lend(One(lambda: None)) is None, "the next one may take as long"
    pool._was_quick = True
    lent(pool, lambda: None).work()
    pool._was_quick = True
    pool.shutdown(0)
    assert pool.lend(One(lambda: None)) is None


def test_never_more_run_than_there_are_threads(pool: WorkerPool) -> None:
    done = threading.Event()
    beside: list[bool] = []

    def work() -> None:
        pool.submit(One(done.set))
        beside.append(done.wait(0.05))

    lent(pool, work).work()
    assert beside == [False], "the pool has one thread"
    assert done.wait(PATIENCE_S)


def test_a_job_that_fails_gives_the_thread_back(pool: WorkerPool) -> None:
    def fail() -> None:
        raise ValueError("no")

    lent(pool, fail).work()
    done = threading.Event()
    pool.submit(One(done.set))
    assert done.wait(PATIENCE_S)


def test_the_end_waits_for_who_works_in_a_thread_s_place(pool: WorkerPool) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    guest = threading.Thread(target=lent(pool, work).work)
    guest.start()
    assert begun.wait(PATIENCE_S)
    assert not pool.shutdown(20), "it still runs"
    go_on.set()
    guest.join(PATIENCE_S)
    assert pool.shutdown(int(PATIENCE_S * 1000)), "it has given the thread back, which has ended"


def test_who_works_in_a_thread_s_place_may_end_the_pool(pool: WorkerPool) -> None:
    took: list[float] = []

    def work() -> None:
        start = time.monotonic()
        pool.shutdown(60_000)
        took.append(time.monotonic() - start)

    lent(pool, work).work()
    assert took[0] < PATIENCE_S
    eventually(lambda: not any(thread.is_alive() for thread in pool._threads))


def test_a_listener_of_one_thread_never_runs_twice_at_a_time(broker):
    fill(broker, 1)
    running: list[int] = []
    most: list[int] = []

    def listen(messages, context):
        running.append(1)
        most.append(len(running))
        threading.Event().wait(0.003)
        running.pop()
        return Heard()._answer(messages, context)

    heard = Heard(listen)
    config = ConsumerConfig(
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_min=1,
        consume_thread_max=1,
    )
    consumer = PushConsumer("g", brokers=[broker], config=config)
    consumer.subscribe("T")
    consumer.register_message_listener(heard)
    with consumer:
        heard.wait_for(1)
        for number in range(60):
            fill(broker, 2)
            heard.wait_for(1 + 2 * number)  # so that some come while it runs, some after it
        heard.wait_for(121)
    assert max(most) == 1
