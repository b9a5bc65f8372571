"""Stores as brokers, and time that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from client.push.push_consumer import PushConsumer
from client.runtime.client_manager import ClientManager
from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support.consumers import Heard
from tests.support.failing_broker import FailingBroker
from tests.support.manual_time import ManualClock, ManualScheduler

OpenBroker = Callable[..., EmbeddedBroker]
MakeConsumer = Callable[..., PushConsumer]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def scheduler(clock: ManualClock) -> ManualScheduler:
    return ManualScheduler(clock)


@pytest.fixture
def manager(clock: ManualClock, scheduler: ManualScheduler) -> ClientManager:
    """A manager whose clients do nothing by themselves: all timers are ``scheduler``'s."""
    return ClientManager(clock=clock, schedulers=scheduler.part, threads=False)


@pytest.fixture
def open_broker(tmp_path: Path, clock: ManualClock) -> Iterator[OpenBroker]:
    """Open brokers by name, each over a store of its own; all are closed after the test."""
    opened: list[EmbeddedBroker] = []

    def open_one(name: str = "broker-a", **settings: Any) -> EmbeddedBroker:
        root = tmp_path / name
        if not root.exists():
            MessageStore.create(root, SMALL_STORE)
        config = BrokerConfig(broker_name=name, **settings)
        opened.append(EmbeddedBroker.open(root, config, clock=clock.now_ms))
        return opened[-1]

    yield open_one
    for broker in opened:
        broker.close()


@pytest.fixture
def broker(open_broker: OpenBroker) -> EmbeddedBroker:
    return open_broker()


@pytest.fixture
def a(open_broker: OpenBroker, clock: ManualClock) -> FailingBroker:
    """One of two brokers that can be planned to fail."""
    return FailingBroker(open_broker("broker-a"), clock)


@pytest.fixture
def b(open_broker: OpenBroker, clock: ManualClock) -> FailingBroker:
    """The other one."""
    return FailingBroker(open_broker("broker-b"), clock)


@pytest.fixture
def make_consumer(
    broker: EmbeddedBroker, manager: ClientManager, request: pytest.FixtureRequest
) -> MakeConsumer:
    """Make consumers of T that only the test drives; all are shut down after the test."""

    def make(group: str = "g", topic: str = "T", **settings: Any) -> PushConsumer:
        listener = settings.pop("listener", None) or Heard()
        settings.setdefault("brokers", [broker])
        consumer = PushConsumer(group, manager=manager, **settings)
        consumer.subscribe(topic)
        consumer.register_message_listener(listener)
        request.addfinalizer(consumer.shutdown)
        return consumer

    return make
