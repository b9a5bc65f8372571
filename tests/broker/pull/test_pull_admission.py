"""Permission to pull, in the order of the real broker, and the notes of wrong offsets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.api.members import MessageModel
from broker.api.pull import PullRequest, PullStatus
from broker.config import BrokerConfig
from broker.errors import BrokerError, ResponseCode
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.message import OFFSET_MOVED_EVENT, Message
from storage.readonly import StoreView
from tests.support import golden
from tests.support.recording_client import RecordingClient, consumer, heartbeat, subscription

C = ResponseCode


def pull(**more: Any) -> PullRequest:
    return PullRequest("g", "T", 0, 0)._replace(**more)


def refused(broker: Any, request: PullRequest) -> ResponseCode | None:
    try:
        broker.pull(request)
    except BrokerError as error:
        return error.code
    return None


def test_the_first_of_several_reasons_is_given(open_broker):
    """Each step mends the reason that was given, with all later ones still there."""
    config = BrokerConfig(auto_create_subscription_group=False)
    closed = open_broker(BrokerConfig(auto_create_subscription_group=False, broker_permission=2))
    broker = open_broker(config)
    wrong = pull(queue_id=7, expression="||")
    assert refused(closed, wrong) is C.NO_PERMISSION
    assert refused(broker, wrong) is C.SUBSCRIPTION_GROUP_NOT_EXIST
    broker.update_group(SubscriptionGroupConfig("g", consume_enable=False))
    assert refused(broker, wrong) is C.NO_PERMISSION
    broker.update_group(SubscriptionGroupConfig("g"))
    assert refused(broker, wrong) is C.TOPIC_NOT_EXIST
    broker.update_topic(TopicConfig("T", 1, 1, 2))
    assert refused(broker, wrong) is C.NO_PERMISSION
    broker.update_topic(TopicConfig("T", 1, 1))
    assert refused(broker, wrong) is C.SYSTEM_ERROR
    assert refused(broker, wrong._replace(queue_id=0)) is C.SUBSCRIPTION_PARSE_FAILED
    assert refused(broker, pull()) is None


@pytest.mark.conformance("C15")
def test_a_pull_without_expression_takes_what_the_group_has_said(broker, open_broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_batch([Message("T", b"a", tags="A"), Message("T", b"b", tags="B")])
    ask = pull(expression=None, sub_version=5)
    assert refused(broker, ask) is C.SUBSCRIPTION_NOT_EXIST  # the group has no member
    broker.connect("c", RecordingClient())
    broker.heartbeat(heartbeat("c", consumer("g", "U")))
    assert refused(broker, ask) is C.SUBSCRIPTION_NOT_EXIST  # it has another topic
    broker.heartbeat(heartbeat("c", consumer("g", subscription("T", "A", 4))))
    assert refused(broker, ask) is C.SUBSCRIPTION_NOT_LATEST
    broker.heartbeat(heartbeat("c", consumer("g", subscription("T", "B", 5))))
    assert [m.body for m in broker.pull(ask).messages] == [b"b"]
    far = open_broker()
    assert [m.body for m in far.pull(ask).messages] == [b"b"]
    broker.disconnect("c")
    assert refused(far, ask) is C.SUBSCRIPTION_NOT_EXIST


def test_a_subscription_of_another_process_counts_as_soon_as_it_is_said(broker, open_broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_batch([Message("T", b"a", tags="A"), Message("T", b"b", tags="B")])
    far = open_broker()
    here, there = RecordingClient(), RecordingClient()
    broker.connect("a", here)
    far.connect("b", there)
    far.heartbeat(heartbeat("b", consumer("g", subscription("T", "A", 1))))
    broker.heartbeat(heartbeat("a", consumer("g", subscription("T", "A", 1))))
    assert there.wait_for("changed", "g", times=2)
    assert [m.body for m in far.pull(pull(expression=None)).messages] == [b"a"]
    broker.heartbeat(heartbeat("a", consumer("g", subscription("T", "B", 2), "U")))
    assert there.wait_for("changed", "g", times=3)
    assert [m.body for m in far.pull(pull(expression=None)).messages] == [b"b"]


def test_broadcasting_is_refused_where_it_is_not_allowed(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.update_group(SubscriptionGroupConfig("g", consume_broadcast_enable=False))
    broker.connect("c", RecordingClient())
    broker.heartbeat(heartbeat("c", consumer("g", "T", model=MessageModel.BROADCASTING)))
    assert refused(broker, pull(expression=None)) is C.NO_PERMISSION
    broker.update_group(SubscriptionGroupConfig("g"))
    assert refused(broker, pull(expression=None)) is None


def moved_events(view: StoreView) -> list[Any]:
    return view.get_message(OFFSET_MOVED_EVENT, 0, 0, 32).messages


@pytest.mark.conformance("D11")
def test_a_wrong_offset_is_noted_as_the_real_broker_notes_it(open_broker):
    with StoreView.open(golden.store("hole-4.9")) as real:
        (wanted,) = moved_events(real)
    event = json.loads(wanted.body)
    queue, group = event["messageQueue"], event["consumerGroup"]
    broker = open_broker(BrokerConfig(store_host=wanted.store_host))
    broker.update_topic(TopicConfig(queue["topic"], 4, 4))
    broker.send_column(queue["topic"], [b"x"] * event["offsetNew"], queue["queueId"])
    request = PullRequest(group, queue["topic"], queue["queueId"], event["offsetRequest"])

    assert broker.pull(request).pull_status is PullStatus.OFFSET_ILLEGAL

    (written,) = moved_events(broker.view)
    for name in ("body", "property_bytes", "flag", "sys_flag", "queue_id", "born_host"):
        assert getattr(written, name) == getattr(wanted, name), name
    assert broker.view.unit(OFFSET_MOVED_EVENT, 0, 0)[2] == -1695309605  # of the golden unit
    assert broker.query_message(OFFSET_MOVED_EVENT, group).messages[0].body == wanted.body


def test_wrong_offsets_are_not_noted_where_that_is_off_or_nothing_may_be_written(open_broker):
    quiet = open_broker(BrokerConfig(offset_moved_event_enable=False))
    quiet.update_topic(TopicConfig("T", 1, 1))
    reader = open_broker(read_only=True)
    for broker in (quiet, reader):
        assert broker.pull(pull(queue_offset=3)).pull_status is PullStatus.OFFSET_ILLEGAL
        assert moved_events(broker.view) == []
