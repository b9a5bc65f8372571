"""Consumers that tests drive by hand, and listeners that note what they get."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from broker.api.broker import Broker
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from client.listener.listener import ConsumeConcurrentlyStatus
from client.runtime.instance import ClientInstance
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageExt
from storage.store import MessageStore
from tests.support.manual_time import ManualClock
from tests.support.samples import TINY

PATIENCE_S = 20.0


def eventually(condition: Callable[[], object], what: str = "it did not come true") -> None:
    """Wait until a condition holds that other threads or processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.002)


class Heard:
    """A concurrent listener; ``answer`` gives the results of messages, ``at_work`` is called
    first. With an orderly consumer, ``answer`` gives ConsumeOrderlyStatus."""

    def __init__(
        self,
        answer: Callable[[Sequence[MessageExt], Any], Any] = lambda messages, context: (
            ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        ),
    ) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self.messages: list[MessageExt] = []
        self.contexts: list[Any] = []

    def consume_message(self, messages: Sequence[MessageExt], context: Any) -> Any:
        with self._lock:
            self.messages.extend(messages)
            self.contexts.append(context)
        return self._answer(messages, context)

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.messages]

    def wait_for(self, count: int) -> None:
        eventually(lambda: len(self.messages) >= count, f"{count} messages did not come")


def fill(broker: Broker, count: int = 10, topic: str = "T", queues: int = 2) -> None:
    """Send messages 0, 1, ... to the queues in turn; the topic is made if need be."""
    if broker.topic(topic) is None:
        broker.update_topic(TopicConfig(topic, queues, queues))
    for n in range(count):
        broker.send(Message(topic, b"%d" % n), n % queues)


def aged_broker(root: Path, clock: ManualClock, **settings: Any) -> EmbeddedBroker:
    """Open a broker whose queue 0 of T begins at an offset above 0: older files are gone."""
    config = TINY.with_(delete_when="", file_reserved_time_hours=2, disk_max_used_space_ratio=100)
    MessageStore.create(root, config)
    broker = EmbeddedBroker.open(
        root, BrokerConfig(**settings), store_config=config, clock=clock.now_ms
    )
    broker.update_topic(TopicConfig("T", 1, 1))
    for n in range(60):
        broker.send(Message("T", b"%d" % n + bytes(500)), 0)
    long_ago = clock.now_ms() / 1000 - 3 * 3600
    for path in (root / "commitlog").iterdir():
        os.utime(path, (long_ago, long_ago))
    assert broker.store is not None
    while broker.store.clean(manual=True).log_files:
        pass
    assert broker.min_offset("T", 0) > 0
    return broker


class HasInstance(Protocol):
    @property
    def instance(self) -> ClientInstance: ...


def pull_what_is_there(consumer: HasInstance) -> int:
    """Run the pull service until it has nothing to do; gives the number of pull requests."""
    pulls = 0
    while consumer.instance.pull_service.run_once():
        pulls += 1
    return pulls


def pull_until(consumer: HasInstance, condition: Callable[[], object]) -> None:
    """Run the pull service until a condition holds; held pulls come back from other threads."""

    def holds() -> object:
        pull_what_is_there(consumer)
        return condition()

    eventually(holds)


def rebalance(*consumers: HasInstance) -> None:
    """Let each client do a round of rebalance."""
    for consumer in consumers:
        consumer.instance.rebalance_service.run_once()


def turn(*consumers: HasInstance) -> None:
    """Let each client rebalance, then pull what is there."""
    rebalance(*consumers)
    for consumer in consumers:
        pull_what_is_there(consumer)
