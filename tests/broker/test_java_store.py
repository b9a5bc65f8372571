"""A Java broker's names and settings, as far as its store contains them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import TopicNotExistError
from storage.configs.topics import system_topics
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.samples import TINY

USERS = {"Orders": {"perm": 6, "readQueueNums": 4, "writeQueueNums": 4, "topicName": "Orders"}}


def java_store(root: Path, cluster: str, name: str, *, auto_create: bool = True, more=()) -> Path:
    """The folder that a broker of these names leaves; ``more`` are topics that users made."""
    (root / "commitlog").mkdir(parents=True)
    (root / "config").mkdir()
    topics: dict[str, object] = {
        topic: {
            "order": False,
            "perm": found.perm,
            "readQueueNums": found.read_queue_nums,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic,
            "topicSysFlag": 0,
            "writeQueueNums": found.write_queue_nums,
        }
        for topic, found in system_topics(cluster, name, auto_create=auto_create).items()
    }
    topics |= {**USERS, **dict(more)}
    document = {"dataVersion": {"counter": 1, "timestamp": 1}, "topicConfigTable": topics}
    (root / "config" / "topics.json").write_text(json.dumps(document))
    return root


def test_names_are_those_of_its_own_topics(tmp_path: Path) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost")
    with EmbeddedBroker.open(root, read_only=True) as broker:
        assert (broker.config.broker_cluster_name, broker.name) == ("Prod", "myhost")
        assert not {"DefaultCluster", "DefaultCluster_REPLY_TOPIC", "broker-a"} & set(
            broker.topics()
        )


def test_what_is_written_there_has_them_and_no_topic_is_invented(tmp_path: Path) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost")
    known = set(json.loads((root / "config" / "topics.json").read_text())["topicConfigTable"])
    with EmbeddedBroker.open(root, store_config=TINY) as broker:
        broker.send(Message("New", b"x"))
        assert broker.view.get_message("New", 0, 0, 1) is not None
        found = [
            message.properties["CLUSTER"]
            for queue in range(4)
            for message in broker.view.get_message("New", queue, 0, 1).messages
        ]
    assert found == ["Prod"]
    written = json.loads((root / "config" / "topics.json").read_text())["topicConfigTable"]
    assert set(written) == known | {"New"}


def test_a_broker_that_makes_no_topics_by_itself_is_one_here_too(tmp_path: Path) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost", auto_create=False)
    with EmbeddedBroker.open(root, store_config=TINY) as broker:
        assert "TBW102" not in broker.topics()
        with pytest.raises(TopicNotExistError):
            broker.send(Message("New", b"x"))
        broker.send(Message("Orders", b"x"))


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ([], "myhost"),
        ([("likeit", {"perm": 7, "readQueueNums": 1, "writeQueueNums": 1})], "broker-a"),
        ([("broker-a", {"perm": 7, "readQueueNums": 1, "writeQueueNums": 1})], "broker-a"),
    ],
)
def test_what_may_be_one_name_or_another_is_not_guessed(tmp_path: Path, more, name: str) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost", more=more)
    with EmbeddedBroker.open(root, read_only=True) as broker:
        assert broker.name == name


def test_what_was_set_by_hand_wins(tmp_path: Path) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost")
    with EmbeddedBroker.open(root, BrokerConfig(broker_name="b"), read_only=True) as broker:
        assert broker.name == "b"


def test_a_store_of_ours_is_asked_nothing(tmp_path: Path) -> None:
    ours = tmp_path / "s"
    MessageStore.create(ours, TINY)
    java = java_store(tmp_path / "java", "Prod", "myhost")
    (ours / "config").mkdir(exist_ok=True)
    (ours / "config" / "topics.json").write_bytes((java / "config" / "topics.json").read_bytes())
    with EmbeddedBroker.open(ours, read_only=True) as broker:
        assert broker.name == "broker-a"


@pytest.mark.parametrize("text", ["", "{", '{"topicConfigTable":{"a":{"perm":"x"}}}'])
def test_a_damaged_topics_file_does_not_hinder_reading_the_broker_name(
    tmp_path: Path, text: str
) -> None:
    root = java_store(tmp_path / "s", "Prod", "myhost")
    (root / "config" / "topics.json").write_text(text)
    with EmbeddedBroker.open(root, read_only=True) as broker:
        assert broker.name == "broker-a"
