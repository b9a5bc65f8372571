"""Giving messages back: the steps of SendMessageProcessor, and the bytes of a real broker."""

from __future__ import annotations

import pytest

from broker.api.failure_reason import FAILURE_CLASS, FAILURE_STACK, failure_properties
from broker.api.pull import PullRequest
from broker.api.send import SendOptions
from broker.api.send_back import SendBackRequest
from broker.config import BrokerConfig
from broker.errors import (
    BrokerSystemError,
    MessageIllegalError,
    NoPermissionError,
    SubscriptionGroupNotExistError,
)
from broker.retry.send_back import SendBackHandler
from broker.schedule.message import message_timeup
from broker.send.message_builder import MessageBuilder, Origin, stored_again
from broker.send.send import prepared
from broker.tables.groups import GroupManager
from broker.tables.topics import TopicManager
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import PERM_READ, TopicConfig
from storage.format.delay import parse_delay_levels
from storage.format.message import SCHEDULE_TOPIC, Message, MessageExt
from storage.readonly import StoreView
from tests.support import golden
from tests.support.consuming import full_of_properties
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.same_records import Taken, all_messages, content, only


def sent(broker, body=b"body", **how):
    broker.send(Message("T", body, **how), 0)
    return only(broker.view.get_message("T", 0, broker.max_offset("T", 0) - 1, 1).messages)


def back(message, **how):
    return SendBackRequest("g", "T", message.commitlog_offset, message.msg_id, **how)


def waiting(broker, level):
    """The newest message of a delay level."""
    end = broker.view.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
    return only(broker.view.get_message(SCHEDULE_TOPIC, level - 1, end - 1, 1).messages)


def waiting_at(broker, level, offset):
    return only(broker.view.get_message(SCHEDULE_TOPIC, level - 1, offset, 1).messages)


def dead(broker):
    return broker.view.get_message("%DLQ%g", 0, 0, 32).messages


@pytest.mark.conformance("H2", "H4", "H8", "H10", "H15")
def test_a_message_given_back_waits_for_the_groups_retry_topic_as_it_was(broker):
    message = sent(broker, b"x" * 5000, tags="A", keys="k", flag=7)
    broker.send_message_back(back(message))
    stored = waiting(broker, 3)
    assert stored.properties == {
        **message.properties,
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": message.offset_msg_id,
        "WAIT": "false",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "0",
    }
    assert (stored.topic, stored.queue_id, stored.reconsume_times) == (SCHEDULE_TOPIC, 2, 1)
    same = ("stored_body", "flag", "sys_flag", "born_timestamp", "born_host", "store_host")
    assert {name: content(stored)[name] for name in same} == {
        name: content(message)[name] for name in same
    }


@pytest.mark.conformance("H5")
def test_the_broker_chooses_the_level_unless_the_consumer_does(broker):
    message = sent(broker)
    broker.send_message_back(back(message))
    first = waiting(broker, 3)
    broker.send_message_back(back(first))
    second = waiting(broker, 4)
    broker.send_message_back(back(second))
    assert waiting(broker, 5).reconsume_times == 3
    broker.send_message_back(back(message, delay_level=1))
    assert waiting(broker, 1).get_property("DELAY") == "1"
    broker.send_message_back(back(message, delay_level=99))
    assert waiting(broker, 18).get_property("DELAY") == "18"
    assert not dead(broker)
    broker.send_message_back(back(message, delay_level=-1))
    assert only(dead(broker)).reconsume_times == 1


@pytest.mark.parametrize("full", [False, True])
def test_the_most_failures_that_an_int_holds_wrap_as_in_java(broker, full):
    broker.send(full_of_properties(broker) if full else Message("T", b"x"), 0)
    message = only(broker.view.get_message("T", 0, 0, 1).messages)
    broker.store.put(prepared([stored_again(message, "T", 0, reconsume_times=2**31 - 1)]))
    worn = only(broker.view.get_message("T", 0, 1, 1).messages)
    for damaged in (worn, message):
        broker.send_message_back(back(damaged, delay_level=-1))
    assert [letter.reconsume_times for letter in dead(broker)] == [-(2**31), 1]


@pytest.mark.conformance("H4", "H7")
def test_a_message_that_failed_too_often_is_a_dead_letter(broker):
    broker.update_group(SubscriptionGroupConfig("g", retry_max_times=1))
    message = sent(broker, keys="k")
    broker.send_message_back(back(message))
    retry = waiting(broker, 3)
    broker.send_message_back(back(retry))
    letter = only(dead(broker))
    assert letter.get_property("RETRY_TOPIC") == "T"
    assert letter.get_property("ORIGIN_MESSAGE_ID") == message.offset_msg_id
    assert letter.get_property("DELAY") == "0"
    assert (letter.reconsume_times, letter.msg_id, letter.body) == (2, message.msg_id, b"body")
    topic = broker.topic("%DLQ%g")
    assert (topic.read_queue_nums, topic.perm) == (1, 6)
    assert letter.commitlog_offset in {
        found.commitlog_offset for found in broker.query_message("%DLQ%g", "k").messages
    }


@pytest.mark.conformance("H4")
def test_the_requests_maximum_wins_over_the_groups(broker):
    broker.update_group(SubscriptionGroupConfig("g", retry_max_times=0))
    message = sent(broker)
    broker.send_message_back(back(message, max_reconsume_times=1))
    assert not dead(broker)
    broker.send_message_back(back(message))
    assert len(dead(broker)) == 1
    broker.send_message_back(back(message, max_reconsume_times=0))
    assert len(dead(broker)) == 2


@pytest.mark.conformance("H4")
def test_a_group_without_retry_queues_loses_the_message_and_that_is_no_error(broker):
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=0))
    end = broker.view.log_max_offset()
    broker.send_message_back(SendBackRequest("g", "T", 12345, "?"))
    assert broker.view.log_max_offset() == end


@pytest.mark.conformance("H4")
def test_retries_are_spread_over_the_groups_retry_queues(open_broker):
    broker = open_broker()
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=3))
    message = sent(broker)
    for _ in range(40):
        broker.send_message_back(back(message))
    queues = {
        found.get_property("REAL_QID")
        for offset in range(40)
        for found in broker.view.get_message(SCHEDULE_TOPIC, 2, offset, 1).messages
    }
    assert queues == {"0", "1", "2"}
    assert broker.topic("%RETRY%g").write_queue_nums == 3


@pytest.mark.parametrize("first", [0, 1, 2])
def test_retries_to_queues_that_a_group_got_later_are_pulled(broker, first):
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=first))
    broker.connect("a", RecordingClient())
    broker.heartbeat(heartbeat("a", consumer("g", "T")))  # makes the retry topic
    message = sent(broker)
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=4))
    for _ in range(40):
        broker.send_message_back(back(message))
    broker.cutting_short.deliver([waiting_at(broker, 3, offset) for offset in range(40)])
    found = [
        len(broker.pull(PullRequest("g", "%RETRY%g", queue, 0)).messages) for queue in range(4)
    ]
    assert sum(found) == 40
    assert all(found)


@pytest.mark.conformance("H4")
def test_what_can_not_be_given_back_is_refused(open_broker, root):
    broker = open_broker()
    message = sent(broker)
    with pytest.raises(BrokerSystemError, match="no message begins at 1"):
        broker.send_message_back(back(message)._replace(commitlog_offset=1))
    with pytest.raises(NoPermissionError, match="broker"):
        open_broker(BrokerConfig(broker_permission=PERM_READ)).send_message_back(back(message))
    strict = open_broker(BrokerConfig(auto_create_subscription_group=False))
    with pytest.raises(SubscriptionGroupNotExistError):
        strict.send_message_back(back(message)._replace(group="other"))
    broker.update_topic(TopicConfig("%RETRY%g", 1, 1, PERM_READ))
    with pytest.raises(NoPermissionError, match="%RETRY%g"):
        broker.send_message_back(back(message))
    with pytest.raises(NoPermissionError, match="reading only"):
        open_broker(read_only=True).send_message_back(back(message))


def test_the_reason_of_a_failure_goes_along_and_the_next_one_replaces_it(open_broker):
    broker = open_broker()
    message = sent(broker)
    reason = failure_properties(ValueError("no such account"), "c1@1", 5)
    broker.send_message_back(back(message, failure=reason))
    first = waiting(broker, 3)
    assert reason.items() <= first.properties.items()
    later = failure_properties(None, "c2@1", 6, answer="RECONSUME_LATER")
    broker.send_message_back(back(first, failure=later))
    second = waiting(broker, 4)
    assert second.get_property(FAILURE_CLASS) == "RECONSUME_LATER"
    assert second.get_property(FAILURE_STACK) is None
    broker.send_message_back(back(second))
    assert waiting(broker, 5).get_property(FAILURE_CLASS) is None
    off = open_broker(BrokerConfig(keep_failure_reasons=False))
    off.send_message_back(back(message, failure=reason))
    assert not reason.items() & waiting(off, 3).properties.items()


def test_a_reason_that_does_not_fit_or_that_pretends_is_left_out(broker):
    message = sent(broker, properties={"big": "x" * 32000})
    broker.send_message_back(back(message, failure={FAILURE_CLASS: "y" * 1000}))
    assert waiting(broker, 3).get_property(FAILURE_CLASS) is None
    small = sent(broker)
    broker.send_message_back(back(small, failure={"REAL_TOPIC": "elsewhere", FAILURE_CLASS: "E"}))
    assert waiting(broker, 3).get_property("REAL_TOPIC") == "%RETRY%g"
    assert waiting(broker, 3).get_property(FAILURE_CLASS) == "E"
    broker.send_message_back(back(small, failure={FAILURE_CLASS: "a\x01b"}))
    assert waiting(broker, 3).get_property(FAILURE_CLASS) is None


def test_a_message_of_a_java_broker_with_a_separator_in_a_value_becomes_a_dead_letter(broker):
    """A Java broker takes U+0001 in a value."""
    message = sent(broker)
    encoded = b"k\x01a\x01b\x02" + message.property_bytes
    broker.store.put(prepared([stored_again(message, "T", 0, encoded)]))
    message = only(broker.view.get_message("T", 0, 1, 1).messages)
    broker.send_message_back(back(message))
    retry = waiting(broker, 3)
    assert retry.property_bytes.startswith(encoded)
    assert retry.get_property("k") == "a\x01b"
    broker.cutting_short.deliver([retry])
    (again,) = broker.view.get_message("%RETRY%g", 0, 0, 1).messages
    assert again.property_bytes == retry.property_bytes
    broker.send_message_back(back(again, delay_level=-1))
    assert only(dead(broker)).get_property("k") == "a\x01b"


@pytest.mark.parametrize("name", [{}, {"DELAY": "0"}])
@pytest.mark.parametrize(("room", "origin"), [(0, None), (13, None), (14, "T")])
def test_what_has_no_room_for_a_retry_is_refused_and_can_become_a_dead_letter(
    broker, room, origin, name
):
    broker.send(full_of_properties(broker, room, **name), 0)
    message = only(broker.view.get_message("T", 0, 0, 1).messages)
    assert len(message.property_bytes.removesuffix(b"\x02")) == 32_767 - room
    short = sent(broker)
    fine, refusal = broker.send_messages_back([back(short), back(message)])
    assert fine is None
    assert isinstance(refusal, MessageIllegalError)
    assert "the message at 0 of the commit log has no room" in str(refusal)
    reason = failure_properties(ValueError("why"), "c1@1", 5)
    broker.send_message_back(back(message, delay_level=-1, failure=reason))
    letter = only(dead(broker))
    assert letter.properties == {**message.properties, **({"RETRY_TOPIC": "T"} if origin else {})}
    assert (letter.body, letter.reconsume_times, letter.msg_id) == (b"full", 1, "id")
    broker.send_message_back(back(message, max_reconsume_times=0))
    assert len(dead(broker)) == 2


@pytest.mark.conformance("H3")
def test_a_send_to_the_retry_topic_is_a_retry_until_its_last_attempt(broker):
    properties = {"RETRY_TOPIC": "T", "RECONSUME_TIME": "1", "DELAY": "4"}
    retry = Message("%RETRY%g", b"x", properties=properties)
    options = SendOptions(reconsume_times=1, max_reconsume_times=2)
    broker.send(retry, 0, options)
    stored = waiting(broker, 4)
    assert (stored.get_property("REAL_TOPIC"), stored.reconsume_times) == ("%RETRY%g", 1)
    assert stored.get_property("WAIT") is None
    result = broker.send(retry, 0, options._replace(reconsume_times=2))
    assert result.message_queue.topic == "%RETRY%g"
    stored = waiting(broker, 4)  # 4.9: the dead letter waits, too
    assert (stored.get_property("REAL_TOPIC"), stored.reconsume_times) == ("%DLQ%g", 2)
    assert broker.topic("%DLQ%g").perm == 6
    broker.send(Message("%RETRY%g", b"y"), 0, SendOptions(reconsume_times=16))
    assert only(dead(broker)).body == b"y"


# -- what a real broker wrote ------------------------------------------------------------------


@pytest.fixture(scope="module")
def retries():
    with StoreView.open(golden.store("retry-dlq-4.9")) as view:
        yield view


@pytest.fixture(scope="module")
def chains(retries):
    """The records of each message, in the order of the log."""
    found: dict[str, list[MessageExt]] = {}
    for message in all_messages(retries):
        found.setdefault(message.msg_id, []).append(message)
    return found


def group_of(message):
    return (message.get_property("REAL_TOPIC") or "").removeprefix("%RETRY%")


@pytest.mark.conformance("H4", "H7")
def test_each_retry_and_dead_letter_is_what_the_real_broker_stored(retries, chains, tmp_path):
    compared = {SCHEDULE_TOPIC: 0, "%DLQ%g-flaky": 0}
    config = BrokerConfig(store_host="127.0.0.1:20911")
    delays = parse_delay_levels(" ".join(["1s"] * 17 + ["3650d"]))
    root = golden.extract("retry-dlq-4.9", tmp_path)
    for chain in chains.values():
        for record in chain:
            times = record.reconsume_times
            if record.topic not in compared or not times or "orderly" in group_of(record):
                continue
            group = group_of(record)
            origin = "GoldenRetry" if times == 1 else f"%RETRY%{group}"
            before = only([m for m in chain if (m.topic, m.reconsume_times) == (origin, times - 1)])
            put = Taken()
            handler = SendBackHandler(
                config,
                topics(root, config),
                GroupManager(root, config, write_lock=None, now=lambda: 0),
                MessageBuilder(config, delays, 4 << 20),
                put=put,
                read_message=lambda offset: retries.look_message_by_offset(offset),
            )
            most = 3 if group == "g-flaky" else None
            request = SendBackRequest(
                group, origin, before.commitlog_offset, "", max_reconsume_times=most
            )
            handler.send_message_back(request)
            assert content(only(put.records)) == content(record)
            compared[record.topic] += 1
    assert compared == {SCHEDULE_TOPIC: 58, "%DLQ%g-flaky": 6}


def topics(root, config):
    return TopicManager(root, config, write_lock=None, queues=list, now=lambda: 0)


@pytest.mark.conformance("H3")
def test_each_dead_letter_of_an_orderly_consumer_waits_as_the_real_broker_stored_it(chains):
    builder = MessageBuilder(BrokerConfig(), parse_delay_levels(), 4 << 20)
    compared = 0
    for chain in chains.values():
        for record in chain:
            if record.get_property("REAL_TOPIC") != "%DLQ%g-orderly":
                continue
            if record.topic != SCHEDULE_TOPIC:
                continue
            sent_by_client = {
                name: value
                for name, value in record.properties.items()
                if name not in {"REAL_TOPIC", "REAL_QID", "CLUSTER"}
            }
            message = Message(
                "%RETRY%g-orderly", record.stored_body, flag=record.flag, properties=sent_by_client
            )
            origin = Origin(
                record.born_timestamp,
                record.born_host_bytes,
                record.store_host_bytes,
                record.sys_flag,
                record.reconsume_times,
            )
            inner, _ = builder.build(message, "%DLQ%g-orderly", 0, "unused", origin)
            put = Taken()
            put(prepared([inner]))
            assert content(only(put.records)) == content(record)
            compared += 1
    assert compared == 3


@pytest.mark.conformance("H14")
def test_each_delivered_message_is_what_the_real_broker_stored(chains):
    compared = 0
    for chain in chains.values():
        for record in chain:
            before = [
                m
                for m in chain
                if m.topic == SCHEDULE_TOPIC
                and m.reconsume_times == record.reconsume_times
                and m.get_property("REAL_TOPIC") == record.topic
            ]
            if not before:
                continue
            inner = message_timeup(only(before))
            assert inner is not None
            put = Taken()
            put(prepared([inner]))
            assert content(only(put.records)) == content(record)
            assert only(put.records).property_bytes == record.property_bytes
            compared += 1
    delivered = golden.manifest("retry-dlq-4.9")["configs"]["delayOffset.json"]["offsetTable"]
    assert compared == sum(delivered.values()) == 85
