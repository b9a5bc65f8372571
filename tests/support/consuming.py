"""Push consumers at work: a topic to consume, a listener that gets stuck, what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from broker.api.offsets import OffsetCommit
from broker.members.queue_lock import QueueLocks
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.offset_store.offset_store import ReadOffsetType
from storage.configs.topics import TopicConfig
from storage.format.message import (
    PROPERTY_REAL_TOPIC,
    SCHEDULE_TOPIC,
    Message,
    MessageExt,
    MessageQueue,
)
from storage.format.properties import MAX_PROPERTIES_LENGTH, encode_properties
from tests.support.consumers import PATIENCE_S, Heard, turn

QUEUE = MessageQueue("T", "broker-a", 0)
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def queue_of(broker: Any, count: int, *, begin: int | None = None) -> None:
    """A topic of one queue with messages 0..count-1; group g has consumed what is before begin."""
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_column("T", [b"%d" % n for n in range(count)], 0)
    if begin is not None:
        broker.update_consumer_offsets("g", [OffsetCommit("T", 0, begin)])


def progress(consumer: Any, queue: MessageQueue = QUEUE) -> int | None:
    process_queue = consumer.rebalance.process_queues.get(queue)
    if process_queue is not None:
        consumer.consume_service.settle(process_queue, queue)
    known = consumer.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
    assert known is None or isinstance(known, int)
    return known


def in_work(consumer: Any, queue: MessageQueue = QUEUE) -> int:
    process_queue = consumer.rebalance.process_queues[queue]
    consumer.consume_service.settle(process_queue, queue)
    return int(process_queue.msg_count)


def full_of_properties(broker: Any, room: int = 0, topic: str = "T", **properties: str) -> Message:
    """Make a message that is accepted with properties of 32,767 bytes, less ``room``."""
    made = {"UNIQ_KEY": "id", **properties, "pad": "x"}
    size = len(encode_properties({**made, "CLUSTER": broker.config.broker_cluster_name}))
    made["pad"] *= MAX_PROPERTIES_LENGTH - size - room + 1
    return Message(topic, b"full", properties=made)


def sent_back(broker: Any, level: int = 3) -> list[MessageExt]:
    """What waits for its next attempt at a delay level."""
    found = broker.view.get_message(SCHEDULE_TOPIC, level - 1, 0, 32, tags=None).messages
    return [m for m in found if m.get_property(PROPERTY_REAL_TOPIC) == "%RETRY%g"]


@contextmanager
def locked_elsewhere(broker: Any, *queues: MessageQueue) -> Iterator[set[MessageQueue]]:
    """Lock queues of group g as a client of another process; gives those that it gets."""
    locks = QueueLocks(broker.view.root, lambda: 0)
    try:
        yield locks.lock("g", "elsewhere", queues, remote=False)
    finally:
        locks.close()


class Door:
    """An answer that stays in the listener for some offsets until it is opened."""

    def __init__(self, *offsets: int, answer: Any = SUCCESS) -> None:
        self.offsets = offsets
        self.opened = threading.Event()
        self.answer = answer

    def __call__(self, messages: Sequence[MessageExt], context: Any) -> Any:
        if any(message.queue_offset in self.offsets for message in messages):
            assert self.opened.wait(PATIENCE_S)
        return self.answer


def consume(
    make_consumer: Callable[..., Any], answer: Any = None, **settings: Any
) -> tuple[Any, Heard]:
    """Start a consumer and let it pull what is there."""
    heard = Heard() if answer is None else Heard(answer)
    brokers = settings.pop("brokers", None)
    more = {} if brokers is None else {"brokers": brokers}
    consumer = make_consumer(listener=heard, config=ConsumerConfig(**settings), **more)
    consumer.start()
    turn(consumer)
    return consumer, heard
