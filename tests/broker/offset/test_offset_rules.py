"""Committing and fetching progress, and where a group without any begins."""

from __future__ import annotations

import shutil
from typing import Any

import numpy
import pytest

from broker.api.broker import Broker
from broker.api.offsets import MAX_OFFSET, ConsumeFromWhere, OffsetCommit, OffsetQuery
from broker.api.pull import PullRequest
from broker.config import BrokerConfig
from broker.errors import BrokerSystemError, InvalidNameError
from broker.offset.offset_manager import is_young
from broker.offset.start_position import compute_pull_from_where
from broker.validation import typed
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import TopicConfig
from storage.errors import CorruptFileError, StoreNotWritableError
from storage.format.message import Message
from storage.format.shapes import MAX_INT, MAX_LONG

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
STRICT = BrokerConfig(zero_when_young=False)


def fill(broker: Broker, topic: str = "T", count: int = 5) -> None:
    broker.update_topic(TopicConfig(topic, 2, 2))
    broker.send_batch([Message(topic, b"%d" % n) for n in range(count)], 0)


@pytest.mark.conformance("G7")
def test_a_commit_is_visible_to_all_brokers_at_once(open_broker):
    first, second = open_broker(), open_broker()
    fill(first)
    assert first.update_consumer_offsets("g", [OffsetCommit("T", 0, 3)]) == [OffsetQuery(3)]
    assert second.query_consumer_offset("g", "T", 0) == OffsetQuery(3)
    assert second.update_consumer_offsets("g", [OffsetCommit("T", 0, 2)]) == [OffsetQuery(3)]
    assert second.update_consumer_offsets("g", []) == []


@pytest.mark.conformance("G7", "G8")
def test_a_commit_with_a_pull_reaches_the_files_with_the_next_tick(open_broker, root):
    broker = open_broker(BrokerConfig(flush_consumer_offset_interval_ms=1))
    other = open_broker()
    fill(broker)
    broker.pull(PullRequest("g", "T", 0, 0, commit=OffsetCommit("T", 0, 4)))
    assert broker.query_consumer_offset("g", "T", 0).offset == 4
    assert other.consumer_offsets() == {}
    broker.tick()
    assert other.consumer_offsets() == {("g", "T"): {0: 4}}
    assert load_consumer_offsets(root) == {"T@g": {0: 4}}


def test_a_tick_before_its_time_does_nothing(broker, root):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    broker.tick()
    assert load_consumer_offsets(root) == {}


@pytest.mark.conformance("A17")
def test_closing_writes_what_is_known(open_broker, root):
    broker = open_broker()
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    broker.pull(PullRequest("g", "T", 1, 0, commit=OffsetCommit("T", 1, 0)))
    broker.close()
    broker.close()
    assert load_consumer_offsets(root) == {"T@g": {0: 4, 1: 0}}


def test_a_reset_from_elsewhere_is_not_overwritten(open_broker):
    consumer, operator = open_broker(), open_broker()
    fill(consumer)
    consumer.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    consumer.pull(PullRequest("g", "T", 0, 4, commit=OffsetCommit("T", 0, 5)))
    moves = operator.progress.move("g", {("T", 0): 1})
    assert [(old.offset, new.offset) for old, new in moves.values()] == [(4, 1)]
    assert consumer.query_consumer_offset("g", "T", 0) == OffsetQuery(1, 1)
    answer = consumer.update_consumer_offsets("g", [OffsetCommit("T", 0, 5)])
    assert answer == [OffsetQuery(1, 1)]
    assert consumer.update_consumer_offsets("g", [OffsetCommit("T", 0, 2, 1)]) == [
        OffsetQuery(2, 1)
    ]


def test_a_move_is_noted_in_the_journal(broker, root):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    broker.progress.move("g", {("T", 0): None}, {"command": "offset delete"})
    broker.progress.move("g", {("T", 0): 1, ("T", 1): 0}, {"command": "offset reset"})
    *_, deleted, reset = Journal(root).entries()
    line = {"group": "g", "topic": "T", "queue_id": 0}
    assert deleted["command"] == "offset delete"
    assert deleted["moves"] == [{**line, "old": 4, "new": None, "generation": 1}]
    assert reset["moves"] == [
        {**line, "old": None, "new": 1, "generation": 2},
        {**line, "queue_id": 1, "old": None, "new": 0, "generation": 1},
    ]
    assert (deleted["previous"], reset["previous"]) == (None, deleted["change_id"])
    assert ProgressFile(root).read().change_id == reset["change_id"]
    assert broker.consumer_offsets() == {("g", "T"): {0: 1, 1: 0}}


def test_a_move_is_noted_before_it_is_done(broker, root, monkeypatch):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    before = (root / "rmqctl/offsets.log").read_bytes()
    at_writing = []
    write = ProgressFile._add

    def look(file: ProgressFile, *change: Any) -> None:
        at_writing.append(((root / "rmqctl/offsets.log").read_bytes(), [*Journal(root).entries()]))
        write(file, *change)

    monkeypatch.setattr(ProgressFile, "_add", look)
    broker.progress.move("g", {("T", 0): 1})
    file, entries = at_writing[0]
    assert file == before
    assert entries[-1]["moves"] == [
        {"group": "g", "topic": "T", "queue_id": 0, "old": 4, "new": 1, "generation": 1}
    ]


def test_a_move_that_can_not_be_noted_is_not_done(broker, root):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    shutil.rmtree(root / "rmqctl/journal")
    (root / "rmqctl/journal").write_bytes(b"")
    with pytest.raises(StoreNotWritableError):
        broker.progress.move("g", {("T", 0): 1})
    assert broker.consumer_offsets() == {("g", "T"): {0: 4}}


@pytest.mark.conformance("G6")
def test_progress_of_one_group_or_of_all(broker):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 1, 0), OffsetCommit("T", 0, 4)])
    broker.update_consumer_offsets("h", [OffsetCommit("%RETRY%h", 0, 1)])
    assert broker.consumer_offsets("h") == {("h", "%RETRY%h"): {0: 1}}
    assert broker.consumer_offsets() == {("g", "T"): {0: 4, 1: 0}, ("h", "%RETRY%h"): {0: 1}}


@pytest.mark.parametrize(
    ("group", "commit", "error"),
    [
        ("a@b", OffsetCommit("T", 0, 1), InvalidNameError),
        ("g", OffsetCommit("a b", 0, 1), InvalidNameError),
        ("g", OffsetCommit("T", 0, -1), BrokerSystemError),
        ("g", OffsetCommit("T", -1, 1), BrokerSystemError),
        ("g", OffsetCommit("T", 0, MAX_OFFSET + 1), BrokerSystemError),
        ("g", OffsetCommit("T", MAX_INT + 1, 1), BrokerSystemError),
        ("g", OffsetCommit("T", 0, 1, -1), BrokerSystemError),
        ("g", OffsetCommit("T", 0, 1, MAX_LONG + 1), BrokerSystemError),
        ("g", OffsetCommit("T", 0, 1.5), BrokerSystemError),  # type: ignore[arg-type]
        ("g", OffsetCommit("T", 0, True), BrokerSystemError),
        ("g", OffsetCommit("T", "0", 1), BrokerSystemError),  # type: ignore[arg-type]
    ],
)
def test_senseless_commits_are_refused(broker, root, group, commit, error):
    fill(broker)
    with pytest.raises(error):
        broker.update_consumer_offsets(group, [commit])
    with pytest.raises(error):
        broker.progress.note(group, commit)
    with pytest.raises(error):
        broker.pull(PullRequest(group, "T", 0, 0, commit=commit))
    assert not (root / "rmqctl" / "offsets.log").exists()


@pytest.mark.parametrize(("queue_id", "offset"), [(MAX_INT + 1, 1), (0, MAX_OFFSET + 1), (0, -1)])
def test_a_move_to_a_number_that_no_reader_takes_is_refused(broker, root, queue_id, offset):
    with pytest.raises(BrokerSystemError, match="can not be moved") as raised:
        broker.progress.move("g", {("T", queue_id): offset})
    assert "pull" not in str(raised.value)
    assert not (root / "rmqctl" / "offsets.log").exists()


ADVICE = "commit the next_begin_offset of a pull"
OFFSET_RANGE = f"it is a whole number (int) from 0 to {MAX_OFFSET}"


@pytest.mark.parametrize(
    ("commit", "reason"),
    [
        (OffsetCommit("T", 0, -1), f"the offset is -1; {OFFSET_RANGE}: {ADVICE}"),
        (
            OffsetCommit("T", 0, numpy.int64(3)),  # type: ignore[arg-type]
            f"the offset is {typed(numpy.int64(3))}; {OFFSET_RANGE}: {ADVICE}",
        ),
        (
            OffsetCommit("T", 0, True),
            f"the offset is {typed(True)}; {OFFSET_RANGE}: {ADVICE}",
        ),
        (
            OffsetCommit("T", MAX_INT + 1, 3),
            f"the queue id is {MAX_INT + 1}; it is a whole number (int) from 0 to {MAX_INT}",
        ),
        (
            OffsetCommit("T", 0, 3, -1),
            f"the generation is -1; it is a whole number (int) from 0 to {MAX_LONG}",
        ),
    ],
)
def test_a_refused_commit_names_the_number_that_is_wrong(broker, commit, reason):
    with pytest.raises(BrokerSystemError) as raised:
        broker.update_consumer_offsets("g", [commit])
    sentence = f"progress of group g in queue {commit.queue_id} of topic T can not be committed"
    assert raised.value.args[0] == f"{sentence}: {reason}"


def test_a_refused_correction_speaks_of_no_commit(broker):
    with pytest.raises(BrokerSystemError, match="can not be corrected: the offset is -1") as raised:
        broker.correct_consumer_offset("g", "T", 0, -1)
    assert ADVICE not in str(raised.value)


def test_what_could_not_be_written_is_not_forgotten(open_broker, root):
    broker = open_broker()
    fill(broker)
    broker.progress.note("g", OffsetCommit("T", 0, 4))
    blocked = root / "rmqctl" / "offsets.log"
    blocked.mkdir()
    with pytest.raises((CorruptFileError, OSError)):
        broker.progress.persist()
    blocked.rmdir()
    broker.progress.note("g", OffsetCommit("T", 0, 3))
    broker.progress.persist()
    assert broker.consumer_offsets() == {("g", "T"): {0: 4}}


def test_a_young_queue_answers_zero_to_a_new_group(open_broker):
    broker = open_broker()
    fill(broker)
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(0, 0, stored=False)
    assert broker.query_consumer_offset("g", "T", 1) == OffsetQuery(0, 0, stored=False)
    assert open_broker(STRICT).query_consumer_offset("g", "T", 0) == OffsetQuery(
        None, 0, stored=False
    )


def test_a_queue_is_young_while_its_first_message_is_near_the_end(broker):
    fill(broker)
    distance = broker.view.log_max_offset()
    assert is_young(broker.view, "T", 0, distance)
    assert not is_young(broker.view, "T", 0, distance - 1)
    assert is_young(broker.view, "T", 1, 0)


@pytest.mark.conformance("G6")
@pytest.mark.parametrize("where", ConsumeFromWhere)
def test_progress_wins_over_the_wish(broker, where):
    fill(broker)
    broker.progress.move("g", {("T", 0): 2})
    assert compute_pull_from_where(broker, "g", "T", 0, where) == OffsetQuery(2, 1)


@pytest.mark.parametrize("where", ConsumeFromWhere)
def test_a_young_queue_is_read_from_its_start_whatever_is_wished(broker, where):
    fill(broker)
    assert compute_pull_from_where(broker, "g", "T", 0, where).offset == 0


@pytest.mark.parametrize(
    ("topic", "where", "offset"),
    [
        ("T", FIRST, 0),
        ("T", LAST, 5),
        ("T", TIMESTAMP, 4),
        ("%RETRY%g", FIRST, 0),
        ("%RETRY%g", LAST, 0),
        ("%RETRY%g", TIMESTAMP, 3),
    ],
)
def test_a_group_without_progress_begins_where_it_wishes(open_broker, topic, where, offset):
    broker = open_broker(STRICT)
    fill(broker)
    for n in range(3):
        broker.send(Message("%RETRY%g", b"%d" % n), 0)
    far = 4_102_444_800_000
    assert compute_pull_from_where(broker, "g", topic, 0, where, far).offset == offset


def test_deleted_progress_keeps_its_generation(open_broker):
    broker = open_broker(STRICT)
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 2)])
    broker.progress.move("g", {("T", 0): None})
    assert compute_pull_from_where(broker, "g", "T", 0, LAST) == OffsetQuery(5, 1, stored=False)


@pytest.mark.conformance("D11")
def test_progress_behind_the_end_of_its_queue_is_moved_back_to_the_end(open_broker):
    broker = open_broker()
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 50)])
    moved = broker.correct_consumer_offset("g", "T", 0)
    assert moved.offset == 5
    assert broker.query_consumer_offset("g", "T", 0) == moved
    assert broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 60)]) == [moved], (
        "whoever still is on the old way does not bring it back"
    )
    *_, entry = Journal(broker.view.root).entries()
    assert entry["command"] == "correct offset"
    [move] = entry["moves"]
    assert move == {"group": "g", "topic": "T", "queue_id": 0, "old": 50, "new": 5, "generation": 1}
    assert broker.correct_consumer_offset("g", "T", 0) == moved, "what lies in the queue stays"
    assert [*Journal(broker.view.root).entries()][-1] == entry, "and needs no note"
    assert broker.correct_consumer_offset("other", "T", 0) == OffsetQuery(None, 0, stored=False)


@pytest.mark.conformance("D11")
@pytest.mark.parametrize("stored", [1, 3, 100])
def test_progress_is_moved_to_the_end_at_which_it_was_found(broker, stored):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 50)])
    broker.send_column("T", [b"x"] * stored, 0)
    moved = broker.correct_consumer_offset("g", "T", 0, 5, progress=50)
    assert moved == OffsetQuery(5, 1)
    [move] = [*Journal(broker.view.root).entries()][-1]["moves"]
    assert (move["old"], move["new"]) == (50, 5)


def test_progress_is_not_moved_past_the_end_of_now(broker):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 50)])
    assert broker.correct_consumer_offset("g", "T", 0, 20) == OffsetQuery(5, 1)


def test_progress_that_was_moved_since_it_was_found_past_the_end_stays(broker):
    fill(broker)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 50)])
    broker.send_column("T", [b"x"] * 100, 0)
    broker.progress.move("g", {("T", 0): 90})
    assert broker.correct_consumer_offset("g", "T", 0, 5, 0, 50) == OffsetQuery(90, 1)
    assert broker.correct_consumer_offset("g", "T", 0, 5, 1, 90) == OffsetQuery(5, 2)


@pytest.mark.parametrize("claim", [(40,), (40, 0, 81), (40, 0, 40), (40, 0, 12)])
def test_progress_within_its_queue_stays_whatever_end_is_named(broker, claim):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_column("T", [b"x"] * 100, 0)
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 80)])
    assert broker.correct_consumer_offset("g", "T", 0, *claim) == OffsetQuery(80)
    assert "moves" not in [*Journal(broker.view.root).entries()][-1]


@pytest.mark.conformance("G12", "D11")
def test_a_correction_does_not_undo_a_reset_that_came_a_moment_before(broker, monkeypatch):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 500)])
    broker.send_column("T", [b"x"] * 10, 0)
    move, other = ProgressFile.move, ProgressFile(broker.view.root)

    def late(file: ProgressFile, *arguments: Any) -> Any:
        move(other, {("T@g", 0): 3})
        return move(file, *arguments)

    monkeypatch.setattr(ProgressFile, "move", late)
    assert broker.correct_consumer_offset("g", "T", 0).offset == 3
    assert broker.query_consumer_offset("g", "T", 0).offset == 3


def test_what_is_stored_and_consumed_during_a_correction_stays_consumed(broker, monkeypatch):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send_column("T", [b"x"] * 10, 0)
    move = ProgressFile.move

    def late(file: ProgressFile, *arguments: Any) -> Any:
        broker.send_column("T", [b"x"] * 5, 0)
        ProgressFile(broker.view.root).commit({("T@g", 0): QueueProgress(0, 15)})
        return move(file, *arguments)

    monkeypatch.setattr(ProgressFile, "move", late)
    assert broker.correct_consumer_offset("g", "T", 0).offset == 15
