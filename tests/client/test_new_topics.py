"""A consumer that starts before its topic has the topic's queues as soon as they are made.

Routes are refreshed every 30 s and queues divided every 20 s: what comes within LIMIT_S comes by a
notice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.api.members import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData as Subscription,
)
from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from client.pull.lite_pull_consumer import LitePullConsumer
from client.push.push_consumer import PushConsumer
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.cli import ROOT, run
from tests.support.consumer_puppet import consumer_puppet
from tests.support.consumers import Heard, eventually
from tests.support.recording_client import RecordingClient

LIMIT_S = 3.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    MessageStore.create(tmp_path / "store", SMALL_STORE)
    return tmp_path / "store"


@pytest.fixture
def real_broker(root: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker.open(root) as broker:
        yield broker


def within_the_limit(condition: Callable[[], object]) -> None:
    begin = time.monotonic()
    eventually(condition)
    assert time.monotonic() - begin < LIMIT_S


def subscribed(broker: EmbeddedBroker, heard: Heard, group: str = "g") -> PushConsumer:
    consumer = PushConsumer(group, brokers=[broker])
    consumer.subscribe("T")
    consumer.register_message_listener(heard)
    return consumer


def send_in_another_process(root: Path, topic: str, body: str) -> None:
    subprocess.run(
        [sys.executable, "-P", "-m", "rmqctl", "produce", topic, "-S", str(root), "-q"],
        input=body.encode(),
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(root.parent)},
        cwd=root.parent,
        check=True,
    )


def wait_in_vain(broker: EmbeddedBroker) -> None:
    """Let half a second go by: what a start does by itself is over."""
    broker.wait_for_messages(broker.wait_for_messages(None, 0), 500)


def queues_of(consumer: Any) -> list[int]:
    return sorted(q.queue_id for q in consumer.rebalance.queues() if q.topic == "T")


@pytest.mark.slow
def test_a_push_consumer_gets_the_first_message_of_a_topic_made_in_its_process(real_broker):
    heard = Heard()
    with subscribed(real_broker, heard), Producer("p", brokers=[real_broker]) as producer:
        wait_in_vain(real_broker)
        producer.send(Message("T", b"first"))
        within_the_limit(lambda: heard.bodies == [b"first"])


@pytest.mark.slow
def test_a_lite_pull_consumer_gets_it_too(real_broker):
    consumer = LitePullConsumer("g", brokers=[real_broker])
    consumer.subscribe("T")
    with consumer, Producer("p", brokers=[real_broker]) as producer:
        assert consumer.poll(500) == []
        producer.send(Message("T", b"first"))
        begin = time.monotonic()
        assert [message.body for message in consumer.poll(20_000)] == [b"first"]
        assert time.monotonic() - begin < LIMIT_S


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_a_topic_that_another_process_makes_by_sending_to_it(root, real_broker, kind):
    heard = Heard()
    consumer: Any = kind("g", brokers=[real_broker])
    consumer.subscribe("T")
    if kind is PushConsumer:
        consumer.register_message_listener(heard)
    with consumer:
        wait_in_vain(real_broker)
        send_in_another_process(root, "T", "first")
        if kind is PushConsumer:
            within_the_limit(lambda: heard.bodies == [b"first"])
        else:
            begin = time.monotonic()
            assert [message.body for message in consumer.poll(20_000)] == [b"first"]
            assert time.monotonic() - begin < LIMIT_S


@pytest.mark.slow
@pytest.mark.crash
def test_consumers_of_other_processes_see_a_topic_that_is_made_here(root, real_broker):
    with consumer_puppet(root, "g", "a") as one, consumer_puppet(root, "g", "b") as two:
        wait_in_vain(real_broker)
        real_broker.update_topic(TopicConfig("T", 4, 4))
        begin = time.monotonic()
        one.call("wait_for_queues", queues=[0, 1])
        two.call("wait_for_queues", queues=[2, 3])
        real_broker.send(Message("T", b"first"), 3)
        assert two.call("wait_for", count=1) == [[3, 0]]
        assert time.monotonic() - begin < LIMIT_S
        real_broker.update_topic(TopicConfig("T", 8, 8))
        begin = time.monotonic()
        one.call("wait_for_queues", queues=[0, 1, 2, 3])
        two.call("wait_for_queues", queues=[4, 5, 6, 7])
        assert time.monotonic() - begin < LIMIT_S
        for puppet in (one, two):
            puppet.call("shutdown")


@pytest.mark.slow
def test_queues_that_a_command_adds_are_consumed_and_those_that_it_takes_are_given_up(
    root, real_broker
):
    run("topic", "create", "T", "-S", root, "--queues", 1, "-q")
    heard = Heard()
    with subscribed(real_broker, heard) as consumer:
        within_the_limit(lambda: queues_of(consumer) == [0])
        run("topic", "alter", "T", "-S", root, "--queues", 3, "-y", "-q")
        within_the_limit(lambda: queues_of(consumer) == [0, 1, 2])
        real_broker.send(Message("T", b"in a new queue"), 2)
        within_the_limit(lambda: heard.bodies == [b"in a new queue"])
        run("topic", "alter", "T", "-S", root, "--queues", 2, "-y", "-q")
        within_the_limit(lambda: queues_of(consumer) == [0, 1])


@pytest.mark.slow
def test_a_topic_that_is_subscribed_while_it_is_missing(real_broker):
    heard = Heard()
    consumer = PushConsumer("g", brokers=[real_broker])
    consumer.subscribe("Other")
    consumer.register_message_listener(heard)
    with consumer:
        consumer.subscribe("T")
        wait_in_vain(real_broker)
        real_broker.update_topic(TopicConfig("T", 2, 2))
        real_broker.send(Message("T", b"first"), 1)
        within_the_limit(lambda: heard.bodies == [b"first"])


def test_only_consumers_of_the_topic_are_notified(real_broker):
    reader, other = RecordingClient(), RecordingClient()
    for client_id, handler, topics in (("a", reader, ["T", "U"]), ("b", other, ["V"])):
        real_broker.connect(client_id, handler)
        subscriptions = tuple(Subscription(topic, "*", sub_version=1) for topic in topics)
        consumer = ConsumerData(
            f"group-{client_id}",
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            subscriptions,
        )
        real_broker.heartbeat(HeartbeatData(client_id, (), (consumer,)))
    real_broker.update_topic(TopicConfig("T", 2, 2))
    real_broker.update_topic(TopicConfig("T", 2, 2))  # changes nothing
    real_broker.send(Message("V", b"made by sending"), 0)
    assert reader.wait_for("topics", ["T"])
    assert other.wait_for("topics", ["V"])
    assert [call for call in reader.calls if call[0] == "topics"] == [("topics", ["T"])]
    assert [call for call in other.calls if call[0] == "topics"] == [("topics", ["V"])]
