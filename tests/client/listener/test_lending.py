"""A thread that brings a job may do it for an idle thread: no more listeners than threads run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.listener.worker_pool import _QUICK_S, BorrowedWorker, WorkerPool
from client.push.push_consumer import PushConsumer
from storage.format.message import Message, MessageExt
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


def borrowed(pool: WorkerPool, do: Callable[[], object]) -> BorrowedWorker:
    found = pool.lend(One(do))
    assert found is not None
    return found


def test_the_caller_does_it_and_the_thread_sleeps_on(pool: WorkerPool) -> None:
    threads: list[int] = []
    names: list[str] = []

    def work() -> None:
        threads.append(threading.get_ident())
        names.append(threading.current_thread().name)

    own_name = threading.current_thread().name
    borrowed(pool, work).work()
    assert threads == [threading.get_ident()]
    assert (names, threading.current_thread().name) == (["pool_1"], own_name)
    assert not pool.waiting
    pool.submit(One(lambda: threads.append(threading.get_ident())))
    eventually(lambda: len(threads) == 2)
    assert threads[1] != threads[0]


def test_what_is_left_is_done_by_the_thread(pool: WorkerPool) -> None:
    threads: list[int] = []
    borrowed(pool, lambda: threads.append(threading.get_ident())).leave()
    eventually(lambda: threads)
    assert threads != [threading.get_ident()]


def test_nothing_is_lent_where_no_thread_sleeps_or_jobs_take_long(pool: WorkerPool) -> None:
    assert WorkerPool("new", 1).lend(One(lambda: None)) is None
    first = borrowed(pool, lambda: None)
    assert pool.lend(One(lambda: None)) is None
    first.work()
    pool._was_quick = True  # whatever this machine took for it
    borrowed(pool, lambda: time.sleep(2 * _QUICK_S)).work()  # not to wait for anything: it lasts
    assert pool.lend(One(lambda: None)) is None, "the next one may take as long"
    pool._was_quick = True
    borrowed(pool, lambda: None).work()
    pool._was_quick = True
    pool.shutdown(0)
    assert pool.lend(One(lambda: None)) is None


def test_nothing_is_lent_beside_a_job_that_lasts() -> None:
    pool = WorkerPool("pool", 2)
    begun, go_on, both = threading.Event(), threading.Event(), threading.Barrier(2, timeout=10)

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    try:
        for _ in range(2):
            pool.submit(One(both.wait))
        eventually(lambda: len(pool._idle) == 2)
        pool.submit(One(work))
        assert begun.wait(PATIENCE_S)
        eventually(lambda: len(pool._jobs) == 1 and pool._idle)
        pool._jobs.clear()  # as if one that has found nothing to begin had taken it out
        pool._was_quick = True
        assert pool.lend(One(lambda: None)) is None
        go_on.set()
        eventually(lambda: len(pool._idle) == 2)
        pool._was_quick = True
        borrowed(pool, lambda: None).work()
    finally:
        go_on.set()
        pool.shutdown(0)


def test_never_more_run_than_there_are_threads(pool: WorkerPool) -> None:
    done = threading.Event()
    beside: list[bool] = []

    def work() -> None:
        pool.submit(One(done.set))
        beside.append(done.wait(0.05))

    borrowed(pool, work).work()
    assert beside == [False], "the pool has one thread"
    assert done.wait(PATIENCE_S)


def test_a_job_that_fails_gives_the_thread_back(pool: WorkerPool) -> None:
    def fail() -> None:
        raise ValueError("no")

    borrowed(pool, fail).work()
    done = threading.Event()
    pool.submit(One(done.set))
    assert done.wait(PATIENCE_S)


def test_the_end_waits_for_who_works_in_a_thread_s_place(pool: WorkerPool) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    guest = threading.Thread(target=borrowed(pool, work).work)
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

    borrowed(pool, work).work()
    assert took[0] < PATIENCE_S
    eventually(lambda: not any(thread.is_alive() for thread in pool._threads))


def consuming(
    broker: EmbeddedBroker, heard: Heard, *, orderly: bool = False, **settings: Any
) -> PushConsumer:
    where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    config = ConsumerConfig(consume_from_where=where, **settings)
    consumer = PushConsumer("g", brokers=[broker], config=config)
    consumer.subscribe("T")
    if orderly:
        consumer.register_message_listener_orderly(heard)
    else:
        consumer.register_message_listener(heard)
    return consumer


def test_a_listener_of_one_thread_never_runs_twice_at_a_time(broker: EmbeddedBroker) -> None:
    fill(broker, 1)
    running: list[int] = []
    most: list[int] = []

    def listen(messages: Sequence[MessageExt], context: Any) -> Any:
        running.append(1)
        most.append(len(running))
        if len(most) % 3 == 0:  # the next one is not lent a thread then
            threading.Event().wait(0.003)
        running.pop()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    heard = Heard(listen)
    with consuming(broker, heard, consume_thread_min=1, consume_thread_max=1):
        heard.wait_for(1)
        for number in range(60):
            fill(broker, 2)
            heard.wait_for(1 + 2 * number)  # so that some come while it runs, some after it
        heard.wait_for(121)
    assert max(most) == 1


@pytest.mark.parametrize("orderly", [False, True])
def test_a_listener_that_blocks_in_the_broker_s_thread_holds_up_no_other_queue(
    broker: EmbeddedBroker, orderly: bool
) -> None:
    fill(broker, 1)
    go_on = threading.Event()
    blocked: list[MessageExt] = []
    ended: list[MessageExt] = []
    sent = 1

    def ended_or_blocked() -> bool:
        return bool(blocked) or len(ended) == sent

    def listen(messages: Sequence[MessageExt], context: Any) -> Any:
        own = {thread.ident for thread in consumer.consume_service.pool._threads}
        if threading.get_ident() not in own and not blocked:
            blocked.extend(messages)
            assert go_on.wait(3 * PATIENCE_S)  # longer than the test waits for anything
        ended.extend(messages)
        if orderly:
            return ConsumeOrderlyStatus.SUCCESS
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    heard = Heard(listen)
    with consuming(broker, heard, orderly=orderly) as consumer:
        while not blocked:  # one is lent a thread as soon as this machine is quick enough
            heard.wait_for(sent)
            broker.send(Message("T", b"x"), 0)
            sent += 1
            eventually(ended_or_blocked)
        broker.send(Message("T", b"of another queue"), 1)
        eventually(lambda: b"of another queue" in heard.bodies)
        if not orderly:
            broker.send(Message("T", b"of the same queue"), 0)
            eventually(lambda: b"of the same queue" in heard.bodies)
        assert not go_on.is_set()
        go_on.set()
        sent += 1 if orderly else 2
        eventually(lambda: len(heard.messages) == sent)
        broker.send(Message("T", b"last"), 0)
        eventually(lambda: heard.bodies[-1] == b"last")
    assert len(heard.messages) == sent + 1, "each once"
