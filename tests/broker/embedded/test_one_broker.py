"""One broker as clients see it, and what is on the disk when they have used it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from broker.api.broker import Broker
from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from storage.format.cq_unit import StoreUnit
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.copies import copy_store
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.samples import TINY

LOG_FILE, QUEUE_FILE = TINY.mapped_file_size_commit_log, TINY.mapped_file_size_consume_queue


def tiny_broker(root: Path) -> EmbeddedBroker:
    """A broker whose files hold 4 KiB of log and 4 units of a queue."""
    if not root.exists():
        MessageStore.create(root, TINY)
    return EmbeddedBroker.open(root, store_config=TINY)


def send_many(broker: Broker, count: int, queues: int = 1) -> None:
    broker.update_topic(TopicConfig("T", queues, queues))
    for n in range(count):
        broker.send(Message("T", b"%d" % n + bytes(200), keys=f"k{n}"), n % queues)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.conformance("A2")
def test_one_broker_takes_puts_pulls_queries_and_changes(broker: Broker) -> None:
    assert broker.update_topic(TopicConfig("T", 1, 1))
    member = RecordingClient()
    broker.connect("c", member)
    broker.heartbeat(heartbeat("c", consumer("g", "T")))
    sent = broker.send(Message("T", b"body", keys="k"))
    pulled = broker.pull(PullRequest("g", "T", 0, 0)).messages
    viewed = broker.view_message(pulled[0].commitlog_offset)
    found = broker.query_message("T", "k").messages
    assert viewed is not None
    assert {m.msg_id for m in (*pulled, *found, viewed)} == {sent.msg_id}
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 1)])
    assert broker.consumer_offsets("g") == {("g", "T"): {0: 1}}
    assert broker.consumer_ids("g") == ["c"]


@pytest.mark.conformance("A10", "A11")
def test_the_log_goes_on_in_files_that_are_named_by_their_first_offset(tmp_path: Path) -> None:
    with tiny_broker(tmp_path / "s") as broker:
        send_many(broker, 40)
        log = tmp_path / "s" / "commitlog"
        assert len(names(log)) > 2
        assert names(log) == [f"{n * LOG_FILE:020}" for n in range(len(names(log)))]
        messages = [broker.view.get_message("T", 0, n, 1).messages[0] for n in range(40)]
        offsets = [message.commitlog_offset for message in messages]
        assert len({offset // LOG_FILE for offset in offsets}) > 1, "in more than one file"
        for message in messages:
            found = broker.view_message(message.commitlog_offset)
            assert found is not None
            assert found.body == message.body
            begin = message.commitlog_offset % LOG_FILE
            assert begin + message.store_size <= LOG_FILE - 8, "with room for the blank record"


@pytest.mark.conformance("A13")
def test_a_topic_of_16_queues_has_the_folders_0_to_15_of_20_byte_units(tmp_path: Path) -> None:
    with tiny_broker(tmp_path / "s") as broker:
        send_many(broker, 16 * 5, 16)
        topic = tmp_path / "s" / "consumequeue" / "T"
        assert sorted(map(int, names(topic))) == list(range(16))
        for queue_id in range(16):
            files = names(topic / str(queue_id))
            assert files == [f"{0:020}", f"{QUEUE_FILE:020}"], "4 units a file"
            data = b"".join((topic / str(queue_id) / name).read_bytes() for name in files)
            for queue_offset in range(5):
                unit = StoreUnit.unpack_from(data, 20 * queue_offset)
                (message,) = broker.view.get_message("T", queue_id, queue_offset, 1).messages
                assert message.queue_offset == queue_offset
                assert (unit.commitlog_offset, unit.size) == (
                    message.commitlog_offset,
                    message.store_size,
                )


@pytest.mark.feature(113, 114)
@pytest.mark.conformance("A15")
def test_queues_and_index_that_are_gone_after_a_crash_are_made_again_from_the_log(
    tmp_path: Path,
) -> None:
    root = tmp_path / "s"
    with tiny_broker(root) as broker:
        send_many(broker, 30, 3)
        crashed = copy_store(root, tmp_path / "crashed")  # abort is there: it was not closed
        expected = [broker.view.get_message("T", n, 0, 32).messages for n in range(3)]
    shutil.rmtree(crashed / "consumequeue")
    shutil.rmtree(crashed / "index")
    with tiny_broker(crashed) as broker:
        found = [broker.view.get_message("T", n, 0, 32).messages for n in range(3)]
        assert [[m.body for m in queue] for queue in found] == [
            [m.body for m in queue] for queue in expected
        ]
        assert [m.queue_offset for m in broker.query_message("T", "k29").messages] == [9]
    assert names(crashed / "consumequeue" / "T") == ["0", "1", "2"]
