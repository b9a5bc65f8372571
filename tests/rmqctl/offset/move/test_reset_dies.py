"""kill -9 at any point of a reset: all queues as they were or all moved, and history says which."""

import os
import random
import shutil
import signal
import subprocess
from contextlib import ExitStack, suppress
from unittest.mock import patch

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl import app
from rmqctl.cli.context import Cli
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import ProgressFile
from tests.support.cli import ROOT, run, start
from tests.support.copies import copy_store
from tests.support.crash import Child
from tests.support.every_instant import die_at
from tests.support.hand_made import HandMade
from tests.support.java_lock import java_lock
from tests.support.watched_fs import WatchedFileSystem

OLD, NEW = {0: 5, 1: None}, {0: 10, 1: 5}
RESET = ("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--execute", "--yes", "-q")


def restored(original, root):
    shutil.rmtree(root, ignore_errors=True)
    copy_store(original, root)


def judge(root, offsets):
    """Old or new; what history says must fit, and undo and another reset must work."""
    now = offsets()
    assert now in (OLD, NEW)
    java = {0: 5} if now == OLD else NEW
    assert load_consumer_offsets(root)["orders@g"] == java, "so a Java broker takes the same"
    rows = run("offset", "history", "g", "-o", "json").json()
    if now == OLD:
        assert [row["applied"] for row in rows] in ([], [False, False])
        assert run("offset", "undo", "--last").code == 3
    else:
        assert [row["applied"] for row in rows] == [True, True]
        assert run("offset", "undo", "--last", "--execute", "--yes").code == 0
        assert offsets() == OLD
    result = run(*RESET)
    assert result.code == 0, result.err
    assert offsets() == NEW
    return now


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.feature(71)
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_every_instant_of_a_reset(orders, offsets, tmp_path, every):
    original = copy_store(orders, tmp_path / "original")
    seen = set()
    number = 0
    killed = True
    while killed:
        number += every
        restored(original, orders)

        def reset(_, number=number):
            fs = WatchedFileSystem(lambda instant: die_at(number, instant))
            with (
                patch("storage.configs.progress.FileSystem", lambda: fs),
                patch("storage.configs.journal.FileSystem", lambda: fs),
            ):
                app.main(list(RESET))

        killed, _ = Child(reset).wait()
        seen.add(judge(orders, offsets) == NEW)
    assert number > 15
    assert seen == {False, True}


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(24, marks=pytest.mark.long)])
def test_a_process_killed_at_any_moment(orders, offsets, tmp_path, kills):
    """Two of three are killed as soon as they have begun to write, or a moment later; such a kill
    may come too late, but not each."""
    original = copy_store(orders, tmp_path / "original")
    chance = random.Random(7)
    before = written(original)
    while_writing = 0
    for number in range(24):
        restored(original, orders)
        with start(*RESET, cwd=ROOT) as process:
            if number % 3:
                while process.poll() is None and written(orders) == before:
                    pass
                wait = chance.uniform(0, 0.004) if number % 3 == 2 else 0
            else:
                wait = chance.uniform(0.05, 0.3)
            with suppress(subprocess.TimeoutExpired):
                process.wait(wait)
            process.kill()
        begun = process.returncode == -signal.SIGKILL and written(orders) != before
        while_writing += begun
        judge(orders, offsets)
        if number + 1 >= kills and while_writing >= 2:
            break
    assert while_writing >= 2, "the kills come too early or too late to show anything"


def written(root):
    """What changes as soon as a reset writes: names and lengths of our own files, less locks."""
    paths = sorted((root / "rmqctl").rglob("*.json*"))
    return [(path.name, path.stat().st_size) for path in paths]


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.feature(77)
@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.long)])
def test_of_two_operators_with_one_plan_one_wins(orders, offsets, tmp_path, times):
    plan = tmp_path / "plan.csv"
    saved = run("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--export", plan, "-n")
    assert saved.code == 0, saved.err
    given = ("offset", "reset", "--from-file", plan, "--expect", plan, "--execute", "--yes")
    for _ in range(times):
        both = [start(*given, "--reason", name, cwd=ROOT) for name in ("ann", "bob")]
        ends = [process.communicate(timeout=60) for process in both]
        codes = [process.returncode for process in both]
        assert sorted(codes) == [0, 6], ends
        assert b"nothing was changed" in ends[codes.index(6)][1]
        assert offsets() == NEW
        rows = run("offset", "history", "g", "-o", "json").json()
        assert rows[-1]["reason"] == ("ann", "bob")[codes.index(0)]
        assert run("offset", "undo", "--last", "--execute", "--yes").code == 0
        assert offsets() == OLD


def test_a_plan_that_is_old_when_it_is_confirmed_is_refused(orders, offsets, monkeypatch):
    """Another process moves the group while the question stands on the screen."""

    def while_asked(cli, question):
        assert question == "Move the progress of g in 2 queues of orders?"
        ProgressFile(orders).move({("orders@g", 0): 2})

    monkeypatch.setattr(Cli, "confirm", while_asked)
    result = run("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--yes")
    assert result.code == 6
    assert "queue 0 of orders in group g was at 5 and is at 2 now" in result.err
    assert offsets() == {0: 2, 1: None}


@pytest.mark.parametrize("queue_id", [0, 1])
def test_a_commit_that_comes_while_it_asks_is_noticed(orders, offsets, monkeypatch, queue_id):
    """A consumer that the plan did not see; its commit is no move, so the generation stays."""

    def while_asked(*_):
        with EmbeddedBroker.open(orders) as broker:
            broker.update_consumer_offsets("g", [OffsetCommit("orders", queue_id, 6)])

    monkeypatch.setattr(Cli, "confirm", while_asked)
    result = run("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--yes")
    assert result.code == 6
    was = OLD[queue_id] or "no offset"
    assert f"queue {queue_id} of orders in group g was at {was} and is at 6 now" in result.err
    assert offsets() == {**OLD, queue_id: 6}


def test_a_java_broker_that_comes_while_it_asks_is_noticed(orders, offsets, monkeypatch):
    with ExitStack() as stack:

        def while_asked(*_):
            stack.enter_context(java_lock(orders))

        monkeypatch.setattr(Cli, "confirm", while_asked)
        result = run("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--yes")
    assert result.code == 5
    assert "in use by a Java broker" in result.err
    assert offsets() == OLD


def test_a_log_that_grows_while_it_asks_is_noticed(tmp_path, monkeypatch):
    made = HandMade(clean=False)
    made.put("A", 0, b"first")
    root = made.write(tmp_path)
    for path in root.rglob("*"):
        os.utime(path, (1, 1))

    def while_asked(*_):
        made.put("A", 0, b"second")
        made.write(tmp_path)

    monkeypatch.setattr(Cli, "confirm", while_asked)
    given = ("-g", "g", "--new-group", "-t", "A", "--to-latest", "--yes")
    result = run("-S", root, "offset", "reset", *given)
    assert result.code == 5
    assert "another program" in result.err
    assert not (root / "rmqctl/offsets.log").exists()
