"""Progress in the memory of one process, seen by the others before it is in any other file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from broker.api.offsets import MAX_OFFSET, OffsetCommit, OffsetQuery
from broker.api.pull import PullRequest
from broker.embedded.broker import EmbeddedBroker
from storage.configs import pending_commits
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.pending_commits import PendingCommits, notes_in, read_notes
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.format.shapes import MAX_INT, MAX_LONG
from tests.support.broker_puppet import broker_puppet
from tests.support.recording_client import RecordingClient, consumer, heartbeat

PATIENCE_S = 20


def fill(broker: EmbeddedBroker) -> None:
    broker.update_topic(TopicConfig("T", 2, 2))
    broker.send_batch([Message("T", b"%d" % n) for n in range(9)], 0)


def member(broker: EmbeddedBroker, client_id: str = "a") -> EmbeddedBroker:
    broker.connect(client_id, RecordingClient())
    broker.heartbeat(heartbeat(client_id, consumer("g", "T")))
    return broker


def pull(broker: EmbeddedBroker, offset: int, generation: int = 0) -> None:
    commit = OffsetCommit("T", 0, offset, generation)
    broker.pull(PullRequest("g", "T", 0, offset, commit=commit))


@pytest.mark.conformance("A19", "G8")
def test_the_next_owner_of_a_queue_sees_what_the_last_one_has_pulled_past(open_broker, root):
    owner, heir = member(open_broker()), open_broker()
    fill(owner)
    for offset in (3, 7, 5):
        pull(owner, offset)
        seen = max(offset, 3 if offset == 3 else 7)
        assert heir.query_consumer_offset("g", "T", 0) == OffsetQuery(seen)
    assert heir.query_consumer_offset("g", "T", 1).stored is False
    assert heir.query_consumer_offset("h", "T", 0).stored is False
    assert heir.consumer_offsets() == {}, "it is in no file that a broker reads"


@pytest.mark.crash
@pytest.mark.conformance("A19", "G8")
def test_what_a_killed_process_had_in_memory_is_not_lost_with_its_station(open_broker, root):
    broker = open_broker()
    fill(broker)
    with broker_puppet(root) as puppet:
        puppet.call("join", client_id="b", group="g")
        member(broker)
        puppet.call("pull_with_progress", group="g", topic="T", queue_id=0, offset=6)
        puppet.kill()
    processes = root / "rmqctl" / "members"
    deadline = time.monotonic() + PATIENCE_S
    while len(list(processes.glob("*.life"))) > 1:
        assert time.monotonic() < deadline, "nobody has noticed the death"
        assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(6)
    assert notes_in(processes) == []
    assert broker.query_consumer_offset("g", "T", 0) == OffsetQuery(6)
    assert broker.consumer_offsets() == {("g", "T"): {0: 6}}


def test_a_move_of_progress_holds_against_what_an_owner_still_shows(open_broker):
    owner, heir = member(open_broker()), open_broker()
    fill(owner)
    pull(owner, 8)
    heir.progress.move("g", {("T", 0): 2})
    assert heir.query_consumer_offset("g", "T", 0) == OffsetQuery(2, 1)
    pull(owner, 9)
    assert heir.query_consumer_offset("g", "T", 0) == OffsetQuery(2, 1)
    pull(owner, 4, generation=1)
    assert heir.query_consumer_offset("g", "T", 0) == OffsetQuery(4, 1)


def test_who_leaves_has_stored_what_it_showed(open_broker, root):
    owner, heir = member(open_broker()), open_broker()
    fill(owner)
    pull(owner, 8)
    owner.close()
    assert notes_in(root / "rmqctl" / "members") == []
    assert heir.consumer_offsets() == {("g", "T"): {0: 8}}


def test_the_largest_numbers_that_are_taken_can_be_read(open_broker, root):
    owner, heir = member(open_broker()), open_broker()
    largest = OffsetCommit("T", MAX_INT, MAX_OFFSET, MAX_LONG)
    owner.note_consumer_offset("g", largest)
    shown = OffsetQuery(MAX_OFFSET, MAX_LONG)
    assert heir.query_consumer_offset("g", "T", MAX_INT) == shown
    assert heir.update_consumer_offsets("g", [largest]) == [shown]
    owner.close()
    heir.close()
    assert ProgressFile(root).read().get("T@g", MAX_INT) == QueueProgress(MAX_LONG, MAX_OFFSET)
    assert load_consumer_offsets(root) == {"T@g": {MAX_INT: MAX_OFFSET}}


def test_of_two_generations_and_many_queues_each_has_its_place(tmp_path: Path) -> None:
    notes = PendingCommits(tmp_path / "one.notes")
    expected: dict[Any, set[QueueProgress]] = {}
    for queue_id in range(70):
        for generation in (0, 1):
            for offset in (5, 6 + queue_id):
                notes.write(("T\udcff@g", queue_id), QueueProgress(generation, offset))
            expected.setdefault(("T\udcff@g", queue_id), set()).add(
                QueueProgress(generation, 6 + queue_id)
            )
    notes.close()
    notes.write(("T@g", 0), QueueProgress(0, 1))
    found = read_notes(notes.path)
    assert len(found) == 140
    assert all(progress in expected[key] for key, progress in found)
    only = read_notes(notes.path, ("T\udcff@g", 7))
    assert [progress for _, progress in only] == [QueueProgress(0, 13), QueueProgress(1, 13)]


def test_a_file_of_another_boot_says_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    notes = PendingCommits(tmp_path / "one.notes")
    notes.write(("T@g", 0), QueueProgress(0, 1))
    assert len(read_notes(notes.path)) == 1
    monkeypatch.setattr(pending_commits, "boot_id", lambda: (1, 2))
    assert read_notes(notes.path) == []


def test_a_file_that_is_gone_or_cut_says_what_is_whole(tmp_path: Path) -> None:
    notes = PendingCommits(tmp_path / "one.notes")
    assert read_notes(notes.path) == []
    assert notes_in(tmp_path / "none") == []
    for queue_id in (0, 1):
        notes.write(("T@g", queue_id), QueueProgress(0, 1))
    with notes.path.open("r+b") as file:
        file.truncate(2 * 1_024 + 30)
    assert [key for key, _ in read_notes(notes.path)] == [("T@g", 0)]
