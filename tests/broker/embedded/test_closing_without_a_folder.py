"""A broker whose store folder was moved or deleted: close returns, and reports what was lost."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from rmqctl import ConsumeConcurrentlyStatus, PushConsumer
from storage.errors import StoreError
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.samples import SMALL

CLOSE_S = 3.0


def delete(root: Path) -> None:
    """In one step first: the broker writes below it meanwhile."""
    shutil.rmtree(root.rename(root.with_name("deleted")), ignore_errors=True)


def move(root: Path) -> None:
    root.rename(root.with_name("moved"))


def delete_own_files(root: Path) -> None:
    delete(root / "rmqctl")


GONE = pytest.mark.parametrize("gone", [delete, move, delete_own_files])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    MessageStore.create(root, SMALL)
    return root


def ends_in_time(close: Callable[[], None]) -> Any:
    """What ``close`` raised, or None; it is to come back within three seconds."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - checked by the test
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(CLOSE_S)
    assert not thread.is_alive(), "close hangs"
    return raised[0] if raised else None


@GONE
@pytest.mark.parametrize("services", [False, True])
def test_a_broker_alone(root, gone, services):
    broker = EmbeddedBroker.open(root, BrokerConfig())
    if services:
        broker.start_services()
    broker.send(Message("T", b"x"))
    gone(root)
    error = ends_in_time(broker.close)
    assert error is None or isinstance(error, StoreError), error
    ends_in_time(broker.close)  # twice is fine


@GONE
def test_a_broker_with_a_consumer_that_waits(root, gone):
    broker = EmbeddedBroker.open(root, BrokerConfig())
    broker.start_services()
    broker.send(Message("T", b"x"))
    got = threading.Event()

    def listen(messages, context):
        got.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer("g", brokers=[broker])
    consumer.subscribe("T", "*")
    consumer.register_message_listener(listen)
    consumer.start()
    broker.send(Message("T", b"y"))
    assert got.wait(20)
    gone(root)
    ends_in_time(consumer.shutdown)
    error = ends_in_time(broker.close)
    assert error is None or isinstance(error, StoreError), error


@pytest.mark.parametrize("gone", [delete, move])
def test_what_was_lost_is_raised(root, gone):
    broker = EmbeddedBroker.open(root, BrokerConfig())
    broker.send(Message("T", b"x"))
    gone(root)
    assert isinstance(ends_in_time(broker.close), StoreError)
