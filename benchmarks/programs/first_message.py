"""Makes a store in a new folder, sends one message, prints the result."""

from __future__ import annotations

import sys

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.producer.producer import Producer
from storage.format.message import Message

create_store(sys.argv[1])
with EmbeddedBroker.open(sys.argv[1]) as broker, Producer("first", brokers=[broker]) as producer:
    print(producer.send(Message("cold", bytes(100))).send_status, flush=True)
