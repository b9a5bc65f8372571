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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_broken_mark_file_is_said_and_named(torn):
    run("dlq", "ack", "g", "0", "-y", "-S", torn)
    path = torn / "rmqctl" / "handled.json"
    path.write_bytes(path.read_bytes()[:-2])
    done = run("dlq", "browse", "g", "-S", torn)
    assert (done.code, "handled.json" in done.err, done.out) == (4, True, "")


@pytest.mark.slow
def test_a_queue_that_lacks_places_ends_the_run_and_is_named(store):
    """The first error is told, not what becomes of it: nothing can be synced any more."""
    run("topic", "create", "t", "--queues", 8)
    bury(store, "g", [Message("t", b"body %d" % n) for n in range(8)])
    run("produce", "t", stdin=b"line\n" * 16)
    (units,) = (store / "consumequeue" / "t" / "1").iterdir()
    data = bytearray(units.read_bytes())
    last = max(at for at in range(0, len(data), 20) if any(data[at + 8 : at + 12]))
    data[last + 8 : last + 12] = bytes(4)  # its size
    units.write_bytes(data)
    done = run("dlq", "redrive", "g", "--all", "--execute", "-y", "-o", "jsonl")
    assert (done.code, "queue 1 of t lacks places" in done.err) == (4, True), done.err
    number = done.err.split("--resume ")[1].split()[0]
    assert len(done.out.splitlines()) < 8, "queues take their turns"
    done = run("dlq", "redrive", "g", "--resume", number, "--execute", "-y", "-o", "json")
    assert done.code == 0, done.err
    found = run(
        "consume", "t", "-e", "-q", "--where", "properties.RMQCTL_REDRIVE_RUN", "-o", "json"
    )
    assert sorted(row["body"] for row in found.json()) == [f"body {n}" for n in range(8)]
