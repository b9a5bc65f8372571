"""The first messages of programs that were just started, beside RocketMQ's: nothing is warm.

A JVM compiles its code during some hundred thousand messages, and is several times slower until
then. A job that sends its messages and ends sees that speed. Each round has a new name server,
broker and client, or a new process of ours, and a new store. Starting them is not timed here (see
``java_latency``).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.java_peer import running_cluster
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run

NAME = "java_started"
_BODY = 1024
_BATCH = 100
_BATCHES_GOAL = Goal(8)
_SINGLE_GOAL = Goal(15)


def measure(run: Run) -> Iterator[Row]:
    yield _first(run, run.sized(20_000, 1_000), 1, _SINGLE_GOAL)
    yield _first(run, run.sized(100_000, 10_000), _BATCH, _BATCHES_GOAL)


def _first(run: Run, count: int, batch: int, goal: Goal) -> Row:
    times = run.take_turns(
        f"first {count:,} messages",
        {"ours": lambda: ours(run, count, batch), "java": lambda: _java(run, count, batch)},
    )
    how = "one by one" if batch == 1 else f"batches of {batch}"
    us = {name: f"{times.median(name) / count * 1e6:.1f} us" for name in times.of}
    return Row(
        f"first {count:,} x 1 KiB of programs just started, {how}, vs Java client and broker",
        us["ours"],
        us["java"],
        times.ratios("java", "ours"),
        goal,
        samples=times.of,
    )


def ours(run: Run, count: int, batch: int) -> float:
    """Seconds that a new process of ours takes for its first messages."""
    with run.folder() as folder:
        program = [sys.executable, "-m", "benchmarks.programs.first_messages"]
        command = [*program, str(folder / "store"), str(count), str(batch)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMeasurableError(f"the first messages: {done.stderr[-500:]}")
    return float(done.stdout)


def _java(run: Run, count: int, batch: int) -> float:
    with (
        run.folder() as scratch,
        running_cluster(scratch / "java", scratch) as cluster,
        cluster.client() as java,
    ):
        if batch == 1:
            return float(java.ask("send", topic="benchmark", count=count, size=_BODY))
        batches = count // batch
        return float(
            java.ask("sendBatches", topic="benchmark", batches=batches, batch=batch, size=_BODY)
        )
