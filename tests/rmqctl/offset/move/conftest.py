"""A topic whose messages were stored a minute apart, and a group that has read half of it."""

import json

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from tests.support.aged_store import fill
from tests.support.cli import run

START = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC, when message 0 of both queues was stored."""
MINUTE = 60_000


@pytest.fixture
def orders(store):
    """Queue 0 has 10 messages, queue 1 has 5; group g has read 5 of queue 0 and nothing of 1."""
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
    lines = []
    for n in range(10):
        line = {"at": str(START + n * MINUTE), "topic": "orders", "body": f"order {n}"}
        line |= {"key": f"k{n}", "tag": "ab"[n % 2]}
        lines += [json.dumps({**line, "queue": 0})]
        lines += [json.dumps({**line, "queue": 1})] * (n < 5)
    fill(store, lines)
    with EmbeddedBroker.open(store) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 5)])
    return store


@pytest.fixture
def offsets(orders):
    """The committed offsets of a group in topic orders, as the program lists them."""

    def read(group="g", topic="orders"):
        rows = run("offset", "list", "-o", "json").json()
        return {
            row["queue_id"]: row["committed_offset"]
            for row in rows
            if (row["group"], row["topic"]) == (group, topic)
        }

    return read


@pytest.fixture
def aged():
    """Fill topic T of a store: time to body."""

    def put(root, bodies):
        lines = ({"at": at, "topic": "T", "queue": 0, "body": body} for at, body in bodies.items())
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig("T", 1, 1))
        fill(root, map(json.dumps, lines))

    return put
