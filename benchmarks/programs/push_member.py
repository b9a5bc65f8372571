"""A push consumer in its own process: measures the age of messages, then the cost of idling.

``push_member ROOT GROUP TOPIC COUNT IDLE_SECONDS``: prints "ready" when it has its queues, after
COUNT messages and IDLE_SECONDS one line of JSON: latencies in ns, CPU seconds of the idle time.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence

from broker.api.offsets import ConsumeFromWhere
from broker.embedded.broker import EmbeddedBroker
from client.consumer.consumer_config import ConsumerConfig
from client.listener.listener import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from client.push.push_consumer import PushConsumer
from storage.format.message import MessageExt


def main(root: str, group: str, topic: str, count: int, idle_seconds: float) -> None:
    latencies: list[int] = []
    enough = threading.Event()

    def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        now = time.monotonic_ns()
        latencies.extend(
            now - int.from_bytes(message.body[:8], "big")
            for message in messages
            if message.tags != "untimed"
        )
        if len(latencies) >= count:
            enough.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    config = ConsumerConfig(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    with EmbeddedBroker.open(root) as broker:
        consumer = PushConsumer(group, brokers=[broker], config=config)
        consumer.subscribe(topic)
        consumer.register_message_listener(listen)
        with consumer:
            consumer.do_rebalance()
            print("ready", flush=True)
            enough.wait()
            time.sleep(min(1.0, idle_seconds))  # work left by the messages is not idling
            cpu = time.process_time()
            time.sleep(idle_seconds)
            cpu = time.process_time() - cpu
    print(json.dumps({"latencies": latencies[:count], "cpu": cpu}))


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
