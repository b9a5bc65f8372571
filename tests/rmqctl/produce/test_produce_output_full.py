"""Standard output that takes nothing more: what is stored is said, so that no one repeats it."""

from pathlib import Path

import pytest

from storage.format.message import Message
from tests.support.cli import call, run
from tests.support.dead_letters import bury

LINES = b"".join(b"line %d\n" % number for number in range(5000))
ROWS = b"".join(b'{"body": "line %d"}\n' % number for number in range(5000))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    run("store", "init", tmp_path / "s", "--small")
    run("topic", "create", "t", "-S", tmp_path / "s")
    return tmp_path / "s"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("produce t -o jsonl", LINES),
        ("produce t -o json", LINES),
        ("produce t -T", LINES),
        ("produce t", b"one\n"),
        ("produce t -T", b"one\n"),
        ("message import - -t t -o jsonl", ROWS),
        ("message import - -t t -o json", ROWS),
    ],
)
def test_an_output_that_is_full_tells_how_many_are_stored(store, line, given):
    with Path("/dev/full").open("wb") as full:
        done = call(*line.split(), "-S", store, stdin=given, stdout=full)
    stored = run("store", "info", "-S", store, "-o", "json").json()["messages"]
    assert 0 < stored <= given.count(b"\n")
    are = "1 message before is" if stored == 1 else f"{stored:,} messages before are"
    assert done.err.splitlines()[-1:] == [
        f"rmqctl: standard output: No space left on device; the {are} stored"
    ]
    assert done.code == 8


@pytest.mark.slow
def test_a_change_goes_on_to_its_end_where_its_rows_cannot_be_shown(store):
    run("produce", "t", "-S", store, stdin=b"one\n")
    with Path("/dev/full").open("wb") as full:
        done = call("topic", "delete", "t", "--confirm", "t", "--yes", "-S", store, stdout=full)
    assert "No space left on device; 3 of 3 are done all the same" in done.err
    assert done.code == 8
    assert run("topic", "queues", "t", "-S", store).code == 3


@pytest.mark.slow
def test_a_change_that_did_nothing_and_cannot_say_it_is_no_part(store):
    bury(store, "g", [Message("t", b"one")])
    with Path("/dev/full").open("wb") as full:
        options = ("--all", "--pipe", "false", "--yes", "-S", store)
        done = call("dlq", "redrive", "g", *options, stdout=full)
    assert (done.code, "No space left on device" in done.err) == (1, True)
