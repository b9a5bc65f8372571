"""What we redrive, and what we send before its time, reaches the consumers of a real broker."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.configs.early_deliveries import EarlyDeliveries
from storage.format.message import Message
from storage.store import now_ms
from tests.interop.cluster import running_cluster
from tests.interop.store_probe import Settings
from tests.support import golden
from tests.support.cli import run
from tests.support.dead_letters import give_back
from tests.support.java import Release

DO = ("--execute", "--yes", "-q")
SETTINGS: Settings = {
    "mappedFileSizeCommitLog": SMALL_STORE.mapped_file_size_commit_log,
    "mappedFileSizeConsumeQueue": SMALL_STORE.mapped_file_size_consume_queue,
    "maxHashSlotNum": SMALL_STORE.max_hash_slot_num,
    "maxIndexNum": SMALL_STORE.max_index_num,
}


@pytest.mark.interop
@pytest.mark.long
@pytest.mark.feature(87, 88)
def test_a_java_consumer_gets_its_own_dead_letters_again(java49: Release, tmp_path: Path) -> None:
    manifest = golden.manifest("retry-dlq-4.9")
    root = golden.extract("retry-dlq-4.9", tmp_path)
    letters = [row for row in manifest["messages"] if row["topic"] == "%DLQ%g-flaky"]
    for target, ids in (("retry", ("0", "1", "2")), ("origin", ("3", "4"))):
        done = run("dlq", "redrive", "g-flaky", *ids, "--target", target, *DO, "-S", root)
        assert done.code == 0
    run("dlq", "ack", "g-flaky", "5", "-y", "-q", "-S", root)

    with running_cluster(java49, root, tmp_path, manifest["settings"]) as cluster:
        received = cluster.consume("GoldenRetry", "g-flaky", 5)
        received.sort(key=lambda row: int(row["properties"]["RMQCTL_REDRIVE_DEAD"], 16))
        assert [row["bodySha256"] for row in received] == [row["bodySha256"] for row in letters[:5]]
        assert {row["topic"] for row in received} == {"GoldenRetry"}, (
            "also those of the retry topic"
        )
        assert {row["reconsumeTimes"] for row in received} == {0}
        for row, letter in zip(received, letters, strict=False):
            own = {"KEYS", "TAGS", "n", "emoji"} & letter["properties"].keys()
            assert {name: row["properties"][name] for name in own} == {
                name: letter["properties"][name] for name in own
            }
        others = cluster.consume("GoldenRetry", "g-fine", 2)
        assert len(others) == 2, "what went to its origin is for everybody"
        cluster.stop()
    (row, *_) = run("dlq", "list", "-S", root, "-o", "json").json()
    assert (row["group"], row["depth"], row["unhandled"]) == ("g-flaky", 6, 0)
    assert run("store", "fsck", "-S", root, "-q").code == 0


@pytest.mark.interop
def test_a_java_broker_delivers_what_we_sent_before_its_time_once_more(
    java49: Release, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    create_store(root, SMALL_STORE)
    past = now_ms() - 3_600_000
    with EmbeddedBroker.open(root, clock=lambda: past) as broker:
        stored = []
        for n in range(3):
            sent = broker.send(Message("T", b"x", keys=f"k{n}"), 0)
            stored += broker.query_unique("T", sent.msg_id)
            give_back(broker, "g", stored[n], level=5)
        broker.progress.move("g", {("T", 0): 3})
    assert run("retry", "now", "g", stored[0].msg_id, "-y", "-q", "-S", root).code == 0
    assert run("retry", "dead", "g", stored[1].msg_id, "-y", "-q", "-S", root).code == 0
    assert EarlyDeliveries(root).path.exists()

    with running_cluster(java49, root, tmp_path, SETTINGS) as cluster:
        received = cluster.consume("T", "g", 4)
        assert Counter(row["properties"]["KEYS"] for row in received) == {"k0": 2, "k1": 1, "k2": 1}
        assert {row["reconsumeTimes"] for row in received} == {1}
        [letter] = cluster.consume("%DLQ%g", "monitor", 1)
        assert letter["properties"]["KEYS"] == "k1"
        cluster.stop()
    assert run("retry", "browse", "g", "-S", root, "-o", "json").json() == []
    assert run("store", "fsck", "-S", root, "-q").code == 0
