"""The Tab key: how long the program takes to offer topics, beyond what the interpreter takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from storage.store import MessageStore

_TOPICS = 1_000
_LIMIT_MS = 40


def measure(run: Run) -> Iterator[Row]:
    with run.folder() as folder:
        root = folder / "store"
        _make_store(root)
        times = run.take_turns(
            "completion",
            {
                "pass": lambda: seconds_of([sys.executable, "-c", "pass"]),
                "a topic": lambda: _answer(root, "consume", "topic-9"),
                "an option": lambda: _answer(root, "consume", "--of"),
            },
            rounds=run.rounds * 3,  # they are short
        )
    for name in ("a topic", "an option"):
        yield Row(
            f"completion of {name}, {_TOPICS:,} topics, over python -c pass",
            f"{times.median(name) * 1e3:.0f} ms",
            f"{times.median('pass') * 1e3:.0f} ms",
            [
                (ours - bare) * 1e3
                for ours, bare in zip(times.of[name], times.of["pass"], strict=True)
            ],
            Goal(_LIMIT_MS, at_most=True),
            "ms",
            samples=times.of,
        )


def _make_store(root: Path) -> None:
    MessageStore.create(root)
    names = [f"topic-{number}" for number in range(_TOPICS)]
    table = {name: {"topicName": name, "perm": 6, "readQueueNums": 4} for name in names}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}), "utf-8")
    for name in names:
        (root / "consumequeue" / name / "0").mkdir(parents=True)


def _answer(root: Path, *words: str) -> float:
    """Seconds until the shell has its answer, which must not be empty."""
    begun = time.perf_counter()
    done = subprocess.run(
        [*rmqctl(), "-S", str(root), *words],
        env={**os.environ, "_RMQCTL_COMPLETE": "1"},
        capture_output=True,
        check=True,
    )
    took = time.perf_counter() - begun
    assert done.stdout.startswith(words[-1].encode())
    return took
