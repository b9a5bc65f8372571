"""Carved stores open in RocketMQ: the same messages, and a broker serves them."""

from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl import Message
from rmqctl.admin.known_topics import INNER_TOPICS
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from tests.interop import answers
from tests.interop.cluster import running_cluster
from tests.interop.store_probe import Row, StoreProbe
from tests.support import golden
from tests.support.cli import run
from tests.support.java import Release
from tests.support.same_records import all_messages

pytestmark = pytest.mark.interop

_DONE = ("--execute", "--yes", "-q")
_START_MS = 1_700_000_000_000
_SETTINGS = {
    "mappedFileSizeCommitLog": SMALL_STORE.mapped_file_size_commit_log,
    "mappedFileSizeConsumeQueue": SMALL_STORE.mapped_file_size_consume_queue,
    "maxHashSlotNum": SMALL_STORE.max_hash_slot_num,
    "maxIndexNum": SMALL_STORE.max_index_num,
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """600 messages, a second apart, in two queues; a group that has read some of each."""
    root = tmp_path / "orders"
    clock = [_START_MS]
    create_store(root, SMALL_STORE, clock=lambda: clock[0])
    with EmbeddedBroker.open(root, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("orders", 2, 2))
        for number in range(600):
            clock[0] += 1000
            message = Message(
                "orders",
                f"ann {number}".encode(),
                keys=f"k{number}",
                tags=("odd", "even")[number % 2],
            )
            broker.send(message, number % 2)
        broker.progress.move("readers", {("orders", 0): 250, ("orders", 1): 280}, {})
    return root


def _damage(root: Path, number: int) -> None:
    with StoreView.open(root) as view:
        victim = all_messages(view)[number]
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(victim.commitlog_offset + 88)
        file.write(b"?")


@pytest.mark.long
@pytest.mark.feature(121)
def test_a_real_broker_delivers_a_carved_range_with_a_hole_in_it(
    java49: Release, orders: Path, tmp_path: Path
) -> None:
    """From the first message that is there, over the hole, to the last; a group where it was."""
    _damage(orders, 500)
    out = tmp_path / "out"
    start, end = _START_MS + 401_000, _START_MS + 590_500
    result = run(
        *("store", "carve", out, "-S", orders, "-t", "orders", "--mask", "body=stars"),
        *("--from", start, "--to", end, *_DONE),
    )
    assert result.code == 8, result.err
    with StoreView.open(out) as view:
        sent = answers.dump(view)["messages"]
    assert len(sent) == 189
    settings = {**_SETTINGS, "fileReservedTime": 24_000}
    with running_cluster(java49, out, tmp_path, settings) as cluster:
        received = cluster.consume("orders", "new-group", len(sent))
        assert _by_place(received) == _by_place(sent)
        rest = [row for row in sent if row["queueOffset"] >= (250, 280)[row["queueId"]]]
        again = cluster.consume("orders", "readers", len(rest))
        assert _by_place(again) == _by_place(rest)
        stats = cluster.topic_stats("orders")
        held = {row["queueId"]: (row["minOffset"], row["maxOffset"]) for row in stats}
        assert held == {0: (200, 295), 1: (200, 295)}
        hits = cluster.query_by_key("orders", "k450")
        assert [row["queueOffset"] for row in hits] == [225]
        cluster.stop()
    with StoreView.open(out) as view:
        assert fsck(view).healthy


def _by_place(rows: list[Row]) -> list[Row]:
    names = ("queueId", "queueOffset", "commitLogOffset", "bodySha256", "storeTimestamp")
    found = [{name: row[name] for name in names} for row in rows]
    return sorted(found, key=lambda row: (row["queueId"], row["queueOffset"]))


@pytest.mark.parametrize("name", ["basic-4.9", "retention-4.9", "retry-dlq-4.9"])
def test_rocketmq_opens_what_was_carved_of_its_own_store(
    probe49: StoreProbe, tmp_path: Path, name: str
) -> None:
    source, out = golden.store(name), tmp_path / "out"
    with StoreView.open(source) as view:
        topics = sorted({topic for topic, _ in view.queues()} - INNER_TOPICS)
        config = view.config
    options = [text for topic in topics for text in ("-t", topic)]
    assert run("store", "carve", out, "-S", source, *options, *_DONE).code == 0
    settings = {
        "mappedFileSizeCommitLog": config.mapped_file_size_commit_log,
        "mappedFileSizeConsumeQueue": config.mapped_file_size_consume_queue,
        "maxHashSlotNum": config.max_hash_slot_num,
        "maxIndexNum": config.max_index_num,
    }
    with StoreView.open(out) as view:
        ours = answers.dump(view)
    with probe49.opened(out, settings) as opened:
        answers.same_as(ours, opened.dump())
    with StoreView.open(source) as view:
        wanted = len(all_messages(view, topics))
    assert len(ours["messages"]) == wanted > 0
