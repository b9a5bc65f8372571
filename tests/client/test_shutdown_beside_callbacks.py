"""Producers and consumers shut down in bounded time where a callback of a user blocks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from client.consumer.consumer_config import ConsumerConfig
from client.errors import ClientStateError
from client.producer.bounded_executor import BoundedExecutor
from client.producer.config import ProducerConfig
from client.pull.lite_pull_consumer import LitePullConfig
from rmqctl import (
    ConsumeConcurrentlyStatus,
    LitePullConsumer,
    LocalTransactionState,
    Producer,
    PullConsumer,
    PushConsumer,
    TransactionProducer,
)
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.consumers import eventually

CLOSE_S = 3.0
BUSY_S = 3.0
"""What a machine may add on which much else runs: a wait without an end is none of that."""


class Blocking:
    """A callback that comes back when the test is over."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self, *_: object) -> None:
        self.begun.set()
        self.released.wait(60)


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.released.set()


def seconds_of(close: Callable[[], object]) -> float:
    """How long it takes; the test goes on where it hangs."""
    started = time.monotonic()
    thread = threading.Thread(target=close, daemon=True)
    thread.start()
    thread.join(10 * CLOSE_S)
    assert not thread.is_alive(), "it hangs"
    return time.monotonic() - started


class BlockingStrategy:
    """Divides queues once; the second time it does not return."""

    name = "BLOCKING"

    def __init__(self, blocking: Blocking) -> None:
        self.blocking = blocking
        self.rounds = 0

    def allocate(self, group, client_id, queues, client_ids):
        self.rounds += 1
        if self.rounds > 1:
            self.blocking()
        return list(queues)


@pytest.mark.slow
def test_a_callback_of_an_asynchronous_send_blocks(broker, blocking, caplog):
    caplog.set_level(logging.WARNING, "rmqctl.client")
    config = ProducerConfig(async_sender_threads=1)
    producer = Producer("p", brokers=[broker], config=config)
    producer.start()
    failed: list[Exception] = []
    producer.send_async(Message("T", b"1"), on_success=blocking)
    assert blocking.begun.wait(20)
    late = producer.send_async(Message("T", b"2"), on_exception=failed.append)
    assert seconds_of(producer.shutdown) < CLOSE_S + BUSY_S
    assert isinstance(late.exception(20), ClientStateError)  # what was lost is reported
    assert len(failed) == 1
    assert "1 task" in caplog.text


def test_asynchronous_sends_that_go_on_are_waited_for(broker):
    """The limit is for a time without progress, not for the whole."""
    executor = BoundedExecutor("many", 1, 100)
    done: list[int] = []

    def task() -> None:
        time.sleep(0.05)  # the work
        done.append(1)

    for _ in range(8):
        assert executor.submit(task)
    assert executor.shutdown(stuck_after_s=0.3)
    assert len(done) == 8


def test_a_task_that_is_given_up_blocks_no_other(blocking):
    executor = BoundedExecutor("few", 1, 100)
    given_up = threading.Event()
    executor.submit(blocking)
    assert blocking.begun.wait(20)
    executor.submit(lambda: None, blocking)
    executor.submit(lambda: None, given_up.set)
    assert seconds_of(lambda: executor.shutdown(stuck_after_s=0.2)) < CLOSE_S + BUSY_S


def test_many_threads_share_one_limit(blocking):
    executor = BoundedExecutor("many", 20, 100)
    for _ in range(20):
        executor.submit(blocking)
    assert seconds_of(lambda: executor.shutdown(500)) < CLOSE_S + BUSY_S


@pytest.mark.slow
def test_a_check_of_a_transaction_blocks(broker, blocking):
    class Listener:
        def execute_local_transaction(self, message, arg):
            return LocalTransactionState.UNKNOW

        def check_local_transaction(self, message):
            blocking()
            return LocalTransactionState.UNKNOW

    producer = TransactionProducer("p", Listener(), brokers=[broker])
    producer.start()
    producer._checks.submit(lambda: blocking())
    producer.send_async(Message("T", b"1"), on_success=blocking)
    assert blocking.begun.wait(20)
    assert seconds_of(producer.shutdown) < 2 * CLOSE_S + BUSY_S


@pytest.mark.slow
def test_an_allocation_of_a_push_consumer_blocks(broker, blocking):
    broker.update_topic(TopicConfig("T", 2, 2))
    strategy = BlockingStrategy(blocking)
    config = ConsumerConfig(allocate_message_queue_strategy=strategy)
    consumer = PushConsumer("g", brokers=[broker], config=config)
    consumer.subscribe("T")
    consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    consumer.start()
    eventually(lambda: strategy.rounds)
    consumer.instance.rebalance_immediately()
    assert blocking.begun.wait(20)
    subscribing = threading.Thread(target=lambda: consumer.subscribe("U"), daemon=True)
    subscribing.start()  # holds the lock of the consumer, and waits for that of the rebalance
    assert seconds_of(consumer.shutdown) < CLOSE_S + BUSY_S
    assert broker.consumer_ids("g") == []
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LitePullConsumer, PullConsumer])
def test_an_allocation_of_a_consumer_that_pulls_blocks(broker, blocking, kind):
    broker.update_topic(TopicConfig("T", 2, 2))
    strategy = BlockingStrategy(blocking)
    settings = LitePullConfig if kind is LitePullConsumer else ConsumerConfig
    config = settings(allocate_message_queue_strategy=strategy)
    consumer = kind("g", brokers=[broker], config=config)
    if kind is LitePullConsumer:
        consumer.subscribe("T")
    else:
        consumer.register_topic("T")
    consumer.start()
    eventually(lambda: strategy.rounds)
    consumer.instance.rebalance_immediately()
    assert blocking.begun.wait(20)
    assert seconds_of(consumer.shutdown) < CLOSE_S + BUSY_S
    assert broker.consumer_ids("g") == []


def test_a_hook_of_pulls_blocks(broker, blocking):
    broker.update_topic(TopicConfig("T", 1, 1))

    class Hook:
        name = "blocking"

        def filter_message(self, context):
            blocking()

    consumer = PushConsumer("g", brokers=[broker])
    consumer.filter_message_hooks.append(Hook())
    consumer.subscribe("T")
    consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    consumer.start()
    broker.send(Message("T", b"x"))
    assert blocking.begun.wait(20)
    assert seconds_of(consumer.shutdown) < CLOSE_S + BUSY_S
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S


@pytest.mark.slow
def test_a_second_shutdown_waits_for_the_first_one(broker):
    """Which waits for the listener, as it is configured to."""
    broker.update_topic(TopicConfig("T", 1, 1))
    begun, released = threading.Event(), threading.Event()
    ended: list[str] = []

    def listen(messages, context):
        begun.set()
        released.wait(60)
        ended.append("listener")
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(await_termination_millis_when_shutdown=60_000)
    consumer = PushConsumer("g", brokers=[broker], config=config)
    consumer.subscribe("T")
    consumer.register_message_listener(listen)
    consumer.start()
    broker.send(Message("T", b"x"))
    assert begun.wait(20)

    def shut_down(name: str) -> None:
        consumer.shutdown()
        ended.append(name)

    threads = [threading.Thread(target=shut_down, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    threads[1].join(1.5)  # longer than it waits for a thread that is at something else
    assert ended == []
    released.set()
    for thread in threads:
        thread.join(20)
    assert ended[0] == "listener"
    assert len(ended) == 3
    assert broker.query_consumer_offset("g", "T", 0).offset == 1
