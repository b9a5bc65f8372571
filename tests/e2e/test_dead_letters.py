"""Messages that fail in real consumers: through their retries to the dead letters, and back."""

import time
from collections import Counter
from contextlib import ExitStack

import pytest

from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support.cli import call, run, start

SCRIPT = """#!/bin/sh
read body
case $body in bad*) echo "can not parse '$body'" >&2; exit 3;; esac
"""
SECONDS = 60
"""How long to wait for what is to come; a retry takes a second here."""


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "s"
    MessageStore.create(path, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return path


def until(condition, processes):
    """Wait until a condition holds; every process must be alive meanwhile."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come"
        assert [process.poll() for process in processes] == [None] * len(processes)
        time.sleep(0.05)
    return found


@pytest.mark.slow
@pytest.mark.feature(85, 87, 88, 94, 95)
def test_what_fails_in_real_consumers_dies_with_its_reason_and_is_redriven_mended(store, tmp_path):
    done, program = tmp_path / "done", tmp_path / "work"
    program.write_text(SCRIPT + f'echo "$body" >> {done}\n')
    program.chmod(0o755)
    run("topic", "create", "work", "--queues", 4)
    bodies = [f"bad {n}" if n % 4 == 0 else f"good {n}" for n in range(20)]
    options = ("--from-where", "first", "--delay-level", 1, "--max-reconsume-times", 2)
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(
                start("consume", "work", "-g", "workers", "--exec", program, *options, "-q")
            )
            for _ in range(3)
        ]
        stack.callback(lambda: [process.kill() for process in consumers])

        def all_are_there():
            rows = run("group", "list", "-o", "json").json()
            return any(row["group"] == "workers" and row["members"] == 3 for row in rows)

        until(all_are_there, consumers)
        run("produce", "work", "-q", stdin="\n".join(bodies).encode() + b"\n")

        def retried():
            done = run("retry", "browse", "workers", "-o", "json")
            rows = done.json() if done.code == 0 else []
            return [row for row in rows if row["reconsume_times"] == 2]

        (again, *_) = until(retried, consumers)
        why = f"CommandFailedError: exit code 3: can not parse '{body_of(again)}'"
        assert again["reason"] == why
        assert again["origin_topic"] == "work"

        def dead():
            done = run("dlq", "browse", "workers", "-o", "json")
            rows = done.json() if done.code == 0 else []
            return len({row["msg_id"] for row in rows}) == 5 and rows

        letters = until(dead, consumers)
        count = len(letters)  # more than 5 where queues changed hands in the middle
        (row,) = run("dlq", "list", "-o", "json").json()
        assert (row["group"], row["unhandled"]) == ("workers", count)
        (group,) = run("dlq", "groups", "workers", "--by", "shape", "-o", "json").json()
        assert (group["count"], group["value"].endswith("exit code *: can not parse *")) == (
            5,
            True,
        )
        letters = run("dlq", "browse", "workers", "-o", "json").json()
        assert {letter["reconsume_times"] for letter in letters} == {3}
        life = run("retry", "show", "workers", letters[0]["msg_id"], "-o", "json").json()
        assert {event["what"]: event["reconsume_times"] for event in life} == {
            "STORED": 0,
            "FAILED": 2,
            "DELIVERED": 2,
            "DEAD": 3,
        }
        mended = call(
            "dlq", "redrive", "workers", "--all", "--target", "retry",
            "--pipe", "sed s/bad/mended/", "--execute", "--yes", "-o", "jsonl",
        )  # fmt: skip
        assert (mended.code, len(mended.lines)) == (0, count)
        wanted = [body.replace("bad", "mended") for body in bodies]
        until(lambda: Counter(done.read_text().splitlines()) >= Counter(wanted), consumers)
        for process in consumers:
            process.terminate()
        assert [process.wait(SECONDS) for process in consumers] == [143] * 3
    assert run("dlq", "list", "-o", "json").json()[0]["unhandled"] == 0
    assert run("retry", "browse", "workers", "-o", "json").json() == []


def body_of(row):
    place = (row["origin_topic"], "-Q", row["origin_queue_id"], "-O", row["origin_offset"])
    return run("message", "get", "-t", *place, "-o", "json").json()["body"]
