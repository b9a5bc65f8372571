"""Threads give back in the order of the queue, so that progress passes over what was given back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from client.consumer.consumer_config import ConsumerConfig
from client.listener import concurrently, send_back_batcher
from client.listener.send_back_batcher import TURN_S
from rmqctl import ConsumeConcurrentlyStatus, PushConsumer
from storage.configs.topics import TopicConfig
from storage.format.message import SCHEDULE_TOPIC
from tests.support.consumers import eventually

LEVEL = 18
COUNT = 64


class Listener:
    """Fails for all messages; the first one stays in it until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.others = 0

    def __call__(self, messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = LEVEL
        if messages[0].queue_offset == 0:
            self.released.wait(60)
        else:
            self.others += 1
        return ConsumeConcurrentlyStatus.RECONSUME_LATER


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.released.set()


def consumer_of(broker, listener) -> PushConsumer:
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_column("T", [b"%d" % n for n in range(COUNT)], 0)
    config = ConsumerConfig(consume_thread_min=2, consume_thread_max=2)
    consumer = PushConsumer("g", brokers=[broker], config=config)
    consumer.subscribe("T")
    consumer.register_message_listener(listener)
    return consumer


def given_back(broker) -> int:
    return int(broker.max_offset(SCHEDULE_TOPIC, LEVEL - 1))


def test_what_failed_waits_for_a_message_before_it_that_ends_soon(broker, listener, monkeypatch):
    monkeypatch.setattr(send_back_batcher, "TURN_S", 60.0)  # a busy machine is slow
    monkeypatch.setattr(send_back_batcher, "LATEST_MS", 60_000)
    # What fails slowly goes back at once: here each call of the listener is a quick one.
    monkeypatch.setattr(concurrently, "seconds_of", lambda clock: lambda: 0.0)
    with consumer_of(broker, listener):
        eventually(lambda: listener.others)
        threading.Event().wait(0.1)  # either order must work: the other thread waits by now, or not
        listener.released.set()
        eventually(lambda: broker.query_consumer_offset("g", "T", 0).offset == COUNT)
    assert given_back(broker) == COUNT
    (first,) = broker.view.get_message(SCHEDULE_TOPIC, LEVEL - 1, 0, 1).messages
    assert first.body == b"0"  # it ended after the others


def test_a_message_that_takes_long_keeps_none_behind_it(broker, listener):
    with consumer_of(broker, listener):
        started = time.monotonic()
        eventually(lambda: given_back(broker) == COUNT - 1)  # all but the one in the listener
        assert time.monotonic() - started < 100 * TURN_S  # it is waited for once, not by each
        assert not broker.query_consumer_offset("g", "T", 0).offset
        listener.released.set()
        eventually(lambda: given_back(broker) == COUNT)


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []),
        ([1] * 32, [32]),
        ([1] * 70, [32, 32, 6]),
        ([20, 20, 20], [20, 20, 20]),
        ([100, 1, 1], [100, 2]),  # one call of the listener is not divided
    ],
)
def test_many_that_failed_are_given_back_in_parts(sizes, parts):
    calls = [send_back_batcher.FailedMessages((None,) * size, LEVEL, {}) for size in sizes]
    found = list(send_back_batcher._parts(calls))
    assert [sum(len(call.messages) for call in part) for part in found] == parts
    assert [call for part in found for call in part] == calls
