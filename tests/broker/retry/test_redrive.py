"""Redriving and ending waits, as the broker does them."""

from __future__ import annotations

import pytest

from broker.api.send import SendOptions
from broker.embedded.broker import EmbeddedBroker
from broker.errors import MessageIllegalError, NoPermissionError
from broker.retry.redrive import Content
from broker.retry.redrive_properties import lineage_properties, own_properties, redrive_count
from broker.send.message_builder import stored_again
from broker.send.send import prepared
from storage.config import SMALL_STORE
from storage.format.message import RESERVED_PROPERTIES, Message, MessageExt
from storage.store import MessageStore
from tests.support.dead_letters import bury, deliver, give_back


@pytest.fixture
def root(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    return tmp_path / "s"


def newest(broker, topic, queue_id=0):
    end = broker.max_offset(topic, queue_id)
    (message,) = broker.view.get_message(topic, queue_id, end - 1, 1).messages
    return message


def test_a_body_that_is_packed_stays_as_it_is(root):
    from broker.send.compression import compress_body

    body, packing = compress_body(b"hello " * 2000)
    with EmbeddedBroker.open(root) as broker:
        sent = broker.send(Message("t", body), 0, SendOptions(sys_flag=packing))
        (stored,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", stored)
        broker.redriving.redrive(newest(broker, "%DLQ%g"), "g", "%RETRY%g", "R1")
        again = newest(broker, "%RETRY%g")
    assert again.stored_body == stored.stored_body
    assert (again.body, again.sys_flag) == (b"hello " * 2000, stored.sys_flag)


def test_a_body_that_is_changed_is_packed_as_a_producer_would(root):
    (dead,) = bury(root, "g", [Message("t", b"x")])
    with EmbeddedBroker.open(root) as broker:
        content = Content(b"new " * 2000, {"a": "b"}, 9)
        broker.redriving.redrive(dead, "g", "%RETRY%g", "R1", content)
        again = newest(broker, "%RETRY%g")
    assert (again.body, again.flag, again.get_property("a")) == (b"new " * 2000, 9, "b")
    assert len(again.stored_body) < 200
    assert again.tags is None


def test_an_empty_body_and_a_group_without_a_retry_topic(root):
    (dead,) = bury(root, "g", [Message("t", b"", tags="A")])
    with EmbeddedBroker.open(root) as broker:
        assert broker.topic("%RETRY%other") is None
        sent = broker.redriving.redrive(dead, "other", "%RETRY%other", "R1")
        assert sent.message_queue.topic == "%RETRY%other"
        assert newest(broker, "%RETRY%other").body == b""
        config = broker.topic("%RETRY%other")
    assert config is not None
    assert config.read_queue_nums == 1, "as many as the group's setting says"


def test_a_retry_keeps_birth_and_host_ipv6_too(root):
    options = SendOptions(born_host="[2001:db8::1]:5000", born_timestamp=1_600_000_000_000)
    with EmbeddedBroker.open(root) as broker:
        sent = broker.send(Message("t", b"x"), 0, options)
        (stored,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", stored)
        broker.redriving.redrive(newest(broker, "%DLQ%g"), "g", "%RETRY%g", "R1")
        again = newest(broker, "%RETRY%g")
    assert (again.born_host, again.born_timestamp) == ("[2001:db8::1]:5000", 1_600_000_000_000)
    assert again.msg_id == stored.msg_id


def test_a_group_that_retries_nothing_gets_it_all_the_same(root):
    (dead,) = bury(root, "g", [Message("t", b"x")])
    with EmbeddedBroker.open(root) as broker:
        broker.update_group(broker.groups()["g"]._replace(retry_max_times=0, retry_queue_nums=0))
        broker.redriving.redrive(dead, "g", "%RETRY%g", "R1")
        assert broker.max_offset("%RETRY%g", 0) == 1
        assert broker.max_offset("%DLQ%g", 0) == 1, "no second one"


def bury_with_a_separator(broker):
    """A dead letter of a Java store, whose broker takes U+0001 in a value."""
    sent = broker.send(Message("t", b"x", tags="A"), 0)
    (stored,) = broker.query_unique("t", sent.msg_id)
    encoded = b"k\x01a\x01b\x02" + stored.property_bytes
    broker.store.put(prepared([stored_again(stored, "t", 0, encoded)]))
    (stored,) = broker.view.get_message("t", 0, 1, 1).messages
    give_back(broker, "g", stored)
    return newest(broker, "%DLQ%g")


def test_a_dead_letter_with_a_separator_in_a_value_becomes_a_retry_again(root):
    with EmbeddedBroker.open(root) as broker:
        dead = bury_with_a_separator(broker)
        broker.redriving.redrive(dead, "g", "%RETRY%g", "R1")
        again = newest(broker, "%RETRY%g")
        assert (again.get_property("k"), again.tags) == ("a\x01b", "A")
        assert again.msg_id == dead.msg_id
        give_back(broker, "g", again)
        assert newest(broker, "%DLQ%g").get_property("k") == "a\x01b"


def test_a_separator_is_refused_in_a_new_value_and_in_another_topic(root):
    with EmbeddedBroker.open(root) as broker:
        dead = bury_with_a_separator(broker)
        for content in (
            Content(properties={"k": "a\x01c"}),
            Content(properties={"l": "a\x01b"}),
            Content(properties={"k": "a\x02b"}),
        ):
            with pytest.raises(MessageIllegalError, match=r"U\+0001"):
                broker.redriving.redrive(dead, "g", "%RETRY%g", "R1", content)
        with pytest.raises(MessageIllegalError, match=r"property 'k' holds U\+0001"):
            broker.redriving.redrive(dead, "g", "t", "R1")
        sent = broker.redriving.redrive(dead, "g", "t", "R1", Content(properties={"k": "ab"}))
        assert newest(broker, "t", sent.message_queue.queue_id).get_property("k") == "ab"


def test_a_store_that_is_read_only_takes_nothing(root):
    (dead,) = bury(root, "g", [Message("t", b"x")])
    with EmbeddedBroker.open(root, read_only=True) as broker:
        with pytest.raises(NoPermissionError):
            broker.redriving.redrive(dead, "g", "t", "R1")
        with pytest.raises(NoPermissionError):
            broker.cutting_short.deliver([])
        with pytest.raises(NoPermissionError):
            broker.cutting_short.bury("g", [])


def test_what_is_no_delayed_message_is_not_delivered(root):
    (dead,) = bury(root, "g", [Message("t", b"x")])
    with EmbeddedBroker.open(root) as broker, pytest.raises(MessageIllegalError):
        broker.cutting_short.deliver([dead])


def test_only_the_producers_properties_are_taken_along(root):
    message = Message("t", b"x", tags="A", keys="k")
    message.properties |= {"own": "1", "BUYER_ID": "b", "RMQCTL_REDRIVES": "2"}
    (dead,) = bury(root, "g", [message])
    assert own_properties(dead.properties) == {
        "TAGS": "A",
        "KEYS": "k",
        "own": "1",
        "BUYER_ID": "b",
    }
    assert not set(own_properties(dict.fromkeys(RESERVED_PROPERTIES, "1"))) & {
        "DELAY",
        "REAL_TOPIC",
        "REAL_QID",
        "UNIQ_KEY",
        "RETRY_TOPIC",
        "ORIGIN_MESSAGE_ID",
        "WAIT",
        "TRAN_MSG",
        "MAX_RECONSUME_TIMES",
        "RECONSUME_TIME",
        "INNER_MULTI_QUEUE_OFFSET",
    }
    assert lineage_properties(dead, "R1")["RMQCTL_REDRIVES"] == "3"


@pytest.mark.parametrize("text", ["", "x", "-1", "9" * 12, "\u0663"])
def test_a_count_that_is_no_count_is_0(text):
    assert redrive_count({"RMQCTL_REDRIVES": text}) == 0


def test_many_waits_end_in_several_puts(root):
    with EmbeddedBroker.open(root) as broker:
        for _ in range(300):
            broker.send(Message("later", b"x", delay_time_level=17), 0)
        held: list[MessageExt] = []
        while len(held) < 300:
            held += broker.view.get_message("SCHEDULE_TOPIC_XXXX", 16, len(held), 32).messages
        ends = broker.cutting_short.deliver(held)
        assert [(end.topic, end.queue_id, end.queue_offset) for end in ends] == [
            ("later", 0, offset) for offset in range(300)
        ]
        now = broker.store.now() if broker.store else 0
    with EmbeddedBroker.open(root, clock=lambda: now + 10_000_000) as broker:
        deliver(broker, now + 10_000_000)
        assert broker.max_offset("later", 0) == 300
