"""Dead letters and retries in damaged stores: what can be read is shown, the rest is counted."""

import pytest

from storage.format.message import Message
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.dead_letters import bury


@pytest.fixture
def torn(store, tmp_path):
    """A store of four dead letters, of which the bodies of two have changed on the device."""
    dead_letters = bury(store, "g", [Message("t", b"body %d" % n) for n in range(4)])
    copy = tmp_path / "torn"
    copy_store(store, copy)
    (log,) = [path for path in (copy / "commitlog").iterdir() if path.name.isdigit()]
    data = bytearray(log.read_bytes())
    for dead_letter in dead_letters[1:3]:
        at = data.index(dead_letter.body, dead_letter.commitlog_offset)
        data[at] ^= 0x20
    log.write_bytes(data)
    return copy


def test_what_can_be_read_is_shown_and_the_rest_is_counted(torn):
    for command in (("browse",), ("export",), ("groups", "--by", "tag")):
        done = run("dlq", command[0], "g", *command[1:], "-S", torn, "-o", "json")
        assert done.code == 8
        assert "2 dead letters cannot be read; see 'rmqctl store fsck'" in done.err
    rows = run("dlq", "browse", "g", "-S", torn, "-o", "json").json()
    assert [row["queue_offset"] for row in rows] == [0, 3]
    (row,) = run("dlq", "list", "-S", torn, "-o", "json").json()
    assert (row["depth"], row["unhandled"]) == (4, 4), "they are there, and nobody has seen to them"


@pytest.mark.slow
def test_what_can_not_be_read_is_not_sent_and_not_marked(torn):
    done = run("dlq", "redrive", "g", "--all", "-S", torn, "--execute", "-y", "-o", "json")
    assert "2 dead letters cannot be read" in done.err
    assert [row["queue_offset"] for row in done.json()] == [0, 3]
    (row,) = run("dlq", "list", "-S", torn, "-o", "json").json()
    assert row["unhandled"] == 2
    assert run("dlq", "show", "g", "1", "-S", torn).code == 4


def test_a_broken_mark_file_is_said_and_named(torn):
    run("dlq", "ack", "g", "0", "-y", "-S", torn)
    path = torn / "rmqctl" / "handled.json"
    path.write_bytes(path.read_bytes()[:-2])
    done = run("dlq", "browse", "g", "-S", torn)
    assert (done.code, "handled.json" in done.err, done.out) == (4, True, "")
