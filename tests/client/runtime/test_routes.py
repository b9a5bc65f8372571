"""Queues of a topic over several brokers."""

from __future__ import annotations

import pytest

from client.errors import BrokerNotExistError, ClientConfigError
from client.runtime.routes import Routes
from storage.configs.topics import PERM_READ, PERM_WRITE, TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.failing_broker import DOWN, FailingBroker


def ids(queues):
    return [(queue.broker_name, queue.queue_id) for queue in queues]


@pytest.fixture
def a(open_broker):
    return open_broker("broker-a")


@pytest.fixture
def b(open_broker):
    return open_broker("broker-b")


@pytest.mark.conformance("A3", "A6")
def test_queues_are_sorted_by_broker_and_id_and_follow_the_permissions(a, b):
    b.update_topic(TopicConfig("T", read_queue_nums=3, write_queue_nums=2))
    a.update_topic(TopicConfig("T", read_queue_nums=1, write_queue_nums=1, perm=PERM_READ))
    routes = Routes([b, a])
    assert ids(routes.publish_queues("T")) == [("broker-b", 0), ("broker-b", 1)]
    assert ids(routes.subscribe_queues("T")) == [("broker-a", 0)] + [
        ("broker-b", queue_id) for queue_id in range(3)
    ]
    a.update_topic(TopicConfig("T", 1, 1, perm=PERM_WRITE))
    assert routes.refresh() == {"T"}
    assert ids(routes.subscribe_queues("T")) == [("broker-b", n) for n in range(3)]
    assert ids(routes.publish_queues("T")) == [("broker-a", 0), ("broker-b", 0), ("broker-b", 1)]


@pytest.mark.conformance("A6")
def test_a_topic_that_is_created_by_hand_is_on_the_chosen_brokers_only(a, b):
    b.update_topic(TopicConfig("T", 2, 2))
    routes = Routes([a, b])
    assert ids(routes.publish_queues("T")) == [("broker-b", 0), ("broker-b", 1)]
    assert [broker.name for broker in routes.brokers_of("T")] == ["broker-b"]


@pytest.mark.conformance("A6")
def test_an_unknown_topic_gets_four_queues_like_tbw102_on_each_broker(a, b):
    routes = Routes([a, b])
    expected = [(name, n) for name in ("broker-a", "broker-b") for n in range(4)]
    assert ids(routes.publish_queues("New")) == expected
    assert len(routes.publish_queues("Fewer", default_queue_nums=2)) == 4
    assert len(routes.publish_queues("Most", default_queue_nums=99)) == 2 * 8
    assert routes.subscribe_queues("New") == []
    # Only where a message comes first the topic is created, and that shows with the next refresh.
    b.send(Message("New", b"first"), 0)
    assert ids(routes.publish_queues("New")) == expected
    assert routes.refresh() == {"New"}
    assert ids(routes.publish_queues("New")) == [("broker-b", n) for n in range(4)]
    assert a.topic("New") is None


@pytest.mark.conformance("A6")
def test_no_topic_is_expected_of_brokers_that_create_none(open_broker):
    strict = open_broker("broker-a", auto_create_topic_enable=False)
    routes = Routes([strict])
    assert routes.publish_queues("New") == []
    lenient = open_broker("broker-b")
    routes.add(lenient)
    assert ids(routes.publish_queues("New")) == [("broker-b", n) for n in range(4)]


@pytest.mark.conformance("B10")
def test_a_refresh_finds_new_queues_and_brokers_and_tells_what_changed(a, b):
    a.update_topic(TopicConfig("T", 1, 1))
    a.update_topic(TopicConfig("Other", 1, 1))
    routes = Routes([a])
    assert len(routes.subscribe_queues("T")) == len(routes.subscribe_queues("Other")) == 1
    assert routes.refresh() == set()
    a.update_topic(TopicConfig("T", 2, 2))
    assert len(routes.subscribe_queues("T")) == 1
    assert routes.refresh() == {"T"}
    assert len(routes.subscribe_queues("T")) == 2
    b.update_topic(TopicConfig("Other", 1, 1))
    routes.add(b)
    assert len(routes.subscribe_queues("Other")) == 1
    assert routes.refresh() == {"Other"}
    assert ids(routes.subscribe_queues("Other")) == [("broker-a", 0), ("broker-b", 0)]
    routes.remove("broker-a")
    assert routes.refresh() == {"T", "Other"}
    assert ids(routes.publish_queues("Other")) == [("broker-b", 0)]
    with pytest.raises(BrokerNotExistError, match="broker-a; the client knows broker-b"):
        routes.broker("broker-a")


@pytest.mark.conformance("B10")
def test_a_broker_that_does_not_answer_keeps_the_queues_that_it_had(a, b):
    failing = FailingBroker(a)
    for broker in (a, b):
        broker.update_topic(TopicConfig("T", 1, 1))
    routes = Routes([failing, b])
    known = routes.publish_queues("T")
    failing.always("topic", DOWN)
    assert routes.refresh() == set()
    assert (
        routes.publish_queues("T")
        == known
        == [
            MessageQueue("T", "broker-a", 0),
            MessageQueue("T", "broker-b", 0),
        ]
    )
    assert ids(Routes([failing, b]).publish_queues("T")) == [("broker-b", 0)]


def test_queues_of_a_topic_to_be_created_vanish_with_their_broker(a, b):
    routes = Routes([a, b])
    routes.publish_queues("New")
    routes.remove("broker-a")
    assert routes.refresh() == {"New", "TBW102"}
    assert ids(routes.publish_queues("New")) == [("broker-b", n) for n in range(4)]


def test_two_brokers_of_one_name_are_refused(a, open_broker, tmp_path):
    routes = Routes([a])
    routes.add(a)
    with pytest.raises(ClientConfigError, match="two brokers are called broker-a"):
        routes.add(FailingBroker(a))
    assert routes.broker("broker-a") is a
