"""Creation of consumer groups."""

from __future__ import annotations

from functools import partial

import pytest

from broker.api.pull import PullRequest
from broker.api.send_back import SendBackRequest
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import (
    BrokerSystemError,
    InvalidNameError,
    NoPermissionError,
    SubscriptionGroupNotExistError,
)
from broker.tables import shared_table
from broker.tables.groups import GroupManager
from broker.tables.shared_table import Update
from broker.tables.topics import TopicManager
from storage.configs.journal import Journal
from storage.configs.subscription_groups import (
    SubscriptionGroupConfig,
    subscription_groups_file,
    system_groups,
)
from storage.configs.topics import TopicConfig, topics_file
from storage.coordination.config_lock import config_lock
from storage.errors import StoreNotWritableError
from storage.format.message import Message
from tests.support.recording_client import RecordingClient, consumer, heartbeat


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


def queues_of(broker, topic="%RETRY%g"):
    config = broker.topic(topic)
    return config.read_queue_nums, config.write_queue_nums


def test_more_retry_queues_are_there_at_once_and_fewer_leave_the_retries_readable(broker, root):
    broker.update_topic(TopicConfig("%RETRY%g", 1, 2, perm=4))
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=4), {"user": "u"})
    assert broker.topic("%RETRY%g") == TopicConfig("%RETRY%g", 4, 4, perm=4)
    *_, topic, group = Journal(root).entries()
    assert (group["group"], topic["topic"], topic["user"]) == ("g", "%RETRY%g", "u")
    assert (topic["old"]["read_queue_nums"], topic["new"]["read_queue_nums"]) == (1, 4)
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=2))
    assert queues_of(broker) == (4, 4)
    broker.update_group(SubscriptionGroupConfig("h", retry_queue_nums=4))
    assert broker.topic("%RETRY%h") is None


def test_a_change_of_something_else_leaves_the_retry_topic_as_it_is(broker):
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=4))
    broker.update_topic(TopicConfig("%RETRY%g", 1, 1))
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=4, retry_max_times=3))
    assert queues_of(broker) == (1, 1)


@pytest.mark.parametrize("fault", ["write", "check"])
def test_a_group_and_its_retry_topic_stay_if_either_cannot_be_changed(broker, root, fault):
    broker.update_group(SubscriptionGroupConfig("g"))
    broker.update_topic(TopicConfig("%RETRY%g", 1, 1))
    files = topics_file(root).path, subscription_groups_file(root).path
    if fault == "write":
        files[0].with_name("topics.json.bak").mkdir()  # so a new one cannot have this name

    def check(_: SubscriptionGroupConfig | None) -> None:
        if fault == "check":
            raise NoPermissionError("not as in the plan")

    before = [path.read_bytes() for path in files]
    with pytest.raises(StoreNotWritableError if fault == "write" else NoPermissionError):
        group_manager(root).update(SubscriptionGroupConfig("g", retry_queue_nums=4), None, check)
    assert [path.read_bytes() for path in files] == before


def test_retry_topics_of_many_groups_are_one_change_of_the_table(broker, root):
    names = "a", "b", "c"
    for name in names:
        broker.update_topic(TopicConfig(f"%RETRY%{name}", 1, 1))
    file = topics_file(root)
    before, version = file.path.read_bytes(), file.read(0).data_version.counter
    group_manager(root).update_all(
        Update(SubscriptionGroupConfig(name, retry_queue_nums=4), {}) for name in names
    )
    assert [queues_of(broker, f"%RETRY%{name}") for name in names] == [(4, 4)] * 3
    assert file.path.with_name("topics.json.bak").read_bytes() == before
    assert file.read(0).data_version.counter == version + 3


def test_more_queues_are_seen_by_processes_that_looked_right_before(broker, root, monkeypatch):
    monkeypatch.setattr(shared_table, "_LOOK_NS", 100_000_000)
    broker.update_topic(TopicConfig("T", 1, 1))
    one, other = topic_manager(root), topic_manager(root)
    other.for_own_use("T", 1)
    one.for_own_use("T", 2)
    assert other.for_own_use("T", 1).read_queue_nums == 2


def topic_manager(root):
    """As commands have it: without the counter of changes of a store that is open."""
    return TopicManager(
        root,
        BrokerConfig(),
        write_lock=partial(config_lock, root),
        queues=list,
        now=lambda: 7,
    )


def group_manager(root):
    topics = topic_manager(root)
    lock = partial(config_lock, root)
    return GroupManager(root, topics.config, write_lock=lock, now=lambda: 7, topics=topics)


@pytest.mark.parametrize("use", ["heartbeat", "retry", "redrive"])
def test_a_retry_topic_that_has_too_few_queues_gets_them_when_it_is_used(broker, root, use):
    """As a broker of 4.9 leaves it, which gives a group more queues and not the topic."""
    broker.send(Message("T", b"x"), 0)
    broker.update_group(SubscriptionGroupConfig("g", retry_queue_nums=4))
    broker.update_topic(TopicConfig("%RETRY%g", 0, 0))
    if use == "heartbeat":
        broker.connect("a", RecordingClient())
        broker.heartbeat(heartbeat("a", consumer("g", "T")))
    elif use == "retry":
        broker.send_message_back(SendBackRequest("g", "T", 0, ""))
    else:
        (dead,) = broker.view.get_message("T", 0, 0, 1).messages
        broker.redriving.redrive(dead, "g", "%RETRY%g", "R1")
    assert queues_of(broker) == (4, 4)
    with EmbeddedBroker.open(root) as other:
        assert queues_of(other) == (4, 4)
