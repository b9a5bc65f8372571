"""Side effects of RocketMQ's rules."""

from __future__ import annotations

import threading

import pytest

from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeOrderlyStatus
from client.producer.producer import Producer
from client.pull.pull_consumer import PullConsumer
from client.rebalance.allocate import AllocateAveragely
from client.runtime.client_manager import ClientManager
from client.runtime.pull_service import PullService
from client.runtime.rebalance_service import RebalanceService
from storage.format.message import Message, MessageQueue
from tests.support.consumers import Heard, eventually, fill, pull_what_is_there, rebalance
from tests.support.consuming import QUEUE, queue_of
from tests.support.manual_time import ManualScheduler


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


@pytest.mark.conformance("B5")
def test_a_client_starts_its_parts_in_the_order_of_4_9(broker, clock, scheduler, monkeypatch):
    begun: list[str] = []

    def note(kind: type, method: str, part: str) -> None:
        begin = getattr(kind, method)

        def noted(self, *arguments):
            if part not in begun:
                begun.append(part)
            return begin(self, *arguments)

        monkeypatch.setattr(kind, method, noted)

    note(RebalanceService, "start", "rebalance service")
    note(PullService, "start", "pull service")
    note(ManualScheduler, "call_every", "timers")
    note(EmbeddedBroker, "connect", "connections")
    manager = ClientManager(clock=clock, schedulers=scheduler.part)
    with Producer("p", brokers=[broker], manager=manager):
        assert begun == ["connections", "timers", "pull service", "rebalance service"]


@pytest.mark.conformance("H7")
def test_a_dead_letter_can_be_read_and_sent_again(broker, manager):
    fill(broker, 1, queues=1)
    (failed,) = broker.view.get_message("T", 0, 0, 1).messages
    broker.send_message_back(SendBackRequest("g", "T", failed.commitlog_offset, failed.msg_id, -1))
    dead = MessageQueue("%DLQ%g", "broker-a", 0)
    with PullConsumer("undertaker", brokers=[broker], manager=manager) as consumer:
        (letter,) = consumer.pull(dead, 0).messages
    assert letter.get_property("ORIGIN_MESSAGE_ID") == failed.offset_msg_id
    topic = letter.get_property("RETRY_TOPIC")
    assert topic == "T"
    with Producer("undertaker", brokers=[broker], manager=manager) as producer:
        sent = producer.send(Message(topic, letter.body))
    (again,) = broker.view.get_message("T", 0, 1, 1).messages
    assert (again.body, again.msg_id) == (failed.body, sent.msg_id)
    assert again.reconsume_times == 0
