"""Creation of topics, and their permissions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from broker.api.pull import PullRequest
from broker.api.send import DEFAULT_SEND
from broker.config import BrokerConfig
from broker.errors import (
    BrokerSystemError,
    InvalidNameError,
    NoPermissionError,
    ResponseCode,
    TopicNotExistError,
)
from broker.tables.shared_table import Update, WriteLockScope
from broker.tables.topics import TopicManager
from storage.configs.journal import Journal
from storage.configs.topics import TopicConfig, system_topics, topics_file
from storage.coordination.config_lock import config_lock
from storage.errors import StoreNotWritableError
from storage.files.fs import FileSystem
from storage.format.message import Message
from tests.support.consumers import eventually

BODY = b"x"


@pytest.mark.conformance("A6")
def test_the_first_send_creates_a_topic_of_four_queues(broker, root):
    broker.send(Message("New", BODY))
    assert broker.topic("New") == TopicConfig("New", 4, 4, 6)
    table = topics_file(root).read(0)
    assert table.get("New") == TopicConfig("New", 4, 4, 6)
    assert table.data_version.counter == 1
    assert list(Journal(root).entries()) == []


def test_system_topics_reach_the_file_with_the_first_topic(broker, root):
    assert not (root / "config" / "topics.json").exists()
    assert broker.topic("BenchmarkTest") == TopicConfig("BenchmarkTest", 1024, 1024)
    broker.send(Message("New", BODY))
    items = topics_file(root).read(0).items
    assert items == {
        **system_topics("DefaultCluster", "broker-a"),
        "New": TopicConfig("New", 4, 4, 6),
    }


def test_a_change_holds_for_the_very_next_send_of_every_opening(open_broker):
    changes, sends = open_broker(), open_broker()
    for perm in (6, 4) * 10:
        changes.update_topic(TopicConfig("T", 1, 1, perm))
        if perm & 2:
            assert sends.send(Message("T", BODY)).message_queue.queue_id == 0
        else:
            with pytest.raises(NoPermissionError):
                sends.send(Message("T", BODY))


def forbid_writing(root: Path) -> None:
    """Change the file as a program does that does not open the store."""
    file = topics_file(root)
    table = file.read(0)
    table.put("T", TopicConfig("T", 1, 1, 4), 0)
    file.save(table)


def test_what_is_changed_without_opening_the_store_holds_for_the_very_next_send(open_broker, root):
    broker = open_broker()
    broker.send(Message("T", BODY))
    with config_lock(root):
        forbid_writing(root)
    with pytest.raises(NoPermissionError):
        broker.send(Message("T", BODY))


def test_what_is_edited_by_hand_is_seen_a_moment_later(open_broker, root):
    broker = open_broker()
    broker.send(Message("T", BODY))
    forbid_writing(root)

    def is_refused() -> bool:
        try:
            broker.send(Message("T", BODY))
        except NoPermissionError:
            return True
        return False

    eventually(is_refused)


def test_a_topic_that_another_opening_has_just_made_is_there_for_a_send(open_broker):
    makes, sends = open_broker(), open_broker(config=BrokerConfig(auto_create_topic_enable=False))
    for number in range(10):
        topic = f"T{number}"
        with pytest.raises(TopicNotExistError):
            sends.send(Message(topic, BODY))
        makes.send(Message(topic, BODY))
        assert sends.send(Message(topic, BODY)).message_queue.topic == topic


@pytest.mark.parametrize(("asked", "made"), [(1, 1), (4, 4), (8, 8), (100, 8)])
@pytest.mark.conformance("A6")
def test_a_producer_asks_for_queues_and_tbw102_bounds_them(broker, asked, made):
    broker.send(Message("New", BODY), options=DEFAULT_SEND._replace(default_topic_queue_nums=asked))
    assert broker.topic("New") == TopicConfig("New", made, made, 6)


@pytest.mark.conformance("A6")
def test_without_auto_creation_an_unknown_topic_is_refused(open_broker, root):
    broker = open_broker(BrokerConfig(auto_create_topic_enable=False))
    with pytest.raises(TopicNotExistError, match="topic New does not exist") as caught:
        broker.send(Message("New", BODY))
    assert caught.value.code is ResponseCode.TOPIC_NOT_EXIST
    assert broker.topic("TBW102") is None
    assert not (root / "config" / "topics.json").exists()


@pytest.mark.conformance("A6")
def test_without_auto_creation_a_stored_tbw102_is_no_template_either(open_broker):
    open_broker().send(Message("Other", BODY))
    broker = open_broker(BrokerConfig(auto_create_topic_enable=False))
    assert broker.topic("TBW102") is not None
    with pytest.raises(TopicNotExistError):
        broker.send(Message("New", BODY))


@pytest.mark.conformance("A6")
def test_a_template_needs_the_inherit_bit(broker):
    broker.update_topic(TopicConfig("Template", 2, 2, 7))
    broker.update_topic(TopicConfig("Plain", 2, 2, 6))
    options = DEFAULT_SEND._replace(default_topic="Plain")
    with pytest.raises(TopicNotExistError):
        broker.send(Message("New", BODY), options=options)
    broker.send(Message("New", BODY), options=DEFAULT_SEND._replace(default_topic="Template"))
    assert broker.topic("New") == TopicConfig("New", 2, 2, 6)


def test_retry_topics_are_always_created(open_broker):
    broker = open_broker(BrokerConfig(auto_create_topic_enable=False))
    broker.send(Message("%RETRY%g", BODY))
    assert broker.topic("%RETRY%g") == TopicConfig("%RETRY%g", 1, 1, 6)


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "OFFSET_MOVED_EVENT", "a b", "x" * 128])
def test_refused_topics_leave_no_trace(broker, root, topic):
    with pytest.raises((NoPermissionError, InvalidNameError)):
        broker.send(Message(topic, BODY))
    assert not (root / "config" / "topics.json").exists()
    assert broker.wait_for_messages(None, 0) == 0


def test_permissions_are_kept(broker):
    broker.update_topic(TopicConfig("ReadOnly", 1, 1, 4))
    with pytest.raises(NoPermissionError, match="ReadOnly may not be written"):
        broker.send(Message("ReadOnly", BODY))
    broker.update_topic(TopicConfig("WriteOnly", 1, 1, 2))
    broker.send(Message("WriteOnly", BODY))
    with pytest.raises(NoPermissionError, match="WriteOnly may not be read"):
        broker.pull(PullRequest("g", "WriteOnly", 0, 0))


def test_queues_that_a_topic_does_not_have_are_refused(broker):
    broker.update_topic(TopicConfig("T", 4, 2))
    broker.send(Message("T", BODY), 3)  # the larger of both counts, as in the real broker
    for queue_id in (-1, 4):
        with pytest.raises(BrokerSystemError, match=f"no queue {queue_id}: it has 2 write queues"):
            broker.send(Message("T", BODY), queue_id)
        with pytest.raises(BrokerSystemError, match=f"no queue {queue_id}: it has 4 read queues"):
            broker.pull(PullRequest("g", "T", queue_id, 0))
    broker.update_topic(TopicConfig("None", 0, 0))
    with pytest.raises(NoPermissionError, match="no queue to write to"):
        broker.send(Message("None", BODY))


def test_an_update_is_noted_in_the_journal_and_bumps_the_version(broker, root):
    assert broker.update_topic(TopicConfig("T", 8, 8), {"user": "ann", "reason": "why"})
    assert not broker.update_topic(TopicConfig("T", 8, 8), {"user": "bob"})
    assert broker.update_topic(TopicConfig("T", 8, 16))
    first, second = Journal(root).entries()
    assert (first["command"], first["topic"], first["user"], first["old"]) == (
        "updateTopic",
        "T",
        "ann",
        None,
    )
    assert (second["old"]["write_queue_nums"], second["new"]["write_queue_nums"]) == (8, 16)
    assert topics_file(root).read(0).data_version.counter == 2


@pytest.mark.parametrize(
    "config",
    [
        TopicConfig("T", -1, 1),
        TopicConfig("T", 1, -1),
        TopicConfig("T", 1, 1, 16),
        TopicConfig("a b"),
        TopicConfig("TBW102"),
        TopicConfig("DefaultCluster"),
        TopicConfig("broker-a"),
    ],
)
def test_senseless_updates_are_refused(broker, root, config):
    with pytest.raises((BrokerSystemError, NoPermissionError)):
        broker.update_topic(config)
    assert not (root / "config" / "topics.json").exists()


def test_of_many_updates_none_is_done_if_one_is_refused(root):
    topics = manager(root, nullcontext)

    def refuse(now: TopicConfig | None) -> None:
        raise BrokerSystemError(f"changed to {now}")

    with pytest.raises(BrokerSystemError, match="changed to None"):
        topics.update_all([Update(TopicConfig("A"), {}), Update(TopicConfig("B"), {}, refuse)])
    assert topics.get("A") is None
    assert list(Journal(root).entries()) == []


def test_topics_created_at_once_by_many_openers_are_all_kept(open_broker):
    brokers = [open_broker() for _ in range(3)]
    names = [f"T{n}" for n in range(30)]
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda n: brokers[n % 3].update_topic(TopicConfig(names[n], 1 + n % 3, 1)),
                range(30),
            )
        )
    for broker in brokers:
        assert {name for name in broker.topics() if name in names} == set(names)


@pytest.mark.conformance("A6")
def test_the_first_creation_of_a_topic_decides(open_broker):
    first, second = open_broker(), open_broker()
    first.update_topic(TopicConfig("T", 7, 7))
    second.send(Message("T", BODY))
    assert second.topic("T") == TopicConfig("T", 7, 7)


class FullDisk(FileSystem):
    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        raise OSError(28, "No space left on device")


def manager(root: Path, write_lock: WriteLockScope, fs: FileSystem | None = None) -> TopicManager:
    return TopicManager(
        root, BrokerConfig(), write_lock=write_lock, queues=list, now=lambda: 5, fs=fs
    )


def test_a_topic_that_could_not_be_written_does_not_exist(root):
    topics = manager(root, nullcontext, FullDisk())
    with pytest.raises(StoreNotWritableError, match="No space left"):
        topics.for_sending("T", "TBW102", 4)
    assert topics.get("T") is None


def test_of_two_that_create_a_topic_at_once_the_first_wins(root):
    @contextmanager
    def slow_gate():
        manager(root, nullcontext).update(TopicConfig("T", 7, 7))
        yield

    assert manager(root, slow_gate).for_sending("T", "TBW102", 4) == TopicConfig("T", 7, 7)
    assert manager(root, nullcontext).get("T") == TopicConfig("T", 7, 7)


def test_topics_that_only_queues_tell_of_can_be_read(open_broker, root):
    broker = open_broker()
    broker.send(Message("T", BODY), 2)
    (root / "config" / "topics.json").unlink()
    again = open_broker()
    assert again.topic("T") == TopicConfig("T", 3, 0, 4)
    assert again.topics()["T"].read_queue_nums == 3
    assert [m.body for m in again.pull(PullRequest("g", "T", 2, 0)).messages] == [BODY]


def test_unknown_topics_are_not_created_by_reading(broker):
    assert broker.topic("T") is None
    with pytest.raises(TopicNotExistError, match="T does not exist"):
        broker.pull(PullRequest("g", "T", 0, 0))
    assert broker.topic("T") is None


@pytest.mark.parametrize("count", [-1, 65_537, 1 << 31])
def test_a_number_of_queues_that_no_topic_has_is_refused(broker, root, count):
    for config in (TopicConfig("T", count, 1), TopicConfig("T", 1, count)):
        with pytest.raises(BrokerSystemError, match="topic T cannot have"):
            broker.update_topic(config)
    assert not (root / "config" / "topics.json").exists()


def test_settings_that_the_file_cannot_hold_are_refused(broker, root):
    with pytest.raises(BrokerSystemError, match="topic T cannot have these settings"):
        broker.update_topic(TopicConfig("T", 1, 1, topic_sys_flag=1 << 31))
    assert not (root / "config" / "topics.json").exists()
    assert list(Journal(root).entries()) == []


def test_a_folder_of_a_huge_queue_id_makes_no_topic_of_so_many_queues(root):
    manager = TopicManager(
        root,
        BrokerConfig(),
        write_lock=None,
        queues=lambda: [("T", 2), ("T", 2_147_483_646)],
        now=lambda: 0,
    )
    assert manager.all()["T"] == manager.get("T") == TopicConfig("T", 3, 0, 4)
