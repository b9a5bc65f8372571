"""Sends messages that carry the time at a pace; one after the other, or many with one call.

``paced_producer ROOT TOPIC PER_SECOND AT_ONCE COUNT``: prints "ready" and begins when a line comes;
COUNT 0 means until its input ends. Prints the number of messages, and the seconds.
"""

from __future__ import annotations

import select
import sys
import time

from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from storage.format.message import Message


def main(root: str, topic: str, per_second: float, at_once: int, count: int) -> None:
    pad = bytes(1016)
    sent = 0
    with EmbeddedBroker.open(root) as broker, Producer("paced", brokers=[broker]) as producer:
        producer.fetch_publish_message_queues(topic)
        print("ready", flush=True)
        sys.stdin.readline()
        start = time.monotonic()
        while sent < count or not count:
            pause = start + sent / per_second - time.monotonic()
            if count:
                time.sleep(max(0.0, pause))
            elif select.select([sys.stdin], [], [], max(0.0, pause))[0]:
                break
            made = [
                Message(topic, time.monotonic_ns().to_bytes(8, "big") + pad) for _ in range(at_once)
            ]
            producer.send(made[0] if at_once == 1 else made)
            sent += at_once
        print(sent, time.monotonic() - start)


main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
