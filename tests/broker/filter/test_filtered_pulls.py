"""Pulls with SQL92 expressions: where they are taken, on the broker, over the properties."""

from __future__ import annotations

import shutil

import pytest

from broker.api.members import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere
from broker.api.pull import PullRequest, PullStatus
from broker.api.send_back import SendBackRequest
from broker.config import BrokerConfig
from broker.errors import BrokerSystemError, SubscriptionParseError
from storage.format.message import Message, retry_topic

pytestmark = pytest.mark.conformance("D4")

ON = BrokerConfig(enable_property_filter=True)


def sql(expression, offset=0, **how):
    return PullRequest("g", "T", 0, offset, expression=expression, expression_type="SQL92", **how)


def fill(broker, count=10):
    for n in range(count):
        properties = {"price": str(n)} if n % 2 else {}
        broker.send(Message("T", b"%d" % n, tags="abc"[n % 3], properties=properties), 0)


def bodies(result):
    return [int(message.body) for message in result.messages]


def test_expressions_are_refused_where_switched_off_and_parsed_before_that(open_broker):
    broker = open_broker(BrokerConfig(enable_property_filter=False))
    fill(broker, 1)
    with pytest.raises(BrokerSystemError, match="enablePropertyFilter"):
        broker.pull(sql("price > 3"))
    with pytest.raises(SubscriptionParseError, match="at character 9"):
        broker.pull(sql("price > "))
    with pytest.raises(SubscriptionParseError, match="unknown"):
        broker.pull(sql("x")._replace(expression_type="XPATH"))
    subscription = SubscriptionData("T", "price > 3", expression_type="SQL92")
    with pytest.raises(BrokerSystemError, match="enablePropertyFilter"):
        broker.check_client("c", "g", subscription)
    with pytest.raises(SubscriptionParseError):
        broker.check_client("c", "g", subscription._replace(sub_string="price >"))
    on = open_broker(ON)
    on.check_client("c", "g", subscription)


@pytest.mark.slow
def test_expressions_are_taken_in_stores_that_rmqctl_made_and_not_in_others(open_broker, root):
    own = open_broker()
    fill(own, 5)
    assert bodies(own.pull(sql("price > 1"))) == [3]
    own.close()
    shutil.rmtree(root / "rmqctl")
    foreign = open_broker()
    with pytest.raises(BrokerSystemError, match="enablePropertyFilter"):
        foreign.pull(sql("price > 1"))
    foreign.close()
    assert bodies(open_broker(ON).pull(sql("price > 1"))) == [3]


def test_a_pull_gives_what_the_expression_matches_and_goes_on_behind_the_rest(open_broker):
    broker = open_broker(ON)
    fill(broker)
    result = broker.pull(sql("TAGS IN ('a', 'b') AND price > 3"))
    assert bodies(result) == [7, 9]
    assert result.next_begin_offset == 10
    result = broker.pull(sql("price IS NULL", max_msg_nums=2))
    assert bodies(result) == [0, 2]
    assert result.next_begin_offset == 3
    nothing = broker.pull(sql("price > 100"))
    assert (nothing.pull_status, nothing.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 10)


@pytest.mark.parametrize("supported", [False, True])
def test_retries_are_filtered_only_where_that_is_switched_on(open_broker, supported):
    """By the group's present expression for their topic; nothing else of them is checked."""
    now = [1_700_000_000_000]
    config = BrokerConfig(enable_property_filter=True, filter_support_retry=supported)
    broker = open_broker(config, clock=lambda: now[0])
    fill(broker, 6)
    for offset in (1, 5):
        [message] = broker.pull(PullRequest("g", "T", 0, offset, 1)).messages
        request = SendBackRequest("g", "T", message.commitlog_offset, "", delay_level=1)
        broker.send_message_back(request)
    now[0] += 1_000
    broker.delayed.tick(now[0])
    retry = retry_topic("g")
    assert bodies(broker.pull(PullRequest("g", retry, 0, 0))) == [1, 5]
    broker.connect("c@1", Silent())
    broker.heartbeat(consumer("price > 3"))
    expected = [5] if supported else [1, 5]
    assert bodies(broker.pull(PullRequest("g", retry, 0, 0))) == expected


class Silent:
    """A client that gets notices and does nothing."""

    def notify_consumer_ids_changed(self, group):
        pass

    def notify_topics_changed(self, topics):
        pass


def consumer(sub_string):
    subscriptions = (SubscriptionData("T", sub_string, expression_type="SQL92", sub_version=1),)
    data = ConsumerData(
        "g",
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscriptions,
    )
    return HeartbeatData("c@1", consumers=(data,))
