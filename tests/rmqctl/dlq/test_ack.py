"""``dlq ack``: marks beside the queue."""

import os
import shutil
from pathlib import Path

import pytest

from storage.configs.checksummed_json import seal
from storage.configs.dlq_acks import DlqAcksFile
from storage.format.message import Message
from tests.support.cli import run
from tests.support.dead_letters import bury


@pytest.fixture
def dead(store):
    return bury(store, "g", [Message("t", b"x", tags=f"T{n}") for n in range(5)])


def handled():
    rows = run("dlq", "browse", "g", "--all", "-o", "json").json()
    return [row["queue_offset"] for row in rows if row["handled"]]


def ack(*options):
    return run("dlq", "ack", "g", *options, "-y")


@pytest.mark.feature(100)
def test_what_is_marked_is_not_unhandled_any_more(dead):
    done = run("dlq", "ack", "g", dead[0].msg_id, "2", "-y", "-o", "json")
    assert [(row["queue_offset"], row["handled"], row["applied"]) for row in done.json()] == [
        (0, True, True),
        (2, True, True),
    ]
    assert handled() == [0, 2]
    (row,) = run("dlq", "list", "-o", "json").json()
    assert (row["depth"], row["unhandled"]) == (5, 3)
    left = run("dlq", "browse", "g", "--unhandled", "-o", "json").json()
    assert [row["queue_offset"] for row in left] == [1, 3, 4]
    default = run("dlq", "browse", "g", "-o", "json")
    assert [row["queue_offset"] for row in default.json()] == [1, 3, 4]
    assert "2 of 5 are handled" in default.err


def test_the_queue_itself_stays_as_it_is(dead):
    before = run("consume", "%DLQ%g", "-e", "-o", "json").out
    ack("--all")
    assert run("consume", "%DLQ%g", "-e", "-o", "json").out == before


@pytest.mark.slow
def test_filters_and_age_choose(dead):
    ack("--tag", "T3")
    assert handled() == [3]
    assert ack("--older-than", "1h").code == 0
    assert handled() == [3]
    ack("--older-than", "0ms")
    assert handled() == [0, 1, 2, 3, 4]
    assert ack().code == 2, "nothing defaults to all"
    assert ack("0", "--all").code == 2


def test_nothing_is_marked_unasked_or_in_a_dry_run(dead, store):
    assert run("dlq", "ack", "g", "0").code == 7
    assert run("dlq", "ack", "g", "0", "--dry-run").code == 0
    assert handled() == []
    assert not (store / "rmqctl" / "handled.json").exists()


def test_what_dies_later_is_unhandled(dead, store):
    ack("--all")
    bury(store, "g", [Message("t", b"new")])
    (row,) = run("dlq", "list", "-o", "json").json()
    assert (row["depth"], row["unhandled"]) == (6, 1)


def test_the_journal_tells_of_marks(dead, store):
    ack("0", "--reason", "known bug 7")
    entries = run("audit", "list", "-o", "json").json()
    assert [(e["command"], e["group"], e["reason"]) for e in entries] == [
        ("dlq ack", "g", "known bug 7")
    ]


@pytest.mark.slow
def test_marks_of_a_queue_that_was_deleted_do_not_hide_new_dead_letters(dead, store):
    ack("--all")
    run("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y")
    shutil.rmtree(store / "consumequeue" / "%DLQ%g", ignore_errors=True)  # as a Java broker would
    marks = DlqAcksFile(store).path
    marks.write_bytes(seal({"version": 1, "topics": {"%DLQ%g": {"0": MARKS}}}))
    for expected in (1, 2):
        bury(store, "g", [Message("t", b"new")])
        (row,) = run("dlq", "list", "-o", "json").json()
        assert (row["depth"], row["unhandled"]) == (expected, expected)
    ack("0")
    assert handled() == [0]


MARKS = {"cursor": 2, "beyond": [], "witness": [1, 7]}


def test_undo_of_a_mark_beyond_the_queue_ends(dead):
    ack("--all")
    store = Path(os.environ["RMQCTL_STORE"])
    (path,) = (store / "rmqctl/journal").glob("*.jsonl")
    entry = {
        "change_id": 100,
        "at_timestamp": 1,
        "what": "ack",
        "group": "g",
        "topic": "%DLQ%g",
        "old": None,
        "new": {"handled": {"0": [[3, (1 << 63) - 1]], "9": [[0, 1 << 62]]}},
    }
    path.write_bytes(path.read_bytes() + seal(entry) + b"\n")
    assert run("dlq", "ack", "g", "--undo", "-y").code == 0
    assert handled() == [0, 1, 2]


def redrive(*options):
    return run("dlq", "redrive", "g", *options, "--target", "elsewhere", "-y")


def test_undo_leaves_the_mark_of_what_was_redriven_after_its_own_mark_was_removed(dead):
    run("topic", "create", "elsewhere")
    ack("2", "3")
    ack("2", "--undo")
    assert redrive("2").code == 0
    done = run("dlq", "ack", "g", "--undo", "-y", "-o", "json")
    assert [row["queue_offset"] for row in done.json()] == [3]
    assert handled() == [2]
    none = ack("--undo")
    assert (none.code, handled()) == (3, [2])
    assert "no 'dlq ack' of group g is left to undo" in none.err


def test_undo_leaves_the_marks_of_a_topic_that_was_deleted_and_made_again(dead, store):
    run("topic", "create", "elsewhere")
    ack("0")
    run("topic", "delete", "%DLQ%g", "--confirm", "%DLQ%g", "-y")
    bury(store, "g", [Message("t", b"new")])
    redrive("0")
    assert handled() == [0]
    assert ack("--undo").code == 3
    assert handled() == [0]


def test_undo_leaves_the_mark_of_what_was_redriven_since(dead):
    run("topic", "create", "elsewhere")
    ack("0", "1")
    assert redrive("1").code == 0
    assert ack("--undo").code == 0
    assert handled() == [1]


def test_a_topic_whose_settings_changed_keeps_its_marks_to_undo(dead):
    ack("0")
    assert run("topic", "alter", "%DLQ%g", "--perm", "4", "-y").code == 0
    assert ack("--undo").code == 0
    assert handled() == []
