"""A topic whose messages were stored a minute apart, and a group that has read half of it."""

import json
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.offsets.committed import by_group
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.readonly import StoreView
from tests.support.aged_store import fill

START = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC, when message 0 of both queues was stored."""


class Answers(NamedTuple):
    """A broker as far as administration asks one: no EmbeddedBroker is needed."""

    name: str
    known: dict[str, Any]
    known_groups: dict[str, Any]
    root: Path

    def topics(self):
        return self.known

    def topic(self, name):
        return self.known.get(name)

    def groups(self):
        return self.known_groups

    def consumer_connection(self, group):
        return []

    def consumer_offsets(self, group=None):
        table = by_group(ProgressFile(self.root).read().offsets())
        return {key: dict(found) for key, found in table.items() if group in (None, key[0])}


class Asked(NamedTuple):
    """What admin functions ask: the files of the store, and a broker."""

    view: StoreView
    broker: Answers


@pytest.fixture
def orders(store):
    """Queue 0 has 10 messages, queue 1 has 5; group g has read 5 of queue 0 and nothing of 1."""
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
    lines = []
    for n in range(10):
        line = {"at": str(START + n * 60_000), "topic": "orders", "body": f"order {n}"}
        lines += [json.dumps({**line, "queue": 0})]
        lines += [json.dumps({**line, "queue": 1})] * (n < 5)
    fill(store, lines)
    with EmbeddedBroker.open(store) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 5)])
    return store


@contextmanager
def asking(root):
    """The files of a store and a broker that answers from them."""
    with EmbeddedBroker.open(root, read_only=True) as broker:
        answers = Answers("broker-x", dict(broker.topics()), dict(broker.groups()), root)
    with StoreView.open(root) as view:
        yield Asked(view, answers)


@pytest.fixture
def ask():
    """Opens what admin functions ask of any store, as it is then: ``view, broker = ask(root)``."""
    with ExitStack() as opened:
        yield lambda root: opened.enter_context(asking(root))


@pytest.fixture
def asked(orders):
    """The two."""
    with asking(orders) as found:
        yield found


@pytest.fixture
def offsets_of(orders):
    """The offsets of a group by queue, from the file."""

    def read(group="g", topic="orders"):
        table = ProgressFile(orders).read()
        return {
            queue_id: progress.offset
            for queue_id, progress in table.queues.get(topic_at_group(topic, group), {}).items()
        }

    return read
