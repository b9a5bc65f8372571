"""Clients with a broker of their own, which also runs its timed services."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.producer.producer import Producer
from client.pull.pull_consumer import PullConsumer
from client.push.push_consumer import PushConsumer
from storage.config import SMALL_STORE
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.consumers import PATIENCE_S, Heard, eventually


@pytest.fixture
def root(tmp_path: Path) -> Path:
    MessageStore.create(tmp_path / "store", SMALL_STORE)
    return tmp_path / "store"


@pytest.mark.slow
@pytest.mark.conformance("H1", "H9")
def test_a_retry_comes_back_without_any_other_process(root: Path) -> None:
    attempts: list[int] = []
    again = threading.Event()

    def listen(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
        attempts.append(messages[0].reconsume_times)
        if not attempts[-1]:
            context.delay_level_when_next_consume = 1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        again.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with Producer.open(root, "p") as producer:
        producer.send(Message("T", b"x"))
    consumer = PushConsumer.open(root, "g", ConsumerConfig())
    consumer.subscribe("T")
    consumer.register_message_listener(listen)
    with consumer:
        assert again.wait(PATIENCE_S), "nobody has delivered the retry"
    assert attempts == [0, 1]


@pytest.mark.parametrize("client", [Producer, PushConsumer, PullConsumer])
def test_one_of_a_store_delivers_and_the_next_takes_over(root: Path, client: Any) -> None:
    first, second = client.open(root, "one"), client.open(root, "two")
    eventually(lambda: first._owned.elected)
    assert not second._owned.elected
    first.shutdown()
    eventually(lambda: second._owned.elected)
    second.shutdown()


def test_a_store_that_rmqctl_did_not_make_is_delivered_from_only_on_request(root: Path) -> None:
    shutil.rmtree(root / "rmqctl")
    producer = Producer.open(root, "p")
    broker = producer._owned
    assert isinstance(broker, EmbeddedBroker)
    assert len(broker._service_threads) == 1, "more than its own work"
    producer.shutdown()


@pytest.mark.slow
def test_an_ordinary_life_has_nothing_to_warn_of(root: Path, caplog: Any) -> None:
    with Producer.open(root, "p") as producer:
        for number in range(10):
            producer.send(Message("T", b"%d" % number))
    for expected in (11, 1, 1):
        heard = Heard()
        first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        consumer = PushConsumer.open(root, "g", ConsumerConfig(consume_from_where=first))
        consumer.subscribe("T")
        consumer.register_message_listener(heard)
        with consumer, Producer.open(root, "p") as producer:
            producer.send(Message("T", b"more"))
            heard.wait_for(expected)
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []
