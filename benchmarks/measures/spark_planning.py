"""What Spark's driver does before a query's tasks begin, over many queues and many stores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.planned_stores import make_stores
from benchmarks.process_memory import require_proc
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run

NAME = "spark_planning"
_QUEUES = 5_000
_STORES = 1_000
_QUEUES_OF_EACH = 1_000


def measure(run: Run) -> Iterator[Row]:
    if find_spec("pyspark") is None:
        raise NotMeasurableError("needs the spark extra: pyspark, pyarrow")
    require_proc()
    with run.folder() as folder:
        make_stores(folder, 1, _QUEUES)
        found = _planned(folder, run.rounds)
        what = f"one store of {_QUEUES:,} queues"
        yield _row(f"a batch, {what}", found, "batch", None)
        yield _row(f"a trigger in which nothing has changed, {what}", found, "unchanged", None)
        yield _row(f"a trigger of 1,000 messages of many, {what}", found, "limited", None)
    stores = run.sized(_STORES, _STORES // 10)
    with run.folder() as folder:
        make_stores(folder, stores, _QUEUES_OF_EACH)
        found = _planned(folder, 1)
    what = f"{stores:,} stores of {_QUEUES_OF_EACH:,} queues"
    yield _row(f"a batch, {what}", found, "batch", 10)
    yield _row(f"a trigger in which nothing has changed, {what}", found, "unchanged", 5)
    yield _row(f"a trigger of 1,000 messages of many, {what}", found, "limited", None)
    yield Row(
        f"Spark's driver, its Python: memory, {what}",
        f"{found['peak']:.0f} MB",
        f"a position of {found['position'] / 1e6:.2f} MB in the checkpoint",
        [found["peak"]],
        Goal(500, at_most=True),
        "MB",
    )


def _planned(folder: Path, rounds: int) -> dict[str, Any]:
    program = [sys.executable, "-m", "benchmarks.programs.plan_queries"]
    command: Sequence[str] = [*program, f"{folder}/*/store", str(rounds)]
    done = subprocess.run(command, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _row(what: str, found: dict[str, Any], step: str, goal: float | None) -> Row:
    seconds = found["seconds"][step]
    return Row(
        f"planning in Spark's driver: {what}",
        f"{median(seconds):.3g} s",
        "",
        seconds,
        None if goal is None else Goal(goal, at_most=True),
        "s",
    )
