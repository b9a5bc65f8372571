"""Finding messages: by key, by unique id, by offset, by time."""

from __future__ import annotations

import pytest

from broker.api.broker import Broker
from broker.api.pull import MAX_TIMESTAMP
from broker.errors import BrokerSystemError
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.format.message_id import parse_offset_msg_id
from storage.read.by_time import Boundary


@pytest.fixture
def topic(broker: Broker) -> Broker:
    broker.update_topic(TopicConfig("T", 1, 1))
    return broker


@pytest.mark.conformance("A14")
def test_messages_are_found_by_each_of_their_keys(topic):
    topic.send_batch([Message("T", b"%d" % n, keys=[f"k{n}", "all"]) for n in range(70)])
    assert [m.body for m in topic.query_message("T", "k7").messages] == [b"7"]
    every = topic.query_message("T", "all")
    assert [m.body for m in every.messages] == [b"%d" % n for n in range(6, 70)]
    assert every.index_last_update_phyoffset == every.messages[-1].commitlog_offset
    assert every.index_last_update_timestamp == every.messages[-1].store_timestamp
    assert len(topic.query_message("T", "all", 3).messages) == 3
    assert len(topic.query_message("T", "all", 1000).messages) == 64
    assert topic.query_message("T", "none").messages == []
    assert topic.query_message("U", "all").messages == []
    assert topic.query_message("T", "all", 64, MAX_TIMESTAMP - 1).messages == []


def test_keys_of_equal_hash_come_along_and_clients_leave_them_out(topic):
    topic.send(Message("T", b"1", keys="AaBB"))
    topic.send(Message("T", b"2", keys="BBAa"))
    found = topic.query_message("T", "AaBB").messages
    assert [m.body for m in found] == [b"1", b"2"]
    assert [m.body for m in found if "AaBB" in m.keys] == [b"1"]


@pytest.mark.conformance("A14")
def test_every_copy_of_a_message_is_found_by_its_unique_id(topic):
    sent = topic.send(Message("T", b"1"))
    again = Message("T", b"2", properties={"UNIQ_KEY": sent.msg_id})
    topic.send(again)
    assert [m.body for m in topic.query_unique("T", sent.msg_id)] == [b"1", b"2"]
    assert topic.query_unique("T", "0" * 32) == []


@pytest.mark.conformance("A11")
def test_a_message_is_viewed_where_its_record_begins(topic):
    sent = topic.send(Message("T", b"here"))
    _, offset = parse_offset_msg_id(sent.offset_msg_id)
    found = topic.view_message(offset)
    assert found is not None
    assert found.body == b"here"
    assert topic.view_message(offset + 1) is None
    assert topic.view_message(1 << 40) is None


def test_offsets_are_found_by_time(root, open_broker):
    clock = iter(range(1_700_000_000_000, 1_800_000_000_000, 1000))
    moments = []

    def tick() -> int:
        moments.append(next(clock))
        return moments[-1]

    broker = open_broker(clock=tick)
    broker.update_topic(TopicConfig("T", 1, 1))
    times = [broker.send(Message("T", b"x")).store_timestamp for _ in range(5)]
    assert broker.search_offset("T", 0, times[3]) == 3
    assert broker.search_offset("T", 0, times[2] + 1, Boundary.LOWER) == 3
    assert broker.search_offset("T", 0, times[2] + 1, Boundary.UPPER) == 2
    assert broker.search_offset("T", 0, times[4] + 1, Boundary.LOWER) == 5
    assert broker.search_offset("T", 0, 0) == 0
    for timestamp in (times[0] // 1000, times[0] * 1000, -1):
        with pytest.raises(BrokerSystemError, match=f"the timestamp is {timestamp} ms, "):
            broker.search_offset("T", 0, timestamp)


def test_bounds_of_queues(topic):
    assert (topic.min_offset("T", 0), topic.max_offset("T", 0)) == (0, 0)
    assert (topic.min_offset("None", 3), topic.max_offset("None", 3)) == (0, 0)
    topic.send(Message("T", b"x"))
    assert (topic.min_offset("T", 0), topic.max_offset("T", 0)) == (0, 1)
