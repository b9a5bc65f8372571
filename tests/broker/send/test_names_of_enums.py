"""Names that are members of an enum count as their text, in files as in records."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.api.send import RowColumns, SendOptions
from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from client.pull.lite_pull_consumer import LitePullConsumer
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from storage.readonly import StoreView
from storage.tools.fsck import fsck


class Names(str, Enum):  # noqa: UP042 - the form before 3.11, whose text is "Names.ORDERS"
    ORDERS = "orders"
    TAG = "a"
    KEY = "k1"
    PROPERTY = "color"
    VALUE = "red"
    GROUP = "g"


class StrNames(StrEnum):
    ORDERS = "orders"
    TAG = "a"
    KEY = "k1"
    PROPERTY = "color"
    VALUE = "red"
    GROUP = "g"


def assigned(topic: str) -> Message:
    message = Message("other", b"x")
    message.topic = topic
    return message


def row(topic: Any) -> RowColumns:
    return RowColumns(topic, [b"x"], [0], [b""], [None], [""], [0])


NAMES = pytest.mark.parametrize("names", [Names, StrNames])
WAYS: dict[str, Callable[[EmbeddedBroker, str], object]] = {
    "message": lambda broker, topic: broker.send(Message(topic, b"x"), 0),
    "assigned": lambda broker, topic: broker.send(assigned(topic), 0),
    "delayed": lambda broker, topic: broker.send(Message(topic, b"x", delay_time_level=1), 0),
    "batch": lambda broker, topic: broker.send_batch([assigned(topic), Message("orders", b"y")], 0),
    "column": lambda broker, topic: broker.send_column(topic, [b"x"], 0),
    "row": lambda broker, topic: broker.send_rows(row(topic)),
    "rows": lambda broker, topic: broker.send_rows(row([topic])),
    "settings": lambda broker, topic: broker.update_topic(TopicConfig(topic)),
}


@NAMES
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_topic_is_its_text(open_broker, root, names, way, is_known):
    broker = open_broker()
    if is_known:
        broker.send(Message("orders", b"before"), 0)
    WAYS[way](broker, names.ORDERS)
    options = SendOptions(born_timestamp=1)  # so that some learn from the messages before
    result = [broker.send(Message(names.ORDERS, b"y"), 0, options) for _ in range(3)][-1]
    assert type(result.message_queue.topic) is str
    assert {type(topic) for topic in broker.topics()} == {str}
    assert {type(topic) for topic, _ in broker.view.queues()} == {str}
    found = broker.pull(PullRequest("g", "orders", 0, 0)).messages
    assert len(found) == result.queue_offset + 1
    folders = {path.name for path in (root / "consumequeue").iterdir()}
    assert folders - {"SCHEDULE_TOPIC_XXXX"} == {"orders"}
    broker.close()
    with StoreView.open(root) as view:
        assert fsck(view).findings == []


@NAMES
def test_tags_keys_and_properties_are_their_texts(broker, names):
    properties = {names.PROPERTY: names.VALUE}
    given = Message("orders", b"x", tags=names.TAG, keys=names.KEY, properties=properties)
    broker.send(given, 0)
    later = Message("orders", b"x")
    later.properties |= {"TAGS": names.TAG, "KEYS": names.KEY, **properties}
    broker.send(later, 0)
    broker.send_column("orders", [b"x"], 0, properties=later.properties, keys=None)
    found = broker.pull(PullRequest("g", "orders", 0, 0)).messages
    assert [m.tags for m in found] == ["a"] * 3
    assert [m.keys for m in found] == [("k1",)] * 3
    assert [m.properties["color"] for m in found] == ["red"] * 3
    assert len(broker.query_message("orders", names.KEY).messages) == 3


@NAMES
def test_producers_and_consumers_take_names_as_their_texts(broker, root, names):
    with Producer(names.GROUP, brokers=[broker]) as producer:
        for _ in range(4):
            producer.send(Message(names.ORDERS, b"x"))
        queues = producer.fetch_publish_message_queues(names.ORDERS)
    queue = MessageQueue(names.ORDERS, broker.name, 0)
    with LitePullConsumer(names.GROUP, brokers=[broker]) as consumer:
        assert consumer.fetch_subscribe_message_queues(names.ORDERS) == queues
        consumer.assign([queue])
        consumer.seek(queue, 0)
        assert [m.topic for m in consumer.poll(5_000)] == ["orders"]
        consumer.poll(0)  # what the last poll gave is consumed now
        consumer.commit()
    broker.update_consumer_offsets(names.GROUP, [OffsetCommit(names.ORDERS, 1, 1)])
    broker.update_group(SubscriptionGroupConfig(names.GROUP, retry_queue_nums=2))
    assert broker.consumer_offsets("g") == {("g", "orders"): {0: 1, 1: 1}}
    broker.close()
    table = (root / "config" / "consumerOffset.json").read_text()
    assert re.findall(r"[\w.]+@[\w.]+", table) == ["orders@g"]
