"""A store that is written to is carved as of one moment: no copied message is newer than a message
that is missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin import store as admin
from rmqctl.admin.changes import journal_note
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.queue.reader import QueueBounds
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from tests.support.same_records import all_messages

QUEUES = 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    create_store(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        broker.update_topic(TopicConfig("orders", QUEUES, QUEUES))
        send(broker, 40)
        yield broker


def send(broker: EmbeddedBroker, count: int) -> None:
    """Messages in all queues in turns; a group has read each as soon as it is stored."""
    for number in range(count):
        sent = broker.send(Message("orders", b"order"), number % QUEUES)
        move = {("orders", number % QUEUES): sent.queue_offset + 1}
        broker.progress.move("readers", move, {})


class BusyView(StoreView):
    """A view of a store into which messages come after every read of a queue's bounds."""

    writer: EmbeddedBroker

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Read them; then the writer goes on."""
        found = super().queue_bounds(topic, queue_id)
        send(self.writer, QUEUES)
        return found


@pytest.mark.parametrize("named", ["orders", None])
@pytest.mark.slow
def test_no_copied_message_is_newer_than_a_missing_one(
    broker: EmbeddedBroker, tmp_path: Path, named: str | None
) -> None:
    root, out = broker.view.root, tmp_path / "out"
    with BusyView.open(root) as view:
        view.writer = broker
        if named is None:
            change = admin.carve(view, out, groups=["readers"])
        else:
            change = admin.carve(view, out, topics=[named])
        rows = list(change.apply(journal_note("test")).rows)
    assert change.lost == 0
    with StoreView.open(root) as view, StoreView.open(out) as copy:
        assert fsck(copy).healthy
        copied = {(m.queue_id, m.queue_offset) for m in all_messages(copy)}
        place = {(m.queue_id, m.queue_offset): m.commitlog_offset for m in all_messages(view)}
        assert len(place) > len(copied)
        newest = max(place[message] for message in copied)
        assert newest < min(place[message] for message in place.keys() - copied)
        assert sum(row.messages for row in rows) == len(copied) == 40
        for queue_id, offset in load_consumer_offsets(out)["orders@readers"].items():
            assert offset == copy.queue_bounds("orders", queue_id).max_offset
