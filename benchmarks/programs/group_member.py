"""A push consumer that reports each change of its queues.

``group_member ROOT GROUP TOPIC CLIENT``: when a line comes it starts, and prints a line of JSON
for each change of its queues: its time (ns of the monotonic clock), and the ids of the queues. The
first line is the time of its start. Leaves when its input ends.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyStatus
from client.push.push_consumer import PushConsumer
from client.runtime.client_config import ClientConfig


class _Changes(logging.Handler):
    """Notes taken and given up queues from the log."""

    def __init__(self, topic: str) -> None:
        super().__init__(logging.INFO)
        self._topic = topic
        self._queues: set[int] = set()

    def emit(self, record: logging.LogRecord) -> None:
        taken = record.msg.startswith("took a queue")
        if not taken and not record.msg.startswith("gave up a queue"):
            return
        args: Any = record.args
        queue = args[1]
        if queue.topic == self._topic:
            change = self._queues.add if taken else self._queues.discard
            change(queue.queue_id)
            print(json.dumps([time.monotonic_ns(), sorted(self._queues)]), flush=True)


def main(root: str, group: str, topic: str, client: str) -> None:
    log = logging.getLogger("rmqctl.client.rebalance")
    log.setLevel(logging.INFO)
    log.addHandler(_Changes(topic))
    with EmbeddedBroker.open(root) as broker:
        consumer = PushConsumer(
            group,
            brokers=[broker],
            client_config=ClientConfig(instance_name=client),
            config=ConsumerConfig(),
        )
        consumer.subscribe(topic)
        consumer.register_message_listener(
            lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        )
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps([time.monotonic_ns(), []]), flush=True)
        with consumer:
            sys.stdin.read()


main(*sys.argv[1:])
