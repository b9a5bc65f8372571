"""What RocketMQ's rules lead to beside what they are for."""

from __future__ import annotations

import threading

import pytest

from client.allocate import AllocateAveragely
from client.consumer_config import ConsumerConfig
from client.listener import ConsumeOrderlyStatus
from storage.model import MessageQueue
from tests.support.consumers import Heard, eventually, pull_what_is_there, rebalance
from tests.support.consuming import QUEUE, queue_of


@pytest.mark.conformance("B6")
def test_two_members_of_one_name_take_the_same_queues():
    """So 4.9 consumes them twice; our broker refuses the second member."""
    queues = [MessageQueue("T", "broker-a", n) for n in range(8)]
    ids = ["127.0.0.1@a", "127.0.0.1@twin"]  # the broker's list: the twins are one
    allocate = AllocateAveragely().allocate
    first, twin = (allocate("g", "127.0.0.1@twin", queues, ids) for _ in range(2))
    assert first == twin == queues[4:]


@pytest.mark.conformance("D6")
def test_the_span_limit_does_not_hold_up_orderly_consumption(broker, make_consumer, scheduler):
    queue_of(broker, 200)
    go_on = threading.Event()
    heard = Heard(lambda messages, context: go_on.wait(20) and ConsumeOrderlyStatus.SUCCESS)
    consumer = make_consumer(config=ConsumerConfig(consume_concurrently_max_span=10))
    consumer.register_message_listener_orderly(heard)
    consumer.start()
    rebalance(consumer)
    process_queue = consumer.process_queues[QUEUE]

    def all_are_pulled() -> bool:
        pull_what_is_there(consumer)
        scheduler.advance(7)
        return bool(process_queue.queue_offset_max == 199)

    eventually(all_are_pulled, "pulling stopped although the span is for concurrent consumption")
    assert process_queue.get_max_span() > 10
    go_on.set()
    heard.wait_for(200)
