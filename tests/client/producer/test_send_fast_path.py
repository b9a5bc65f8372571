"""Quick sends take a fast path from the third of a millisecond on, with the same results."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from broker.api.send import SendStatus
from broker.errors import (
    BrokerBusyError,
    InvalidNameError,
    MessageIllegalError,
    ServiceNotAvailableError,
)
from client.errors import SendFailedError
from client.producer.config import ProducerConfig
from client.producer.kernel import SendKernel
from client.producer.producer import Producer
from client.producer.send_fast_path import SendFastPath
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.compiled import native, needs_compiled
from tests.support.failing_broker import DOWN, LATE, STATUS

pytestmark = [
    needs_compiled,
    pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty"),
]
BUSY = BrokerBusyError("busy")
DISK_FULL = ServiceNotAvailableError("the disk is full")


@pytest.fixture
def produce(manager, a, b):
    started = []
    for broker in (a, b):
        broker.update_topic(TopicConfig("T", 2, 2))

    def producer(brokers=(a, b), **settings):
        config = ProducerConfig(**settings)
        started.append(Producer("group", brokers=brokers, config=config, manager=manager))
        started[-1].start()
        for _ in range(4):
            started[-1].send(Message("T", b"before"))
        return started[-1]

    yield producer
    for it in started:
        it.shutdown()


@contextmanager
def usual_ways() -> Iterator[list[bytes]]:
    """Notes the bodies of messages that are prepared the usual way."""
    gone: list[bytes] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is SendKernel.prepare.__code__:
            gone.append(frame.f_locals["message"].body)

    sys.setprofile(note)
    try:
        yield gone
    finally:
        sys.setprofile(None)


def test_plain_messages_of_one_millisecond_go_it_to_all_queues_in_turn(produce, clock):
    producer = produce()
    with usual_ways() as gone:
        queues = [producer.send(Message("T", b"x")).message_queue for _ in range(8)]
        assert gone == []
        clock.advance(1)
        later = [Message("T", b"%d" % number) for number in range(4)]
        queues += [producer.send(message).message_queue for message in later]
        assert gone == [b"0", b"1"]
    assert queues[:4] * 3 == queues
    assert len(set(queues)) == 4


def test_each_message_has_an_id_of_its_own_and_keeps_one(produce):
    producer = produce()
    messages = [Message("T", b"x") for _ in range(4)]
    ids = [producer.send(message).msg_id for message in messages]
    assert len(set(ids)) == 4
    assert [message.properties["UNIQ_KEY"] for message in messages] == ids
    assert producer.send(messages[0]).msg_id == ids[0]


@pytest.mark.parametrize(
    ("message", "how"),
    [
        (Message("T", b"y" * 5_000), {}),
        (Message("T", b"y", delay_time_level=3), {}),
        (Message("T", b"y", properties={"WAIT": "false"}), {}),
        (Message("T", b"y"), {"timeout_ms": 9_000}),
        (Message("U", b"y"), {}),
    ],
)
def test_others_do_not(produce, a, b, message, how):
    for broker in (a, b):
        broker.update_topic(TopicConfig("U", 2, 2))
    producer = produce()
    with usual_ways() as gone:
        assert producer.send(message, **how).send_status is SendStatus.SEND_OK
        assert gone == [message.body]


def test_an_attempt_that_fails_counts_and_another_broker_is_tried(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.always("send", DOWN)
    with pytest.raises(SendFailedError) as failure:
        producer.send(Message("T", b"x"))
    assert a.called("send") + b.called("send") == 3
    assert failure.value.__cause__ is DOWN
    a.heal()
    for _ in range(4):
        assert producer.send(Message("T", b"x")).message_queue.broker_name == "broker-a"


def test_a_refusal_that_is_not_to_be_repeated_is_raised(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.plan("send", BUSY)
    with pytest.raises(BrokerBusyError):
        producer.send(Message("T", b"x"))
    assert a.called("send") + b.called("send") == 1


def test_one_that_is_to_be_repeated_is(produce, a):
    producer = produce(brokers=[a])
    a.plan("send", DISK_FULL, DISK_FULL)
    assert producer.send(Message("T", b"x")).send_status is SendStatus.SEND_OK
    assert a.called("send") == 3


def test_what_is_stored_but_not_ok_is_the_result_or_is_sent_to_another(produce, a, b):
    producer = produce(brokers=[a])
    a.plan("send", STATUS(SendStatus.FLUSH_DISK_TIMEOUT))
    assert producer.send(Message("T", b"x")).send_status is SendStatus.FLUSH_DISK_TIMEOUT
    assert a.called("send") == 1


def test_or_is_sent_to_another_where_that_is_wanted(produce, a):
    producer = produce(retry_another_broker_when_not_store_ok=True)
    a.always("send", STATUS(SendStatus.SLAVE_NOT_AVAILABLE))
    for _ in range(4):
        result = producer.send(Message("T", b"x"))
        assert (result.send_status, result.message_queue.broker_name) == ("SEND_OK", "broker-b")


def test_what_is_stored_too_late_is_told_all_the_same(produce, a):
    producer = produce(brokers=[a], retry_another_broker_when_not_store_ok=True)
    a.plan("send", LATE(4_000))
    assert producer.send(Message("T", b"x")).send_status is SendStatus.SEND_OK


def test_what_is_wrong_with_a_message_is_named_as_ever(produce):
    producer = produce()
    message = Message("T", b"x")
    message.body = 5  # type: ignore[assignment]
    with pytest.raises(MessageIllegalError, match="body is 5"):
        producer.send(message)
    with pytest.raises(InvalidNameError, match="topic is"):
        producer.send(Message(["T"], b"x"))  # type: ignore[arg-type]
    with pytest.raises(MessageIllegalError, match="is no message"):
        producer.send(5)


def test_who_has_hooks_goes_the_usual_way(produce, clock):
    producer = produce()
    seen = []

    class Hook:
        def send_message_before(self, context):
            seen.append(context.message.body)

        def send_message_after(self, context):
            seen.append(context.send_result.send_status)

    producer.send_message_hooks.append(Hook())
    clock.advance(1)
    for _ in range(4):
        producer.send(Message("T", b"x"))
    assert seen == [b"x", "SEND_OK"] * 4


def test_each_thread_has_its_own_turn(produce):
    producer = produce()
    queues: dict[int, list[object]] = {}

    def send(name: int) -> None:
        queues[name] = [producer.send(Message("T", b"x")).message_queue for _ in range(80)]

    threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in queues.values():
        assert own[:4] * 20 == own
        assert len(set(own)) == 4


# -- batches -------------------------------------------------------------------------------------


def batch(*bodies: bytes, topic: str = "T", **given: Any) -> list[Message]:
    return [Message(topic, body, **given) for body in bodies or (b"x", b"y", b"z")]


@contextmanager
def ways() -> Iterator[list[str]]:
    """Notes how batches go: ``prepare`` is the usual way."""
    gone: list[str] = []
    codes = {SendKernel.prepare.__code__: "usual", SendFastPath.send_batch.__code__: "asked"}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            gone.append(codes[frame.f_code])

    sys.setprofile(note)
    try:
        yield gone
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("kind", [list, tuple])
def test_batches_of_one_millisecond_go_to_all_queues_in_turn(produce, clock, a, b, kind):
    producer = produce()
    with ways() as gone:
        results = [producer.send(kind(batch())) for _ in range(8)]
        assert gone == ["asked"] * 8
        clock.advance(1)
        results += [producer.send(kind(batch())) for _ in range(4)]
        assert gone[8:] == ["asked", "usual", "asked", "usual", "asked", "asked"]
    queues = [result.message_queue for result in results]
    assert queues[:4] * 3 == queues
    assert len(set(queues)) == 4
    assert [result.queue_offset for result in results[8:]] == [
        results[number].queue_offset + 6 for number in range(4)
    ]


def test_batches_make_a_run_for_messages_and_messages_one_for_batches(produce, clock):
    producer = produce()
    clock.advance(1)
    producer.send(batch())
    producer.send(batch())
    with usual_ways() as gone:
        queue = producer.send(Message("T", b"one")).message_queue
        following = producer.send(batch()).message_queue
    assert gone == []
    assert following != queue


def test_each_message_of_a_batch_has_an_id_and_keeps_it(produce):
    producer = produce()
    messages = batch()
    messages[1].properties["UNIQ_KEY"] = "own"
    told = producer.send(messages).msg_id.split(",")
    assert [message.properties["UNIQ_KEY"] for message in messages] == told
    assert told[1] == "own"
    assert len(set(told)) == 3
    assert producer.send(messages).msg_id.split(",") == told


@pytest.mark.parametrize(
    ("messages", "how"),
    [
        (batch(keys="k", properties={"WAIT": "false"}), {}),
        (batch(), {"timeout_ms": 9_000}),
        (batch(topic="U"), {}),
        (iter(batch()), {}),
    ],
    ids=["asks for something", "another time", "another topic", "no list"],
)
def test_other_batches_do_not(produce, a, b, messages, how):
    for broker in (a, b):
        broker.update_topic(TopicConfig("U", 2, 2))
    producer = produce()
    with ways() as gone:
        assert producer.send(messages, **how).send_status is SendStatus.SEND_OK
    assert gone[-1] == "usual"


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([], "no message"),
        ([Message("T", b"x"), 5], "is no message"),
        ([5, Message("T", b"x")], "is no message"),
        ([Message("T", b"x"), Message("U", b"x")], "one topic"),
        ([Message("T", b"x"), Message("T", b"")], "body"),
        (batch(delay_time_level=2), "delay"),
        (batch(b"x" * 2_000_000, b"y" * 2_000_000, b"z" * 2_000_000), "split_batch"),
    ],
)
def test_what_is_wrong_with_a_batch_is_named_as_ever(produce, messages, error):
    producer = produce()
    with pytest.raises(MessageIllegalError, match=error):
        producer.send(messages)


def test_a_batch_that_fails_counts_and_another_broker_is_tried(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.always("send_batch", DOWN)
    with pytest.raises(SendFailedError) as failure:
        producer.send(batch())
    assert a.called("send_batch") + b.called("send_batch") == 3
    assert failure.value.__cause__ is DOWN
    a.heal()
    for _ in range(4):
        assert producer.send(batch()).message_queue.broker_name == "broker-a"


def test_a_batch_that_is_refused_for_good_is_not_repeated(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.plan("send_batch", BUSY)
    with pytest.raises(BrokerBusyError):
        producer.send(batch())
    assert a.called("send_batch") + b.called("send_batch") == 1


def test_a_batch_that_is_stored_but_not_ok_is_sent_to_another_where_that_is_wanted(produce, a):
    producer = produce(retry_another_broker_when_not_store_ok=True)
    a.always("send_batch", STATUS(SendStatus.SLAVE_NOT_AVAILABLE))
    for _ in range(4):
        result = producer.send(batch())
        assert (result.send_status, result.message_queue.broker_name) == ("SEND_OK", "broker-b")
