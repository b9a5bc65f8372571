"""The dead letter topic is deleted and begins again: what was done with the old one is void."""

import pytest

from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.redrive_runs import SETTLED, RedriveRuns
from storage.format.message import Message
from tests.support.cli import run
from tests.support.dead_letters import bury

DO = ("--execute", "--yes", "-q")


@pytest.fixture
def dead(store):
    run("topic", "create", "t", "--queues", 1)
    return bury_in(store, 5)


def bury_in(store, count):
    return bury(store, "g", [Message("t", b"%d" % n) for n in range(count)])


def kill_before_the_end(store):
    """What a kill after the last receipt leaves: neither marks nor the run's last line."""
    (path,) = RedriveRuns(store).path.glob("*.jsonl")
    *lines, last = path.read_bytes().splitlines(keepends=True)
    assert b"settled" in last, SETTLED
    path.write_bytes(b"".join(lines))
    (store / "rmqctl" / "handled.json").unlink()


def delete_topic():
    done = run("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y")
    assert done.code == 0, done.err


def unhandled():
    return run("dlq", "list", "-o", "json").json()[0]["unhandled"]


@pytest.mark.slow
@pytest.mark.parametrize("is_noted", [True, False])
def test_a_killed_redrive_marks_nothing_in_a_topic_that_has_begun_again(dead, store, is_noted):
    assert run("dlq", "redrive", "g", "--all", *DO).code == 0
    kill_before_the_end(store)
    delete_topic()
    bury_in(store, 2)
    note = store / "rmqctl" / "deleted.json"
    if not is_noted:  # a broker of RocketMQ keeps none
        note = note.rename(store / "rmqctl" / "away.json")
    done = run("dlq", "redrive", "g", "--all", "--execute", "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert [row["queue_offset"] for row in done.json()] == [0, 1]
    assert is_noted is not ("interrupted; continue" in done.err)
    assert DlqAcksFile(store).read("%DLQ%g")[0].ranges() == [(0, 2)]
    bury_in(store, 3)
    assert unhandled() == 3
    note.rename(store / "rmqctl" / "deleted.json")


@pytest.mark.slow
def test_a_run_of_a_topic_that_has_begun_again_is_not_resumed(dead, store):
    assert run("dlq", "redrive", "g", "--all", "--max", 1, *DO).code == 0
    kill_before_the_end(store)
    delete_topic()
    bury_in(store, 2)
    refused = run("dlq", "redrive", "g", "--resume", "last", *DO)
    assert refused.code == 3
    assert "%DLQ%g was deleted since" in refused.err
    assert unhandled() == 2
