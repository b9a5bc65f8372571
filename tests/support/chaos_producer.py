"""A producer for chaos runs: sends single messages and batches at a pace, and writes down what was
acknowledged.

``python -m tests.support.chaos_producer ROOT JOURNAL NAME PER_SECOND SEED``; ends in an orderly way
when its standard input does.
"""

from __future__ import annotations

import random
import select
import sys
import time
from pathlib import Path

from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from client.runtime.client_config import ClientConfig
from storage.format.message import Message
from tests.support.chaos_journal import JournalWriter

TOPIC = "T"
TURN_S = 0.02
BATCH = 16


def main(root: str, path: str, name: str, per_second: str, seed: str) -> None:
    journal = JournalWriter(Path(path))
    chance = random.Random(seed)
    sent = 0

    def message() -> Message:
        nonlocal sent
        sent += 1
        return Message(TOPIC, f"{name}-{sent}".encode(), keys=f"{name}-{sent}")

    with (
        EmbeddedBroker.open(root) as broker,
        Producer("p", brokers=[broker], client_config=ClientConfig(instance_name=name)) as producer,
    ):
        journal.note("in")
        began = time.monotonic()
        while not select.select([sys.stdin], [], [], TURN_S)[0]:
            due = (time.monotonic() - began) * float(per_second)
            while sent < due:
                batch = [message() for _ in range(BATCH if chance.random() < 0.05 else 1)]
                result = producer.send(batch if len(batch) > 1 else batch[0])
                queue_id = result.message_queue.queue_id
                for offset, one in enumerate(batch, result.queue_offset):
                    journal.note("sent", TOPIC, queue_id, offset, one.body.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
