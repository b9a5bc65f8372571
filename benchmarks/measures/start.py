"""Time of a command that does hardly anything, against the interpreter alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from storage.store import MessageStore

NAME = "start"


def measure(run: Run) -> Iterator[Row]:
    bare = [sys.executable, "-c", "pass"]
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root)
        line = folder / "line"
        line.write_text("one message\n")
        produce = [*rmqctl(), "-S", str(root), "produce", "start", str(line)]
        times = run.take_turns(
            "start",
            {
                "pass": lambda: seconds_of(bare),
                "--help": lambda: seconds_of([*rmqctl(), "--help"]),
                "produce": lambda: seconds_of(produce),
            },
            rounds=run.rounds * 3,  # they are short
        )
    for name, goal in (("--help", 4.0), ("produce", 8.0)):
        yield Row(
            f"rmqctl {name}{' of one message' if name == 'produce' else ''} vs python -c pass",
            f"{times.median(name) * 1e3:.0f} ms",
            f"{times.median('pass') * 1e3:.1f} ms",
            times.ratios(name, "pass"),
            Goal(goal, at_most=True),
            samples=times.of,
        )
