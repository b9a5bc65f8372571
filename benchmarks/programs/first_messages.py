"""Sends ``argv[2]`` messages of 1 KiB in batches of ``argv[3]`` (1: one by one) to a new store in
``argv[1]``; prints the seconds from the first send on."""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks.workload import bodies_of, to_be_sent
from broker.api.send import SendStatus
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.producer.producer import Producer

count, batch = int(sys.argv[2]), int(sys.argv[3])
bodies = bodies_of(1024)
create_store(sys.argv[1])
with EmbeddedBroker.open(sys.argv[1]) as broker, Producer("first", brokers=[broker]) as producer:
    start = perf_counter()
    for first in range(0, count, batch):
        messages = to_be_sent(bodies, first, batch)
        result = producer.send(messages if batch > 1 else messages[0])
        if result.send_status is not SendStatus.SEND_OK:
            raise SystemExit(f"not acknowledged: {result}")
    print(perf_counter() - start)
