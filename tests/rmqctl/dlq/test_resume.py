"""A redrive that breaks off: nothing is sent twice, nothing and no receipt is lost."""

import errno
import fcntl
import json
import os
import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.checksummed_json import seal, unseal
from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.redrive_runs import RedriveRuns
from storage.coordination.shared_state import SharedState, Word
from storage.files.fs import FileSystem
from storage.format.message import Message
from tests.support.cli import run, start
from tests.support.dead_letters import bury, give_back

DO = ("--execute", "--yes", "-q")
COUNT = 120


@pytest.fixture
def dead(store):
    run("topic", "create", "t", "--queues", 1)
    for part in range(4):
        bury(store, "g", [Message("t", b"%d" % n) for n in range(part * 30, part * 30 + 30)])
    return store


def found():
    return run("consume", "t", "-e", "-o", "json", "-q").json()


def copies():
    """How often each dead letter was sent, by its offset id."""
    return Counter(
        message["properties"]["RMQCTL_REDRIVE_DEAD"]
        for message in found()
        if "RMQCTL_REDRIVE_DEAD" in message["properties"]
    )


def receipts(store):
    """The offsets that the run's receipts say were sent, in their order."""
    runs = RedriveRuns(store)
    (name,) = runs.names()
    read = runs.read(name)
    assert read is not None
    return [entry["queue_offset"] for entry in read[1] if entry.get("applied")]


def unhandled():
    return run("dlq", "list", "-o", "json").json()[0]["unhandled"]


@pytest.mark.feature(94)
@pytest.mark.slow
@pytest.mark.parametrize("attempts", [4, pytest.param(8, marks=pytest.mark.long)])
def test_a_run_that_is_killed_again_and_again_sends_everything_once(dead, tmp_path, attempts):
    chance = random.Random(11)
    file = tmp_path / "receipts.jsonl"
    options = ["--all"]
    kills = 0
    for attempt in range(attempts):
        before = len(file.read_bytes()) if file.exists() else 0
        more = ("--rate", "400/s", "--receipts", file)
        with start("dlq", "redrive", "g", *options, *more, *DO) as process:
            wanted = before + chance.randrange(1, 9000)
            while process.poll() is None:
                if file.exists() and len(file.read_bytes()) >= wanted:
                    process.kill()
                    kills += 1
                    break
        if RedriveRuns(dead).names():
            options = ["--resume", "last"]
        assert max(copies().values(), default=0) <= 1, attempt
    assert kills >= 2, "the runs end before they are killed"
    done = run("dlq", "redrive", "g", *options, "--receipts", file, *DO)
    assert done.code == 0
    sent = copies()
    assert (len(sent), set(sent.values())) == (COUNT, {1})
    assert sorted(receipts(dead)) == list(range(COUNT)), "a receipt each, none twice"
    assert unhandled() == 0
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert {line["queue_offset"] for line in lines if line["applied"]} == set(range(COUNT))


def test_receipts_that_are_appended_begin_a_line(dead, tmp_path):
    file = tmp_path / "receipts.jsonl"
    file.write_bytes(b'{"queue_offset": 1, "app')
    run("dlq", "redrive", "g", "--all", "--receipts", file, *DO)
    broken, *lines = file.read_bytes().splitlines()
    assert broken == b'{"queue_offset": 1, "app'
    assert len([json.loads(line) for line in lines]) == COUNT


@pytest.mark.feature(94)
@pytest.mark.slow
def test_what_was_stored_and_has_no_receipt_is_found_in_the_log(dead):
    run("dlq", "redrive", "g", "--all", *DO)
    (path,) = RedriveRuns(dead).path.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    # Killed between storing the 99th and its receipt, in the middle of writing that: the first two
    # lines are the task and the beginning.
    path.write_bytes(b"\n".join(lines[:100]) + b"\n" + lines[100][:20])
    (dead / "rmqctl" / "handled.json").unlink()
    (name,) = RedriveRuns(dead).names()
    plan = run("dlq", "redrive", "g", "--resume", name, "-o", "json").json()
    assert {row["note"] for row in plan} == {"stored by an earlier, interrupted attempt"}
    done = run("dlq", "redrive", "g", "--resume", name, *DO, "-o", "json")
    assert [row["applied"] for row in done.json()] == [True] * (COUNT - 98)
    assert set(copies().values()) == {1}
    assert sorted(receipts(dead)) == list(range(COUNT))
    assert unhandled() == 0


@pytest.mark.slow
def test_a_receipt_whose_message_is_not_in_the_log_does_not_count(dead):
    """A loss of power may keep the receipt and take the message."""
    run("dlq", "redrive", "g", "0", "1", *DO)
    (path,) = RedriveRuns(dead).path.glob("*.jsonl")
    task, _, *rest = (unseal(line) for line in path.read_bytes().split(b"\n")[:-1])
    assert task is not None
    task["places"].append((0, 2))
    receipt = {**(rest[0] or {}), "queue_offset": 2}
    lines = [task, rest[0] or {}, rest[1] or {}, receipt]
    path.write_bytes(b"".join(seal(line) + b"\n" for line in lines))
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 0
    assert sorted(copies().values()) == [1, 1, 1]
    assert unhandled() == COUNT - 3


@pytest.mark.slow
def test_a_run_that_was_killed_before_its_marks_gets_them(dead):
    run("dlq", "redrive", "g", "--all", *DO)
    (path,) = RedriveRuns(dead).path.glob("*.jsonl")
    path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[: COUNT + 2]) + b"\n")
    (dead / "rmqctl" / "handled.json").unlink()
    assert run("dlq", "redrive", "g", "--resume", "last", "-n").code == 0
    assert unhandled() == COUNT, "a dry run writes nothing"
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 0
    assert (unhandled(), len(copies())) == (0, COUNT)


@pytest.mark.slow
def test_a_resumed_run_leaves_alone_what_others_have_acknowledged_since(dead):
    run("dlq", "redrive", "g", "0", "1", "2", "--max", 1, *DO)
    run("dlq", "redrive", "g", "3", "4", *DO)
    tasks = {
        path: unseal(path.read_bytes().split(b"\n")[0])
        for path in RedriveRuns(dead).path.glob("*.jsonl")
    }
    [(path, task)] = [(p, t) for p, t in tasks.items() if t and (0, 0) in map(tuple, t["places"])]
    name = path.stem
    path.write_bytes(seal({**task, "places": [(0, 0), (0, 5), (0, 6), (0, 3)]}) + b"\n")
    assert run("dlq", "ack", "g", "5", "--yes").code == 0
    plan = run("dlq", "redrive", "g", "--resume", name, "-o", "json")
    assert [row["queue_offset"] for row in plan.json()] == [0, 6]
    assert "2 were handled by another command since, and are skipped" in plan.err
    done = run("dlq", "redrive", "g", "--resume", name, *DO, "-o", "json")
    assert done.code == 0, done.err
    assert [row["queue_offset"] for row in done.json()] == [0, 6]
    assert sorted(copies().values()) == [1, 1, 1, 1], "0, 3, 4 and 6"


@pytest.fixture
def picky(tmp_path):
    """A program that fails until there is a file ``mended`` beside it."""
    script = tmp_path / "picky"
    script.write_text('#!/bin/sh\n[ -e "$(dirname "$0")/mended" ] && exec cat\nexit 3\n')
    script.chmod(0o755)
    return script


def test_a_resumed_run_sends_what_was_handled_before_it_began(dead, picky):
    assert run("dlq", "ack", "g", "1", "2", "--yes").code == 0
    stopped = run("dlq", "redrive", "g", "0", "1", "2", "--pipe", picky, *DO)
    assert (stopped.code, copies()) == (1, {})
    assert run("dlq", "ack", "g", "0", "--yes").code == 0
    (picky.parent / "mended").touch()
    done = run("dlq", "redrive", "g", "--resume", "last", "--execute", "--yes", "-o", "json")
    assert done.code == 0, done.err
    assert [(row["queue_offset"], row["applied"]) for row in done.json()] == [(1, True), (2, True)]
    assert "1 were handled by another command since, and are skipped" in done.err
    assert sorted(copies().values()) == [1, 1]


def test_a_resumed_run_leaves_alone_what_another_run_has_sent_since(dead, picky):
    run("dlq", "redrive", "g", "0", "1", "2", *DO)
    stopped = run("dlq", "redrive", "g", "0", "1", "2", "--pipe", picky, *DO, "-o", "json")
    name = stopped.json()[0]["run"]
    run("dlq", "redrive", "g", "1", *DO)
    (picky.parent / "mended").touch()
    done = run("dlq", "redrive", "g", "--resume", name, *DO, "-o", "json")
    assert done.code == 0, done.err
    assert [row["queue_offset"] for row in done.json()] == [0, 2]
    assert sorted(copies().values()) == [2, 2, 2]


@pytest.mark.slow
def test_a_retry_of_what_a_run_has_sent_is_not_taken_for_what_it_sent(dead):
    """The copy fails again: its retry carries the same run, and lies after it."""
    run("dlq", "redrive", "g", "0", *DO)
    (first,) = (m for m in found() if "RMQCTL_REDRIVE_DEAD" in m["properties"])
    with EmbeddedBroker.open(dead) as broker:
        (message,) = broker.view.get_message("t", 0, first["queue_offset"], 1).messages
        give_back(broker, "g", message)
        (again,) = broker.view.get_message("%DLQ%g", 0, COUNT, 1).messages
    assert again.get_property("RMQCTL_REDRIVE_DEAD") == message.get_property("RMQCTL_REDRIVE_DEAD")
    (path,) = RedriveRuns(dead).path.glob("*.jsonl")
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    (dead / "rmqctl" / "handled.json").unlink()
    done = run("dlq", "redrive", "g", "--resume", path.stem, *DO, "-o", "json")
    assert done.code == 0, done.err
    [row] = done.json()
    assert (row["target"], row["new_queue_offset"]) == ("t", first["queue_offset"])
    assert row["redriven_timestamp"] == first["store_timestamp"]


@pytest.mark.slow
def test_a_mark_is_written_when_its_message_is_on_the_device(dead, monkeypatch):
    """A loss of power that keeps the mark and takes the message would lose it."""
    following = []
    mark = DlqAcksFile.mark

    def mark_and_look(self, topic, marks, *rest):
        with words_of(dead) as words:
            following.append((words[Word.LOG_END], words[Word.FLUSHED_TO], bool(marks)))
        return mark(self, topic, marks, *rest)

    monkeypatch.setattr(DlqAcksFile, "mark", mark_and_look)
    assert run("dlq", "redrive", "g", "0", "1", *DO).code == 0
    assert any(marks for *_, marks in following)
    assert all(flushed >= end for end, flushed, marks in following if marks), following


@contextmanager
def words_of(root):
    """The words of a store's page, as its writer has them."""
    page = SharedState(FileSystem(), root, writable=False)
    try:
        yield page.words
    finally:
        page.close()


@pytest.mark.slow
def test_a_new_run_does_not_send_what_a_killed_one_has_sent(dead):
    run("dlq", "redrive", "g", "0", "1", *DO)
    (path,) = RedriveRuns(dead).path.glob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(lines[0] + b"\n")
    (dead / "rmqctl" / "handled.json").unlink()
    done = run("dlq", "redrive", "g", "--all", "--execute", "--yes", "-o", "json")
    assert (done.code, len(done.json())) == (0, COUNT - 2)
    assert f"--resume {path.stem}" in done.err
    assert set(copies().values()) == {1}
    assert len(copies()) == COUNT


@pytest.mark.slow
@pytest.mark.feature(93)
def test_a_run_stops_after_errors_and_goes_on_with_what_is_left(dead, picky):
    stopped = run("dlq", "redrive", "g", "--all", "--pipe", picky, *DO, "-o", "json")
    assert (stopped.code, len(stopped.json())) == (1, 1)
    assert stopped.json()[0]["note"] == "not sent: --pipe: exit code 3"
    more = ("--stop-after-errors", 5, "-o", "json")
    tried = run("dlq", "redrive", "g", "--resume", "last", *more, *DO)
    assert (tried.code, len(tried.json())) == (1, 5)
    assert copies() == {}
    assert unhandled() == COUNT
    (picky.parent / "mended").touch()
    assert run("dlq", "redrive", "g", "--resume", "last", "--max", 50, *DO).code == 0
    assert unhandled() == COUNT - 50
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 0
    assert (unhandled(), set(copies().values()), len(copies())) == (0, {1}, COUNT)


@pytest.mark.slow
def test_a_resumed_run_sends_empty_bodies_with_an_option_of_its_own(dead):
    assert run("dlq", "redrive", "g", "0", "--pipe", "true", *DO).code == 1
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 1
    done = run("dlq", "redrive", "g", "--resume", "last", "--allow-empty", *DO)
    assert (done.code, len(copies())) == (0, 1), done.err


@pytest.mark.slow
def test_a_resumed_run_sends_empty_bodies_as_it_did_before(store, tmp_path):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "--allow-empty", "-q", stdin=b"a\n\n\n")
    run("consume", "t", "-g", "g", "-e", "--max-reconsume-times", 0, "--exec", "false")
    file = tmp_path / "receipts.jsonl"
    more = ("--allow-empty", "--rate", "1/s", "--receipts", file)
    with start("dlq", "redrive", "g", "--all", *more, *DO) as process:
        while not (file.exists() and file.read_bytes()):
            assert process.poll() is None
        process.kill()
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 0
    assert len(copies()) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_leaves_everything_in_order(dead, tmp_path, number, code):
    file = tmp_path / "receipts.jsonl"
    more = ("--rate", "100/s", "--receipts", file)
    with start("dlq", "redrive", "g", "--all", *more, *DO) as process:
        while not file.exists() or file.read_bytes().count(b"\n") < 5:
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == code
    sent = len(copies())
    assert 5 <= sent < COUNT
    assert unhandled() == COUNT - sent, "what was sent is marked"
    assert run("dlq", "redrive", "g", "--resume", "last", *DO).code == 0
    assert (unhandled(), set(copies().values()), len(copies())) == (0, {1}, COUNT)
    assert sorted(receipts(dead)) == list(range(COUNT))


@pytest.mark.slow
def test_others_see_how_far_a_slow_run_is(dead):
    with start("dlq", "redrive", "g", "--all", "--rate", "20/s", *DO) as process:
        try:
            while unhandled() == COUNT:
                assert process.poll() is None
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.slow
@pytest.mark.feature(93)
def test_a_rate_is_kept(dead):
    from time import monotonic

    began = monotonic()
    run("dlq", "redrive", "g", "--all", "--max", 20, "--rate", "40/s", *DO)
    assert monotonic() - began >= 19 / 40 - 0.05
    assert len(copies()) == 20


@pytest.mark.slow
def test_a_resumed_run_takes_nothing_else_and_must_exist(dead):
    assert run("dlq", "redrive", "g", "--resume", "R1").code == 3
    assert run("dlq", "redrive", "g", "--resume", "last").code == 3
    run("dlq", "redrive", "g", "0", *DO)
    assert run("dlq", "redrive", "g", "--resume", "last", "--all").code == 2
    assert run("dlq", "redrive", "g", "--resume", "last", "--target", "retry").code == 2
    done = run("dlq", "redrive", "g", "--resume", "last", "--execute", "--yes")
    assert (done.code, "nothing to change" in done.err) == (0, True)


@pytest.mark.slow
def test_two_at_once_are_refused(dead):
    with RedriveRuns(dead).alone() as alone:
        assert alone
        refused = run("dlq", "redrive", "g", "--all", *DO)
        assert (refused.code, refused.out) == (7, "")
    assert copies() == {}


@pytest.mark.slow
def test_receipts_go_to_a_file_that_can_be_written(dead, tmp_path):
    file = tmp_path / "receipts.jsonl"
    printed = run("dlq", "redrive", "g", "0", "1", "--receipts", file, *DO, "-o", "jsonl").lines
    assert file.read_text("utf-8").splitlines() == printed
    nowhere = run("dlq", "redrive", "g", "2", "--receipts", tmp_path / "no" / "x", *DO)
    assert nowhere.code != 0
    assert len(copies()) == 2, "and nothing is sent if it can not"


@pytest.mark.slow
def test_a_file_of_receipts_that_takes_no_more_is_named_and_the_run_goes_on_later(dead, tmp_path):
    pipe, file = tmp_path / "pipe", tmp_path / "receipts.jsonl"
    os.mkfifo(pipe)

    def read_one() -> None:
        with pipe.open("rb") as end:
            # Less than the receipts take: the redrive waits until this ends.
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
            end.readline()

    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read_one)
        done = run("dlq", "redrive", "g", "--all", "--receipts", pipe, *DO)
        reading.result()
    sent = sum(copies().values())
    assert 0 < sent < COUNT
    assert unhandled() == COUNT - sent
    (name,) = RedriveRuns(dead).names()
    assert done.code == 8
    assert f"{pipe}: Broken pipe; {sent} of {COUNT} were sent" in done.err
    assert f"--resume {name}" in done.err
    assert run("dlq", "redrive", "g", "--resume", name, "--receipts", file, *DO).code == 0
    assert set(copies().values()) == {1}
    assert len(file.read_text("utf-8").splitlines()) == COUNT - sent + 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux with /dev/full")
def test_a_full_file_of_receipts_stops_the_run_after_the_message_without_a_receipt(dead):
    done = run("dlq", "redrive", "g", "0", "1", "--receipts", "/dev/full", *DO)
    assert (done.code, done.out) == (8, "")
    assert "/dev/full: No space left on device; 1 of 2 were sent before that" in done.err
    assert (sum(copies().values()), unhandled()) == (1, COUNT - 1)


@pytest.fixture
def no_space_for(monkeypatch):
    """A disk without space for what contains some bytes, from now on; None: it has space again."""
    write = os.pwrite
    refused: list[bytes] = []

    def pwrite(fd, data, offset):
        if any(part in bytes(data) for part in refused):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)

    def fill(part):
        refused[:] = [] if part is None else [part]

    return fill


@pytest.mark.parametrize(
    ("part", "file"),
    [
        (b'"applied":true', "redrives"),
        (b'"cursor"', "handled.json"),
        (b'"settled":true', "redrives"),
    ],
    ids=["receipt", "mark", "end"],
)
def test_a_disk_that_is_full_after_a_message_was_sent_is_said_with_what_was_sent(
    dead, no_space_for, part, file
):
    no_space_for(part)
    done = run("dlq", "redrive", "g", "0", *DO)
    (name,) = RedriveRuns(dead).names()
    assert done.code == 8, done.err
    assert file in done.err
    assert "No space left on device; 1 of 1 were sent before that" in done.err
    assert f"--resume {name}" in done.err
    no_space_for(None)
    assert run("dlq", "redrive", "g", "--resume", name, *DO).code == 0
    assert (sum(copies().values()), unhandled()) == (1, COUNT - 1)


def test_a_disk_that_is_full_before_the_first_message_is_no_part(dead, no_space_for):
    no_space_for(b'"rewriting"')
    done = run("dlq", "redrive", "g", "0", *DO)
    assert (done.code, "No space left on device" in done.err, copies()) == (5, True, {})
