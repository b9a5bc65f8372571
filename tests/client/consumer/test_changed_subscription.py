"""A subscription that changes while pulls by the former one are under way loses no message."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullResult, PullStatus
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.subscription import MessageSelector
from client.offset_store.offset_store import ReadOffsetType
from client.pull.lite_pull_consumer import LitePullConfig, LitePullConsumer
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from storage.results import GetMessageStatus
from tests.support.consumers import Heard, eventually, pull_until, pull_what_is_there, turn
from tests.support.failing_broker import FailingBroker

QUEUE = MessageQueue("T", "broker-a", 0)
NARROW = {
    "tags": "A",
    "SQL92": MessageSelector.by_sql("TAGS = 'A'"),
}
WIDE = {
    "tags": "A || B",
    "SQL92": MessageSelector.by_sql("TAGS IN ('A', 'B')"),
}


class Keeps(FailingBroker):
    """Answers pulls of T when the test does."""

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self.kept: list[Any] = []

    def pull_async(self, wire: Any, answer: Any) -> None:
        if wire.topic == "T":
            self.kept.append((wire, answer))
        else:
            self.broker.pull_async(wire, answer)


def answer_of(status: PullStatus, messages: Any = ()) -> PullResult:
    return PullResult(status, 7, 0, 7, list(messages), GetMessageStatus.NO_MATCHED_MESSAGE)


@pytest.fixture
def make_lite(broker, manager, request):
    def make(brokers=None) -> LitePullConsumer:
        consumer = LitePullConsumer(
            "g",
            brokers=[broker] if brokers is None else brokers,
            manager=manager,
            config=LitePullConfig(auto_commit=False),
        )
        request.addfinalizer(consumer.shutdown)
        return consumer

    return make


@pytest.fixture
def queue_of_t(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 0)])


@pytest.mark.conformance("D4")
@pytest.mark.parametrize("posted", [False, True], ids=["registered", "posted"])
@pytest.mark.parametrize("language", NARROW)
def test_a_held_pull_by_the_former_subscription_passes_no_message_of_the_new_one(
    broker, make_consumer, queue_of_t, language, posted
):
    heard = Heard()
    config = ConsumerConfig(post_subscription_when_pull=posted)
    consumer = make_consumer(listener=heard, config=config)
    consumer.subscribe("T", NARROW[language])
    consumer.start()
    turn(consumer)
    consumer.subscribe("T", WIDE[language])
    broker.send(Message("T", b"new", tags="B"), 0)
    pull_until(consumer, lambda: heard.bodies == [b"new"])


def test_a_lite_pull_consumer_gets_what_its_new_subscription_names(broker, make_lite, queue_of_t):
    consumer = make_lite()
    consumer.subscribe("T", "A")
    consumer.start()
    turn(consumer)
    consumer.subscribe("T", "A || B")
    broker.send(Message("T", b"new", tags="B"), 0)
    bodies: list[bytes] = []

    def polled() -> bool:
        pull_what_is_there(consumer)
        bodies.extend(message.body for message in consumer.poll(0))
        return bodies == [b"new"]

    eventually(polled)


@pytest.mark.parametrize("kind", ["push", "lite"])
@pytest.mark.parametrize(
    "status", [PullStatus.NO_MATCHED_MSG, PullStatus.NO_NEW_MSG, PullStatus.FOUND]
)
def test_an_answer_to_the_former_subscription_moves_nothing(
    broker, make_consumer, make_lite, queue_of_t, kind, status
):
    broker.send(Message("T", b"old", tags="A"), 0)
    old = broker.view.get_message("T", 0, 0, 1).messages
    keeps, heard = Keeps(broker), Heard()
    if kind == "push":
        consumer: Any = make_consumer(listener=heard, brokers=[keeps])
    else:
        consumer = make_lite([keeps])
    consumer.subscribe("T", "A")
    consumer.start()
    turn(consumer)
    [(_, answer)] = keeps.kept
    consumer.subscribe("T", "A || B")
    answer(answer_of(status, old if status is PullStatus.FOUND else ()))
    pull_what_is_there(consumer)
    wire, _ = keeps.kept[-1]
    version = consumer.rebalance.subscriptions["T"].sub_version
    assert (wire.queue_offset, wire.sub_version) == (0, version)
    known = consumer.offset_store.read_offset(QUEUE, ReadOffsetType.READ_FROM_MEMORY)
    assert known in (None, 0)
    assert consumer.rebalance.process_queues[QUEUE].msg_count == 0
    assert heard.bodies == []


class ChangesBetween(FailingBroker):
    """Has the subscription changed before the second pull of T."""

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self.pulls = 0
        self.change: Any = None

    def pull_async(self, wire: Any, answer: Any) -> None:
        self.pulls += wire.topic == "T"
        if self.pulls == 2 and wire.topic == "T":
            self.change()
        self.broker.pull_async(wire, answer)


def test_a_pull_of_more_by_the_former_subscription_is_done_again(broker, make_consumer, queue_of_t):
    for n in range(32):
        broker.send(Message("T", b"%d" % n, tags="A"), 0)
    for n in range(32, 42):
        broker.send(Message("T", b"%d" % n, tags="AB"[n % 2]), 0)
    heard, changes = Heard(), ChangesBetween(broker)
    consumer = make_consumer(listener=heard, brokers=[changes])
    consumer.subscribe("T", "A")
    changes.change = lambda: consumer.subscribe("T", "A || B")
    consumer.start()
    consumer.instance.pull_service._ident = threading.get_ident()
    turn(consumer)
    assert changes.pulls > 1
    consumer.hand_over()
    pull_until(consumer, lambda: len(heard.bodies) == 42)
    assert sorted(map(int, heard.bodies)) == list(range(42))


def test_a_changed_subscription_is_newer_although_the_clock_was_set_back(
    broker, make_consumer, clock, queue_of_t
):
    consumer = make_consumer()
    consumer.start()
    clock.advance(60_000)
    turn(consumer)  # the round gives the subscription a version
    known = consumer.announced("T").sub_version
    clock.advance(-3_600_000)
    consumer.subscribe("T", "A")
    assert consumer.announced("T").sub_version > known
