"""Overviews of stores with many topics and groups do once what is the same for all of them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.cli import run

TOPICS = [f"topic{number}" for number in range(12)]


@pytest.fixture(scope="module")
def many(once):
    """Topics with a message each, that two groups have read, half of them without settings."""
    return once("many topics", make_many)


def make_many(folder: Path) -> Path:
    store = folder / "s"
    run("store", "init", store, "--small")
    run("topic", "create", *TOPICS, "--queues", 1, "-S", store)
    with EmbeddedBroker.open(store) as broker:
        for topic in TOPICS:
            broker.send(Message(topic, b"a"), 0)
        for group in ("one", "two"):
            read = [OffsetCommit(topic, 0, 1) for topic in TOPICS]
            broker.update_consumer_offsets(group, read)
    topics = store / "config/topics.json"
    for topic in TOPICS[:6]:
        topics.write_text(topics.read_text().replace(topic, f"gone{topic}"))
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("topic", "queues"),
        ("topic", "describe", *TOPICS),
        ("topic", "stats"),
        ("topic", "usage"),
        ("offset", "list"),
        ("lag", "show"),
        ("store", "du"),
    ],
    ids=" ".join,
)
def test_the_queues_of_a_store_are_listed_a_few_times_not_for_each_topic(many, command):
    listings = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal listings
        listings += event == "call" and frame.f_code is StoreView.queues.__code__

    sys.setprofile(count)
    try:
        result = run(*command, "-o", "jsonl", "-S", many)
    finally:
        sys.setprofile(None)
    assert result.code == 0, result.err
    assert all(topic in result.out for topic in TOPICS)
    assert 0 < listings <= 6
