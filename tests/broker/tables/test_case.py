"""Topics that differ only in case, on a file system that does not tell such names apart.

Links make one here, in the places that are looked at: a name in another case leads to the same
folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.errors import InvalidNameError
from broker.tables.shared_table import Update
from client.errors import SendFailedError
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message


def folding(root: Path) -> None:
    (root / "COMMITLOG").symlink_to("commitlog")


def test_a_topic_that_would_share_the_folder_of_another_one_is_refused(tmp_path: Path) -> None:
    with EmbeddedBroker.open(tmp_path / "s", create=True) as broker:
        folding(tmp_path / "s")
        with Producer("group", brokers=[broker]) as producer:
            producer.send(Message("Orders", b"1"))
            with pytest.raises(SendFailedError, match="differs from Orders only in case"):
                producer.send(Message("orders", b"2"))
            producer.send(Message("Orders", b"3"))
        assert (tmp_path / "s/consumequeue/Orders").is_dir()
        with pytest.raises(InvalidNameError, match="choose another name"):
            broker.update_topic(TopicConfig("ORDERS", 4, 4))
        with pytest.raises(InvalidNameError, match="only in case"):
            broker._topics.update_all(
                [update(TopicConfig("new", 1, 1)), update(TopicConfig("NEW", 1, 1))]
            )
        assert {"new", "NEW", "ORDERS"}.isdisjoint(broker.topics())


def test_elsewhere_both_are_topics(tmp_path: Path) -> None:
    with (
        EmbeddedBroker.open(tmp_path / "s", create=True) as broker,
        Producer("group", brokers=[broker]) as producer,
    ):
        producer.send(Message("Orders", b"1"))
        producer.send(Message("orders", b"2"))
        assert {"Orders", "orders"} <= set(broker.topics())


def update(item: TopicConfig) -> Update[TopicConfig]:
    return Update(item, {})
