"""Creation of consumer groups."""

from __future__ import annotations

import pytest

from broker.api.pull import PullRequest
from broker.config import BrokerConfig
from broker.errors import (
    BrokerSystemError,
    InvalidNameError,
    NoPermissionError,
    SubscriptionGroupNotExistError,
)
from storage.configs.journal import Journal
from storage.configs.subscription_groups import (
    SubscriptionGroupConfig,
    subscription_groups_file,
    system_groups,
)
from storage.format.message import Message


def test_the_first_pull_creates_a_group(broker, root):
    broker.send(Message("T", b"x"))
    broker.pull(PullRequest("g", "T", 0, 0))
    expected = {**system_groups(), "g": SubscriptionGroupConfig("g")}
    assert subscription_groups_file(root).read(0).items == expected
    assert broker.groups() == expected


def test_tools_use_a_group_that_is_always_there(broker, root):
    broker.send(Message("T", b"x"))
    broker.pull(PullRequest("TOOLS_CONSUMER", "T", 0, 0))
    assert not (root / "config" / "subscriptionGroup.json").exists()


def test_without_auto_creation_an_unknown_group_is_refused(open_broker):
    broker = open_broker(BrokerConfig(auto_create_subscription_group=False))
    broker.send(Message("T", b"x"))
    with pytest.raises(SubscriptionGroupNotExistError, match="group g does not exist"):
        broker.pull(PullRequest("g", "T", 0, 0))
    broker.update_group(SubscriptionGroupConfig("g"))
    broker.pull(PullRequest("g", "T", 0, 0))
    broker.pull(PullRequest("CID_RMQ_SYS_x", "T", 0, 0))


def test_a_disabled_group_may_not_consume(broker, root):
    broker.send(Message("T", b"x"))
    broker.update_group(SubscriptionGroupConfig("g", consume_enable=False), {"user": "ann"})
    with pytest.raises(NoPermissionError, match="group g may not consume"):
        broker.pull(PullRequest("g", "T", 0, 0))
    [entry] = Journal(root).entries()
    assert (entry["command"], entry["group"], entry["user"]) == ("updateSubGroup", "g", "ann")


@pytest.mark.parametrize("name", ["a b", "", "x" * 256, "DEFAULT_CONSUMER"])
def test_illegal_groups_are_refused(broker, name):
    broker.send(Message("T", b"x"))
    with pytest.raises(InvalidNameError):
        broker.pull(PullRequest(name, "T", 0, 0))
    with pytest.raises(InvalidNameError):
        broker.update_group(SubscriptionGroupConfig(name))


def test_a_group_has_no_negative_number_of_retry_queues(broker):
    with pytest.raises(BrokerSystemError, match="-1 retry queues"):
        broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=-1))
