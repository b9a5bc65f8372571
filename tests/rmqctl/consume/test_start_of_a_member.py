"""Where a member of ``consume -g`` begins."""

from broker.api.offsets import OffsetCommit, OffsetQuery
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.queues.selection import Group
from rmqctl.consume import join
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.store import MessageStore


def test_progress_past_the_end_is_moved_to_the_end_that_the_warning_names(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        broker.send_column("t", [b"1"] * 5, 0)
        broker.update_consumer_offsets("g", [OffsetCommit("t", 0, 6)])
        said = []

        def warn(text: str) -> None:
            said.append(text)
            broker.send_column("t", [b"meanwhile"] * 3, 0)

        join.place(broker, "t", Group("g"), [0], None, warn)
        assert ["beyond its end 5" in text for text in said] == [True]
        assert broker.query_consumer_offset("g", "t", 0) == OffsetQuery(5, 1)
