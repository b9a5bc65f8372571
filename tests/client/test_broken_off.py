"""A thread that could not be started is tried again, and no other thread waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.errors import ClientStateError
from client.listener.listener import ConsumeOrderlyStatus
from client.listener.worker_pool import WorkerPool
from client.producer.bounded_executor import BoundedExecutor
from client.producer.producer import Producer
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import ClientManager
from client.runtime.pull_service import PullService
from client.runtime.rebalance_service import RebalanceService
from client.runtime.service_state import ServiceState
from client.timing import ThreadScheduler
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.broken_off import BROKEN, running, starts_broken_off
from tests.support.consumers import PATIENCE_S, Heard, eventually
from tests.support.manual_time import ManualScheduler

NAME = "broken-off"


class Parts:
    """A job of several parts; each is the call of a function."""

    def __init__(self, *parts: Callable[[], object]) -> None:
        self._parts = list(parts)
        self.size = len(parts)

    def has_more(self) -> bool:
        return len(self._parts) > 1

    def work(self) -> None:
        while self._parts:
            self._parts.pop()()


def test_timers_run_when_their_thread_could_be_started_later(broken_starts) -> None:
    scheduler = ThreadScheduler(NAME)
    ran: list[str] = []
    with broken_starts(NAME), pytest.raises(BROKEN):
        scheduler.call_later(0, lambda: ran.append("refused"))
    eventually(lambda: running(NAME) == 0)
    done = threading.Event()
    scheduler.call_later(0, done.set)
    assert done.wait(PATIENCE_S)
    scheduler.shutdown()
    assert running(NAME) == 0
    assert ran == [], "whoever asked for it was told that it does not run"


def test_timers_whose_thread_could_not_be_started_shut_down(broken_starts) -> None:
    scheduler = ThreadScheduler(NAME)
    with broken_starts(NAME), pytest.raises(BROKEN):
        scheduler.call_every(0, 1, lambda: None)
    scheduler.shutdown()
    eventually(lambda: running(NAME) == 0)


class _Nothing:
    """Pulls nothing; notes the requests."""

    def __init__(self) -> None:
        self.rested = threading.Event()

    def pull_message(self, request: object) -> None:
        raise AssertionError("nothing was asked for")

    def hand_over(self) -> None:
        self.rested.set()


@pytest.mark.parametrize("again", [True, False], ids=["again", "shut down"])
def test_a_pull_service_starts_with_the_second_try(
    broken_starts, scheduler: ManualScheduler, again: bool
) -> None:
    nothing = _Nothing()
    service = PullService(NAME, lambda _: nothing, scheduler)
    with broken_starts(NAME), pytest.raises(BROKEN):
        service.start()
    eventually(lambda: running(NAME) == 0)
    if again:
        service._pulled.add(nothing)
        service.start()
        assert nothing.rested.wait(PATIENCE_S)
        service.start()
        assert running(NAME) == 1
    service.shutdown()
    assert running(NAME) == 0


@pytest.mark.parametrize("again", [True, False], ids=["again", "shut down"])
def test_a_rebalance_service_starts_with_the_second_try(broken_starts, again: bool) -> None:
    rounds = threading.Semaphore(0)
    service = RebalanceService(NAME, 20_000, rounds.release)
    with broken_starts(NAME), pytest.raises(BROKEN):
        service.start()
    eventually(lambda: running(NAME) == 0)
    if again:
        service.start()
        service.wakeup()
        assert rounds.acquire(timeout=PATIENCE_S)
        service.start()
        assert running(NAME) == 1
    service.shutdown()
    assert running(NAME) == 0


def test_an_executor_of_one_thread_starts_it_with_the_next_task(broken_starts) -> None:
    executor = BoundedExecutor(NAME, 1, 10)
    ran: list[str] = []
    with broken_starts(NAME), pytest.raises(BROKEN):
        executor.submit(lambda: ran.append("refused"))
    eventually(lambda: running(NAME) == 0)
    assert executor.waiting == 0
    assert executor.submit(lambda: ran.append("taken"))
    assert executor.shutdown(10_000)
    assert ran == ["taken"], "whoever was refused may have done it otherwise"


def test_an_executor_without_a_thread_shuts_down(broken_starts) -> None:
    executor = BoundedExecutor(NAME, 1, 10)
    with broken_starts(NAME), pytest.raises(BROKEN):
        executor.submit(lambda: None)
    assert executor.shutdown(10_000)


def test_an_executor_that_gets_no_second_thread_leaves_tasks_to_the_first() -> None:
    executor = BoundedExecutor(NAME, 2, 10)
    begun, go_on = threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    executor.submit(first)
    assert begun.wait(PATIENCE_S)
    with starts_broken_off(NAME, runs=False):
        assert executor.submit(lambda: ran.append("second"))
    go_on.set()
    assert executor.shutdown(10_000)
    assert ran == ["second"]


def test_a_pool_of_one_thread_starts_it_with_the_next_job(broken_starts) -> None:
    pool = WorkerPool(NAME, 1)
    done = threading.Semaphore(0)
    with broken_starts(NAME), pytest.raises(BROKEN):
        pool.submit(Parts(done.release))
    eventually(lambda: running(NAME) == 0)
    assert pool.threads == 0
    assert pool.submit(Parts(done.release))
    for _ in range(2):  # the messages of the first lie in their process queue: they are consumed
        assert done.acquire(timeout=PATIENCE_S)
    assert pool.shutdown(10_000)
    assert running(NAME) == 0


def test_a_pool_without_a_thread_shuts_down(broken_starts) -> None:
    pool = WorkerPool(NAME, 1)
    with broken_starts(NAME), pytest.raises(BROKEN):
        pool.submit(Parts(lambda: None))
    assert pool.shutdown(10_000)
    eventually(lambda: running(NAME) == 0)


def test_a_pool_that_gets_no_second_thread_has_the_first_do_everything() -> None:
    """A thread that finds more than it can do wakes, or starts, another one first."""
    pool = WorkerPool(NAME, 4)
    done = threading.Semaphore(0)
    begun, go_on = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    pool.submit(Parts(first))
    assert begun.wait(PATIENCE_S)
    with starts_broken_off(NAME, runs=False):
        for _ in range(3):
            pool.submit(Parts(done.release, done.release))
        go_on.set()
        for _ in range(6):
            assert done.acquire(timeout=PATIENCE_S)
        assert pool.threads == 1
        eventually(lambda: pool._idle)
        pool.submit(Parts(done.release, done.release))
        for _ in range(2):
            assert done.acquire(timeout=PATIENCE_S)
    assert pool.shutdown(10_000)


@pytest.mark.parametrize(
    "thread", ["MQClientFactoryScheduledThread", "PullMessageService ", "RebalanceService "]
)
def test_a_client_that_did_not_start_leaves_nothing_and_the_next_one_of_its_id_starts(
    broker, broken_starts, thread: str
) -> None:
    manager = ClientManager()
    config = ClientConfig(instance_name="one")

    def produce() -> Producer:
        return Producer("p", brokers=[broker], client_config=config, manager=manager)

    first = produce()
    with broken_starts(thread), pytest.raises(BROKEN):
        first.start()
    eventually(lambda: running(thread) == 0)
    assert running("MQClientFactoryScheduledThread") == running("PullMessageService") == 0
    with produce() as producer:
        assert producer.instance.state is ServiceState.RUNNING
        producer.send(Message("T", b"x"))
    assert running(thread) == 0


@pytest.mark.parametrize("orderly", [True, False], ids=["orderly", "concurrent"])
def test_a_consumer_whose_timers_did_not_start_leaves_its_client_id_to_others(
    open_broker, broken_starts, orderly: bool
) -> None:
    manager = ClientManager()
    first, second = open_broker("broker-a"), EmbeddedBroker.open(open_broker("other").view.root)

    def consume(broker: EmbeddedBroker) -> PushConsumer:
        client = ClientConfig(instance_name="one")
        made = PushConsumer("g", brokers=[broker], client_config=client, manager=manager)
        made.subscribe("T")
        if orderly:
            made.register_message_listener_orderly(Heard())
        else:
            made.register_message_listener(Heard())
        return made

    name = "ConsumeMessageScheduledThread" if orderly else "CleanExpireMsgScheduledThread"
    with broken_starts(name), pytest.raises(BROKEN):
        consume(first).start()
    eventually(lambda: running(name) == 0)
    with second, consume(second) as consumer:
        assert consumer.instance.state is ServiceState.RUNNING


def test_an_instance_that_did_not_start_can_not_be_started_again(broker, broken_starts) -> None:
    manager = ClientManager()
    config = ClientConfig(instance_name="one")
    instance = manager.get_or_create(config, [broker])
    with broken_starts("RebalanceService"), pytest.raises(BROKEN):
        instance.start()
    assert instance.state is ServiceState.START_FAILED
    with pytest.raises(ClientStateError):
        instance.start()
    instance.shutdown()
    following = manager.get_or_create(config, [broker])
    assert following is not instance
    following.start()
    following.shutdown()


@pytest.mark.parametrize("orderly", [True, False], ids=["orderly", "concurrent"])
def test_messages_for_which_there_was_no_thread_are_consumed_without_more_of_them(
    broker, monkeypatch: pytest.MonkeyPatch, orderly: bool
) -> None:
    refused: list[str] = []
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith("ConsumeMessageThread") and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(Message("T", b"only"))
    heard = Heard(lambda *_: ConsumeOrderlyStatus.SUCCESS) if orderly else Heard()
    consumer = PushConsumer(
        "g",
        brokers=[broker],
        config=ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET),
        client_config=ClientConfig(pull_time_delay_mills_when_exception=20),
        manager=ClientManager(),
    )
    consumer.subscribe("T")
    if orderly:
        consumer.register_message_listener_orderly(heard)
    else:
        consumer.register_message_listener(heard)
    with consumer:
        heard.wait_for(1)
    assert heard.bodies == [b"only"]
    assert refused
