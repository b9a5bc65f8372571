"""Consumers that tests drive by hand, and listeners that note what they get."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from broker.api import Broker
from client.instance import ClientInstance
from client.listener import ConsumeConcurrentlyStatus
from storage.configs.topics import TopicConfig
from storage.model import Message, MessageExt

PATIENCE_S = 20.0


def eventually(condition: Callable[[], object], what: str = "it did not come true") -> None:
    """Wait until a condition holds that other threads or processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.002)


class Heard:
    """A concurrent listener; ``answer`` says what becomes of messages, ``at_work`` is called
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


class HasInstance(Protocol):
    @property
    def instance(self) -> ClientInstance: ...


def pull_what_is_there(consumer: HasInstance) -> int:
    """Run the pull service until it has nothing to do; gives the number of pull requests."""
    pulls = 0
    while consumer.instance.pull_service.run_once():
        pulls += 1
    return pulls


def rebalance(*consumers: HasInstance) -> None:
    """Let each client do a round of rebalance."""
    for consumer in consumers:
        consumer.instance.rebalance_service.run_once()


def turn(*consumers: HasInstance) -> None:
    """Let each client rebalance, then pull what is there."""
    rebalance(*consumers)
    for consumer in consumers:
        pull_what_is_there(consumer)
