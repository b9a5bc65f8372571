"""Another process with a running push consumer, that reports to a test what it got and has.

with consumer_puppet(root, "g", "a") as puppet:
    puppet.call("wait_for", count=10)
"""

from __future__ import annotations

import time
from pathlib import Path

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER
from tests.support.consumers import Heard, eventually
from tests.support.puppet import Puppet, obey


def consumer_puppet(root: Path, group: str, name: str, *, orderly: bool = False) -> Puppet:
    """Start the process, and a consumer of T in it that has its own threads."""
    puppet = Puppet("tests.support.consumer_puppet")
    return puppet.begin("start", root=str(root), group=group, name=name, orderly=orderly)


class _Commands:
    """The puppet's end. Each method is a command."""

    def start(self, root: str, group: str, name: str, orderly: bool) -> None:
        self._broker = EmbeddedBroker.open(root, BrokerConfig())
        self._consumer = PushConsumer(
            group,
            brokers=[self._broker],
            client_config=ClientConfig(instance_name=name),
            config=ConsumerConfig(consume_thread_min=4, consume_thread_max=4),
            manager=CLIENT_MANAGER,
        )
        self._consumer.subscribe("T")
        self._heard = Heard(
            lambda messages, context: (
                ConsumeOrderlyStatus.SUCCESS
                if orderly
                else ConsumeConcurrentlyStatus.CONSUME_SUCCESS
            )
        )
        if orderly:
            self._consumer.register_message_listener_orderly(self._heard)
        else:
            self._consumer.register_message_listener(self._heard)
        self._consumer.start()

    def wait_for(self, count: int) -> list[list[int]]:
        """Wait for messages; gives queue and offset of all that came."""
        self._heard.wait_for(count)
        return self.heard()

    def heard(self) -> list[list[int]]:
        return [[m.queue_id, m.queue_offset] for m in list(self._heard.messages)]

    def wait_for_queues(self, queues: list[int]) -> float:
        """Wait until it has these queues of T; gives when that was (CLOCK_MONOTONIC)."""
        eventually(lambda: self.queues() == queues, f"it has {self.queues()}")
        return time.monotonic()

    def queues(self) -> list[int]:
        return sorted(q.queue_id for q in self._consumer.process_queues if q.topic == "T")

    def persist(self) -> None:
        self._consumer.persist_consumer_offset()

    def shutdown(self) -> None:
        self._consumer.shutdown()
        self._broker.close()


if __name__ == "__main__":
    obey(_Commands())
