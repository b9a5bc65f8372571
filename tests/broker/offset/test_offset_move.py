"""Moving offsets: the same order of steps for each caller."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.offset.offset_move import move_offsets, move_offsets_of_store
from storage.configs.journal import Journal
from storage.configs.pending_commits import PendingCommits
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
from storage.coordination.exclusive import alone
from storage.errors import StoreInUseError
from tests.support.java_lock import java_lock

KEY = ("T@g", 0)


class _StoppedError(Exception):
    """Raised by a step of the test's own."""


@pytest.fixture
def file(root):
    """Offsets of one group: 4 is on the device, and a process that was killed had read to 7."""
    root.joinpath("lock").touch()
    file = ProgressFile(root)
    file.commit({KEY: QueueProgress(0, 4)})
    pending(root, 7)
    return file


def pending(root, offset, generation=0):
    members = root / "rmqctl" / "members"
    members.mkdir(parents=True, exist_ok=True)
    notes = PendingCommits(members / "dead.notes")
    notes.write(KEY, QueueProgress(generation, offset))
    notes.close()


def old_and_new(root):
    *_, entry = Journal(root).entries()
    return [(move["old"], move["new"]) for move in entry["moves"]]


def test_the_steps_have_one_order(file, root):
    steps: list[Any] = []

    @contextmanager
    def lock():
        steps.append("lock")
        yield
        steps.append("release")

    move_offsets(
        file,
        Journal(root),
        {KEY: 1, ("T@g", 2): 0, ("U@g", 1): None},
        {"command": "test"},
        lambda: 5,
        notify=lambda *where: steps.append(where),
        processes=root / "rmqctl" / "members",
        sync_log=lambda: steps.append("sync"),
        lock=lock(),
        before=lambda: steps.append("before"),
        check=lambda moves: steps.append([old.offset for old, _ in moves.values()]),
    )
    moved = ("g", "T", [0, 2]), ("g", "U", [1])
    assert steps == ["lock", "before", "sync", [7, None, None], "release", *moved]
    assert old_and_new(root) == [(7, 1), (None, 0), (None, None)]


@pytest.mark.parametrize("step", ["before", "check"])
def test_a_refusal_leaves_everything_as_it_was(file, root, step):
    def refuse(*_):
        raise _StoppedError

    steps: dict[str, Any] = {step: refuse}
    with pytest.raises(_StoppedError):
        move_offsets_of_store(root, {KEY: 1}, {}, lambda: 5, **steps)
    assert file.read().get(*KEY).generation == 0
    assert list(Journal(root).entries()) == []


def test_a_java_broker_keeps_moves_out(file, root):
    with java_lock(root), pytest.raises(StoreInUseError):
        move_offsets_of_store(root, {KEY: 1}, {}, lambda: 5)
    assert file.read().get(*KEY) == QueueProgress(0, 4)


def test_a_caller_that_holds_the_store_alone_needs_no_lock(file, root):
    with alone(root):
        move_offsets_of_store(root, {KEY: None}, {}, lambda: 5, alone=True)
    assert old_and_new(root) == [(7, None)]


def test_a_notice_that_cannot_be_sent_is_no_failure_of_the_move(open_broker, monkeypatch):
    broker = open_broker()
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("broker.members.notices.tell_reset", fail)
    broker.progress.move("g", {("T", 0): 1})
    assert broker.query_consumer_offset("g", "T", 0).offset == 1


def test_a_broker_takes_over_pending_commits_before_it_moves(open_broker, root):
    broker = open_broker()
    broker.update_consumer_offsets("g", [OffsetCommit("T", 0, 4)])
    pending(root, 7)
    broker.progress.move("g", {("T", 0): 1})
    assert old_and_new(root) == [(7, 1)]
