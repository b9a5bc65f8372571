"""Sending in another thread."""

from __future__ import annotations

import threading

import pytest

from broker.api.send import SendStatus
from broker.errors import BrokerBusyError, MessageIllegalError, ServiceNotAvailableError
from client.errors import SendFailedError, SendTimeoutError, TooManyAsyncSendsError
from client.producer.bounded_executor import BoundedExecutor
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.failing_broker import DOWN, LOST, SILENT, FailingBroker

DEADLINE_S = 20


@pytest.fixture
def produce(manager, a, b):
    started: list[Producer] = []
    for broker in (a, b):
        broker.update_topic(TopicConfig("T", 2, 2))

    def producer(brokers=(a, b), **settings):
        config = ProducerConfig(async_sender_threads=1, **settings)
        started.append(
            Producer(f"g{len(started)}", brokers=brokers, config=config, manager=manager)
        )
        started[-1].start()
        return started[-1]

    yield producer
    for it in started:
        it.shutdown()


class BlockingBroker(FailingBroker):
    """Holds its sends back until it may go on."""

    def __init__(self, broker, clock):
        super().__init__(broker, clock)
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()

    def send(self, *arguments):
        self.entered.release()
        assert self.go_on.wait(DEADLINE_S)
        return self.broker.send(*arguments)


def test_the_callback_and_the_future_get_the_result(produce):
    producer = produce()
    told: list[object] = []
    future = producer.send_async(Message("T", b"x"), on_success=told.append)
    result = future.result(DEADLINE_S)
    assert result.send_status is SendStatus.SEND_OK
    assert told == [result]


def test_the_callback_and_the_future_get_the_error(produce):
    told: list[object] = []
    future = produce().send_async(Message("T", b""), on_exception=told.append)
    error = future.exception(DEADLINE_S)
    assert isinstance(error, MessageIllegalError)
    assert told == [error]


def test_a_callback_that_raises_does_no_harm(produce):
    producer = produce()

    def fail(_):
        raise ValueError("a bug of the user")

    assert producer.send_async(Message("T", b"1"), on_success=fail).result(DEADLINE_S)
    assert producer.send_async(Message("T", b"2")).result(DEADLINE_S)


def test_a_send_without_an_answer_is_tried_twice_more_elsewhere_with_the_same_queue_id(
    produce, a, b
):
    producer = produce()
    for broker in (a, b):
        broker.always("send", SILENT(100))
    error = producer.send_async(Message("T", b"x")).exception(DEADLINE_S)
    assert isinstance(error, SendFailedError)
    first, second, third = error.brokers_sent
    assert first == third != second
    calls = [arguments for _, arguments in a.calls + b.calls]
    assert len({queue_id for _, queue_id, _ in calls}) == 1
    assert sorted(options.timeout_ms for _, _, options in calls) == [2_800, 2_900, 3_000]


def test_a_refusal_is_told_at_once_even_one_that_a_synchronous_send_tries_again(produce, a, b):
    producer = produce()
    for refusal in (BrokerBusyError("busy"), ServiceNotAvailableError("full")):
        for broker in (a, b):
            broker.always("send", refusal)
        before = a.called("send") + b.called("send")
        assert producer.send_async(Message("T", b"x")).exception(DEADLINE_S) is refusal
        assert a.called("send") + b.called("send") == before + 1


def test_to_a_chosen_queue_it_is_tried_at_the_same_queue(produce, a, b):
    producer = produce()
    a.plan("send", DOWN, LOST)
    queue = MessageQueue("T", "broker-a", 1)
    result = producer.send_async(Message("T", b"x"), queue=queue).result(DEADLINE_S)
    assert result.message_queue == queue
    assert result.queue_offset == 1  # the lost answer's message lies before it
    assert (a.called("send"), b.called("send")) == (3, 0)


def test_no_attempt_is_begun_after_the_time_out(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.always("send", SILENT(600))
    error = producer.send_async(Message("T", b"x"), timeout_ms=1_000).exception(DEADLINE_S)
    assert isinstance(error, SendTimeoutError)
    assert len(error.brokers_sent) == 2


def test_a_send_that_waited_too_long_for_a_thread_is_not_made(produce, open_broker, clock):
    broker = BlockingBroker(open_broker("broker-c"), clock)
    producer = produce(brokers=[broker], send_msg_timeout_ms=1_000)
    first = producer.send_async(Message("T", b"first"))
    assert broker.entered.acquire(timeout=DEADLINE_S)
    second = producer.send_async(Message("T", b"second"))
    clock.advance(1_000)
    broker.go_on.set()
    assert first.result(DEADLINE_S).send_status is SendStatus.SEND_OK
    error = second.exception(DEADLINE_S)
    assert isinstance(error, SendTimeoutError)
    assert error.brokers_sent == ()


def test_sends_beyond_the_queue_are_refused(produce, open_broker, clock):
    broker = BlockingBroker(open_broker("broker-c"), clock)
    producer = produce(brokers=[broker], async_sender_queue=3)
    futures = [producer.send_async(Message("T", b"x"))]
    assert broker.entered.acquire(timeout=DEADLINE_S)
    futures += [producer.send_async(Message("T", b"x")) for _ in range(3)]
    with pytest.raises(TooManyAsyncSendsError, match="3 asynchronous sends wait already"):
        producer.send_async(Message("T", b"x"))
    broker.go_on.set()
    assert all(future.result(DEADLINE_S) for future in futures)
    assert ProducerConfig().async_sender_queue == 50_000


def test_shutdown_waits_for_what_is_being_sent(produce, open_broker, clock):
    broker = BlockingBroker(open_broker("broker-c"), clock)
    producer = produce(brokers=[broker])
    futures = [producer.send_async(Message("T", b"x")) for _ in range(5)]
    assert broker.entered.acquire(timeout=DEADLINE_S)
    assert not any(future.done() for future in futures)
    broker.go_on.set()
    producer.shutdown()
    assert [future.result(0).queue_offset is not None for future in futures] == [True] * 5


def test_a_bounded_executor_runs_all_it_took_and_takes_nothing_more_after_shutdown():
    executor = BoundedExecutor("test", threads=3, queue_size=1_000)
    done = []
    tasks = [lambda n=n: done.append(n) for n in range(500)]
    assert all(executor.submit(task) for task in tasks)
    assert executor.shutdown(DEADLINE_S * 1000)
    assert sorted(done) == list(range(500))
    assert not executor.submit(lambda: done.append(-1))
    assert executor.shutdown()


def test_a_task_that_fails_does_not_end_its_thread():
    executor = BoundedExecutor("test", threads=1, queue_size=10)
    done = []
    assert executor.submit(lambda: 1 / 0)
    assert executor.submit(lambda: done.append(1))
    assert executor.shutdown(DEADLINE_S * 1000)
    assert done == [1]


def leave(*_):
    raise SystemExit(3)


@pytest.mark.parametrize(
    "how", [{"on_success": leave}, {"selector": leave}, {"selector": leave, "on_exception": leave}]
)
def test_an_exit_in_what_is_called_ends_no_thread_and_the_future_is_done(produce, how):
    producer = produce()
    first = producer.send_async(Message("T", b"1"), **how)
    if "selector" in how:
        assert isinstance(first.exception(DEADLINE_S), SystemExit)
    else:
        assert first.result(DEADLINE_S).send_status is SendStatus.SEND_OK
    assert producer.send_async(Message("T", b"2")).result(DEADLINE_S)


def test_what_is_called_for_an_error_gets_an_exit_too(produce):
    told: list[object] = []
    future = produce().send_async(Message("T", b"1"), selector=leave, on_exception=told.append)
    assert told == [future.exception(DEADLINE_S)]


def test_a_bounded_executor_goes_on_after_an_exit():
    executor = BoundedExecutor("test", threads=1, queue_size=10)
    done: list[int] = []
    executor.submit(leave)
    executor.submit(lambda: done.append(1))
    assert executor.shutdown()
    assert done == [1]


def test_a_list_that_is_used_again_is_sent_as_it_was_in_the_call(produce, open_broker, clock):
    broker = BlockingBroker(open_broker("broker-c"), clock)
    producer = produce(brokers=[broker])
    futures = [producer.send_async(Message("T", b"first"))]
    assert broker.entered.acquire(timeout=DEADLINE_S)
    batch: list[Message] = []
    for n in range(6):
        batch.append(Message("T", b"%d" % n))
        if len(batch) == 2:
            futures.append(producer.send_async(batch))
            batch.clear()
    broker.go_on.set()
    assert [len(future.result(DEADLINE_S).msg_id.split(",")) for future in futures] == [1, 2, 2, 2]
    stored = [
        message.body
        for queue_id in range(4)
        for message in broker.view.get_message("T", queue_id, 0, 32).messages
    ]
    assert sorted(stored) == [b"0", b"1", b"2", b"3", b"4", b"5", b"first"]


def test_messages_that_are_made_one_by_one_are_made_in_the_callers_thread(produce):
    makers: list[threading.Thread] = []

    def make():
        for n in range(3):
            makers.append(threading.current_thread())
            yield Message("T", b"%d" % n)

    result = produce().send_async(make()).result(DEADLINE_S)
    assert len(result.msg_id.split(",")) == 3
    assert makers == [threading.current_thread()] * 3
