"""Following a topic that a process fills as fast as it can: no key waits, and nothing is hidden."""

import re
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.rmqctl.console.test_messages import stocked
from tests.rmqctl.console.test_walks import PROGRAM
from tests.support.console import json_rows, terminal
from tests.support.tries import best_below

__all__ = ["stocked"]
PRESSES = 20
LINES = """yes '{"n":1}' | head -n 4000000"""
"""Many more messages than the test waits for, but not as many as a disk has room for."""
MOST_S = 2.0
"""The bound of a busy machine; on a quiet one it is below 0.1 s."""


@contextmanager
def flood(store, topic):
    """A process that sends messages until the block ends."""
    with (
        subprocess.Popen(["sh", "-c", LINES], stdout=subprocess.PIPE) as source,
        subprocess.Popen(
            [PROGRAM, "produce", topic, "-S", str(store)],
            stdin=source.stdout,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as sender,
    ):
        assert source.stdout is not None
        source.stdout.close()
        try:
            yield
        finally:
            # Not SIGKILL: the record it cuts in half is a finding of the check after the test.
            sender.terminate()
            ended = sender.wait(60)
        assert ended in (0, 143), ended


def page(text):
    """The page of the help that is shown; 0: none."""
    found = re.search(r"Help \(page (\d) of 3", text)
    return int(found[1]) if found else 0


def counts(text):
    """What the screen says: came, left out, kept."""
    found = re.search(r"([\d,]+) came, ([\d,]+) left out, ([\d,]+) kept", text)
    return tuple(int(each.replace(",", "")) for each in found.groups()) if found else None


@pytest.mark.slow
def test_keys_are_answered_at_once_and_what_is_left_out_is_counted(stocked):
    with terminal(stocked, "follow", "orders", "*", size=(24, 100)) as console:
        console.until("0 came")
        before = 60  # the messages of the store

        def press() -> float:
            """Open each page of the help, and close it, again and again: most of the times."""
            times = []
            for number in range(PRESSES):
                begun = time.monotonic()
                console.send("?")
                console.until(lambda number=number: page(console.text()) == (number + 1) % 4)
                times.append(time.monotonic() - begun)
            return sorted(times)[PRESSES * 95 // 100 - 1]

        with flood(stocked, "orders"):
            console.until(lambda: counts(console.text()))
            first = counts(console.text())
            best_below(MOST_S, press)
            console.until(lambda: counts(console.text())[0] > first[0])
            came, left_out, kept = counts(console.text())
            assert left_out + kept <= came
        (row,) = (
            row for row in json_rows(stocked, "rmqctl topic list") if row["topic"] == "orders"
        )
        came = row["messages"] - before
        console.until(lambda: counts(console.text())[0] == came == sum(counts(console.text())[1:]))
        assert counts(console.text())[2] == 1000
        console.send("q")
        assert console.ended() == 0


def is_whole(console, rows, columns):
    """Whether the screen is drawn for this size: heading, a line below it, what came, and keys."""
    lines = console.text().split("\n")
    return (
        len(lines) == rows
        and "READ ONLY" in lines[0]
        and lines[2] == "\u2500" * columns
        and counts(console.text()) is not None
        and "enter open" in lines[-1]
    )


@pytest.mark.slow
def test_it_takes_every_size_while_rows_come(stocked):
    """From wide to narrow, to one that is too small, and back."""
    with terminal(stocked, "follow", "orders", "*", size=(40, 140)) as console:
        console.until("0 came")
        with flood(stocked, "orders"):
            console.until(lambda: (counts(console.text()) or (0,))[0] > 0)
            console.until(lambda: is_whole(console, 40, 140))
            console.resize(24, 80)
            console.until(lambda: is_whole(console, 24, 80))
            console.resize(5, 20)
            console.until("rmqctl console needs\n60x15 cells")
            console.resize(40, 140)
            console.until(lambda: is_whole(console, 40, 140))
            came = counts(console.text())[0]
            console.until(lambda: counts(console.text())[0] > came)
        console.send("q")
        assert console.ended() == 0
