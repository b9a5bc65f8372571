"""A broker over a store that it may only read: golden stores of real brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.api.broker import Broker
from broker.api.offsets import OffsetCommit, OffsetQuery
from broker.api.pull import PullRequest
from broker.embedded.as_of import AsOfBroker
from broker.embedded.broker import EmbeddedBroker
from broker.errors import NoPermissionError
from broker.pull.pull import pull_status
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.results import GetMessageStatus
from storage.store import MessageStore
from tests.support import golden
from tests.support.recording_client import RecordingClient, consumer, heartbeat

STORES = ["basic-4.9", "small-files-4.9", "retry-dlq-4.9", "lmq-4.9", "retry-dlq-5.3"]


def snapshot(root: Path) -> dict[Path, tuple[int, int]]:
    return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in root.rglob("*")}


@pytest.fixture(params=STORES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(name: str) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker.open(golden.store(name), read_only=True) as opened:
        yield opened


def test_pulls_are_answered_as_the_real_broker_answers_them(name, broker):
    asked = 0
    for pull in golden.manifest(name).get("pulls", []):
        topic = broker.topic(pull["topic"])
        if "error" in pull or topic is None or not 0 <= pull["queueId"] < topic.read_queue_nums:
            continue
        answer = broker.pull(
            PullRequest(
                "TOOLS_CONSUMER",
                pull["topic"],
                pull["queueId"],
                pull["offset"],
                pull["maxNums"],
                pull["expression"] or "*",
            )
        )
        expected = GetMessageStatus(pull["status"])
        assert answer.get_status is expected, pull
        assert answer.pull_status is pull_status(expected, pull["offset"])
        assert answer.next_begin_offset == pull["nextBeginOffset"], pull
        assert [m.queue_offset for m in answer.messages] == pull["queueOffsets"], pull
        asked += 1
    assert asked > 10 or name == "lmq-4.9"


def test_progress_is_what_the_real_broker_shows(name, broker):
    known = broker.consumer_offsets()
    shown = 0
    for group in golden.manifest(name)["groups"]:
        for row in group.get("rows", []):
            offsets = known.get((group["group"], row["topic"]), {})
            # mqadmin prints a queue without progress as one that is read to its end.
            if row["queueId"] in offsets:
                assert offsets[row["queueId"]] == row["consumerOffset"]
                assert broker.max_offset(row["topic"], row["queueId"]) == row["brokerOffset"]
                shown += 1
    assert shown


def test_reading_leaves_no_trace_and_changing_is_refused(name, broker):
    root = golden.store(name)
    before = snapshot(root)
    reader: Broker = broker
    topic = next(t for t, _ in broker.view.queues() if not t.startswith("%"))
    reader.pull(
        PullRequest(
            "never-seen", topic, 0, 0, suspend_timeout_ms=1, commit=OffsetCommit(topic, 0, 9)
        )
    )
    reader.query_consumer_offset("never-seen", topic, 0)
    broker.tick()
    for change in (
        lambda: reader.send(Message(topic, b"x")),
        lambda: reader.send_batch([Message(topic, b"x")]),
        lambda: reader.send_column(topic, [b"x"]),
        lambda: reader.send(Message("Unknown", b"x")),
        lambda: reader.update_topic(TopicConfig("New")),
        lambda: reader.update_group(SubscriptionGroupConfig("new")),
        lambda: reader.update_consumer_offsets("g", [OffsetCommit(topic, 0, 1)]),
        lambda: reader.correct_consumer_offset("g", topic, 0),
        lambda: broker.progress.move("g", {(topic, 0): 1}),
        lambda: reader.connect("a", RecordingClient()),
        lambda: reader.heartbeat(heartbeat("a", consumer("g", topic))),
    ):
        with pytest.raises(NoPermissionError, match="reading only"):
            change()
    reader.close()
    assert snapshot(root) == before


def test_progress_past_the_end_is_left_where_it_is(tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as writer:
        writer.send(Message("T", b"1"), 0)
        writer.update_consumer_offsets("g", [OffsetCommit("T", 0, 1_000)])
    before = snapshot(root)
    with EmbeddedBroker.open(root, read_only=True) as reader:
        with pytest.raises(NoPermissionError, match="reading only"):
            reader.correct_consumer_offset("g", "T", 0)
        reader.note_consumer_offset("g", OffsetCommit("T", 0, 1_001))
        reader.unregister_client("a", consumer_group="g")
        reader.disconnect("a")
    with (
        AsOfBroker.open_at(root, now_ms(), {("g", "T"): {0: 1_000}}) as then,
        pytest.raises(NoPermissionError, match="reading only"),
    ):
        then.correct_consumer_offset("g", "T", 0)
    assert snapshot(root) == before


def test_a_broker_of_an_earlier_time_gives_the_progress_of_that_time(tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as writer:
        for _ in range(9):
            writer.send(Message("T", b"1"), 0)
        writer.update_consumer_offsets("g", [OffsetCommit("T", 0, 9)])
    with AsOfBroker.open_at(root, now_ms(), {("g", "T"): {0: 4}}) as then:
        assert then.query_consumer_offset("g", "T", 0) == OffsetQuery(4)
        unknown = OffsetQuery(None, stored=False)
        assert then.query_consumer_offset("g", "T", 1) == unknown
        assert then.query_consumer_offset("other", "T", 0) == unknown


def test_a_gap_in_the_files_is_passed_and_not_waited_at():
    with EmbeddedBroker.open(golden.store("hole-4.9"), read_only=True) as broker:
        gaps = [
            pull
            for pull in golden.manifest("hole-4.9")["pulls"]
            if pull["status"] == "OFFSET_FOUND_NULL"
        ]
        assert gaps
        for pull in gaps[:3]:
            started = time.monotonic()
            answer = broker.pull(
                PullRequest("g", pull["topic"], pull["queueId"], pull["offset"]),
            )
            held = broker.pull(
                PullRequest(
                    "g", pull["topic"], pull["queueId"], pull["offset"], suspend_timeout_ms=20_000
                )
            )
            assert time.monotonic() - started < 5
            assert held == answer
            assert answer.next_begin_offset == pull["nextBeginOffset"]


def test_writing_beside_it_is_seen(tmp_path):
    MessageStore.create(tmp_path / "s", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "s") as writer:
        writer.send(Message("T", b"1"), 0)
        with EmbeddedBroker.open(tmp_path / "s", read_only=True) as reader:
            known = reader.wait_for_messages(None, 0)
            writer.send(Message("T", b"2"), 0)
            assert reader.wait_for_messages(known, 10_000) > known
            found = reader.pull(PullRequest("TOOLS_CONSUMER", "T", 0, 0)).messages
            assert [m.body for m in found] == [b"1", b"2"]
