"""Our broker in this process, and a push consumer that reads all messages of a topic.

The counterparts of ``java_peer.Cluster`` and ``drain`` of ``java/Bench.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig
from storage.configs.topics import TopicConfig
from storage.format.message import MessageExt

from .run import NotMeasurableError

QUEUES: Final = 4
_PATIENCE_S: Final = 300.0


@contextmanager
def our_broker(root: Path, topic: str) -> Iterator[EmbeddedBroker]:
    """A broker of ours with a new store and a topic."""
    create_store(root)
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig(topic, QUEUES, QUEUES))
        yield broker


def drain(
    broker: EmbeddedBroker, topic: str, group: str, count: int, *, fail_once: bool = False
) -> float:
    """Let a new group consume ``count`` messages, with the defaults of a push consumer.

    ``fail_once`` makes each fail the first time, and come again after a second. Gives the
    seconds from the first message to the last success, as RocketMQ's time is taken.
    """
    done = threading.Event()
    counting = threading.Lock()
    began: list[float] = []
    heard = 0

    def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        nonlocal heard
        if not began:
            began.append(perf_counter())
        if fail_once and not messages[0].reconsume_times:
            context.delay_level_when_next_consume = 1
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        with counting:
            heard += len(messages)
            if heard >= count:
                done.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    client = ClientConfig(instance_name=group)
    consumer = PushConsumer(group, brokers=[broker], client_config=client, config=config)
    consumer.subscribe(topic)
    consumer.register_message_listener(listen)
    with consumer:
        if not done.wait(_PATIENCE_S):
            raise NotMeasurableError(f"only {heard} of {count} messages came")
        return perf_counter() - began[0]
