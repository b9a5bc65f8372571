"""``lag report``: the kernels beside reading alone, Spark beside this process, cold starts, and the
growth of its cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.spark.session import SparkSession
from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Goal, Row
from benchmarks.report_store import (
    HOURS,
    SHARES,
    have_read,
    make_store,
    read_all,
    seconds_of_report,
)
from benchmarks.run import Run

from .report_memory import measure as memory

NAME = "report"
_MESSAGES = 4_000_000
_TENTH = 10


def measure(run: Run) -> Iterator[Row]:
    messages = run.sized(_MESSAGES, _MESSAGES // 10)
    with run.folder() as folder:
        root = folder / "store"
        make_store(root, messages)
        have_read(root, SHARES)
        yield from _warm(run, root)
        yield from _groups(run, root)
        yield _backlog(run, root)
        yield _consumed(run, folder, root, messages)
        yield from _cold(run, folder, root)
    yield from memory(run)


def _warm(run: Run, root: Path) -> Iterator[Row]:
    local = LocalEngine()
    with SparkSession() as session:
        spark = SparkEngine(session.context)
        seconds_of_report(spark, root)
        times = run.take_turns(
            "reports",
            {
                "read": lambda: read_all(root),
                "local": lambda: seconds_of_report(local, root),
                "spark": lambda: seconds_of_report(spark, root),
            },
        )
    yield Row(
        "lag report counted here vs reading the consume queues into arrays",
        f"{times.median('local') * 1e3:.0f} ms",
        f"{times.median('read') * 1e3:.0f} ms",
        times.ratios("local", "read"),
        Goal(3.5, at_most=True),
        samples=times.of,
    )
    yield Row(
        "lag report counted by a warm Spark vs counted here",
        f"{times.median('spark') * 1e3:.0f} ms",
        f"{times.median('local') * 1e3:.0f} ms",
        times.ratios("spark", "local"),
        Goal(2.2, at_most=True),
    )


def _groups(run: Run, root: Path) -> Iterator[Row]:
    """The same backlog, read by more and more groups, each at a place of its own."""
    times: dict[int, list[float]] = {1: [], 10: [], 100: []}
    for _ in range(run.rounds):
        for number, found in times.items():
            have_read(root, [index / number for index in range(number)])
            seconds_of_report(LocalEngine(), root)
            found.append(seconds_of_report(LocalEngine(), root))
    have_read(root, SHARES)
    for number in (10, 100):
        yield Row(
            f"lag report of {number} groups vs of 1",
            f"{sorted(times[number])[run.rounds // 2] * 1e3:.0f} ms",
            f"{sorted(times[1])[run.rounds // 2] * 1e3:.0f} ms",
            [many / one for many, one in zip(times[number], times[1], strict=True)],
            Goal(2, at_most=True),
            samples={"1": times[1], str(number): times[number]},
        )


def _backlog(run: Run, root: Path) -> Row:
    """Ten times the backlog is at most ten times the work."""
    whole: list[float] = []
    tenth: list[float] = []
    for _ in range(run.rounds):
        for share, found in ((0.0, whole), (1 - 1 / _TENTH, tenth)):
            have_read(root, [share])
            seconds_of_report(LocalEngine(), root)
            found.append(seconds_of_report(LocalEngine(), root))
    have_read(root, SHARES)
    return Row(
        "lag report, seconds a message: all unread vs a tenth of it",
        f"{sorted(whole)[run.rounds // 2] * 1e3:.0f} ms",
        f"{sorted(tenth)[run.rounds // 2] * 1e3:.0f} ms",
        [many / few / _TENTH for many, few in zip(whole, tenth, strict=True)],
        Goal(1, at_most=True),
        samples={"all": whole, "a tenth": tenth},
    )


def _consumed(run: Run, folder: Path, root: Path, messages: int) -> Row:
    """The same backlog: in a store of nothing else, and after nine times as many read messages."""
    small = folder / "small"
    make_store(small, messages // _TENTH, HOURS / _TENTH)
    have_read(small, [0.0])
    have_read(root, [1 - 1 / _TENTH])
    local = LocalEngine()
    times = run.take_turns(
        "after read messages",
        {
            "after": lambda: seconds_of_report(local, root),
            "alone": lambda: seconds_of_report(local, small),
        },
    )
    have_read(root, SHARES)
    return Row(
        f"lag report of {messages // _TENTH:,} messages after nine times as many read ones",
        f"{times.median('after') * 1e3:.0f} ms",
        f"alone: {times.median('alone') * 1e3:.0f} ms",
        times.ratios("after", "alone"),
        Goal(1.25, at_most=True),
        samples=times.of,
    )


def _cold(run: Run, folder: Path, root: Path) -> Iterator[Row]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    report = [*rmqctl(), "-S", str(root), "lag", "report", "-q", "-o", "json"]
    bare = [sys.executable, "-m", "benchmarks.programs.bare_spark"]

    def cold() -> float:
        return seconds_of(report, env=environment)

    for what, goal in (("without an archive", 6), ("after lag warmup", 3)):
        contestants = {"report": cold}
        if goal == 6:
            contestants["bare"] = lambda: seconds_of(bare)
        else:
            warmup = [*rmqctl(), "lag", "warmup", "-q"]
            subprocess.run(warmup, env=environment, check=True, stdout=subprocess.DEVNULL)
        times = run.take_turns(what, contestants)
        peer = f"bare Spark: {times.median('bare'):.1f} s" if goal == 6 else ""
        yield Row(
            f"lag report by Spark, whole process, {what}",
            f"{times.median('report'):.1f} s",
            peer,
            times.of["report"],
            Goal(goal, at_most=True),
            "s",
            samples=times.of,
        )
