"""``lag report``: the kernels beside reading alone, Spark beside this process, cold starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.kernels.units import read_units
from analytics.lag_report import lag_report
from analytics.spark.session import SparkSession
from analytics.stores import StoreRef
from analytics.survey import Choice
from benchmarks.commands import rmqctl, seconds_of
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import HOST, IDS
from storage.configs.consumer_offsets import topic_at_group
from storage.format.encode_column import prepare_column
from storage.format.properties import encode_properties
from storage.readonly import StoreView
from storage.store import MessageStore

NAME = "report"
_START_MS = 1_790_000_000_000
_HOURS = 6
_TOPICS = 4
_QUEUES = 8
_TAGS = 8
_BATCH = 500
_SHARES = (0.0, 0.1, 0.5, 0.9, 0.99, 0.9999)
_BODY = 220


def measure(run: Run) -> Iterator[Row]:
    with run.folder() as folder:
        root = folder / "store"
        _make(root, run.sized(4_000_000, 400_000))
        _have_read(root, [_SHARES[number % len(_SHARES)] for number in range(6)])
        yield from _warm(run, root)
        yield _groups(run, root)
        yield from _cold(run, folder, root)


def _warm(run: Run, root: Path) -> Iterator[Row]:
    with SparkSession() as session:
        spark = SparkEngine(session.context)
        _timed(spark, root)
        times = run.take_turns(
            "reports",
            {
                "read": lambda: _read(root),
                "local": lambda: _timed(LocalEngine(), root),
                "spark": lambda: _timed(spark, root),
            },
        )
    yield Row(
        "lag report counted here vs reading the consume queues into arrays",
        f"{times.median('local') * 1e3:.0f} ms",
        f"{times.median('read') * 1e3:.0f} ms",
        times.ratios("local", "read"),
        Goal(8, at_most=True),
        samples=times.of,
    )
    yield Row(
        "lag report counted by a warm Spark vs counted here",
        f"{times.median('spark') * 1e3:.0f} ms",
        f"{times.median('local') * 1e3:.0f} ms",
        times.ratios("spark", "local"),
        Goal(2.2, at_most=True),
    )


def _groups(run: Run, root: Path) -> Row:
    def times_with(number: int) -> list[float]:
        _have_read(root, [index / number for index in range(number)])
        return run.take_turns(
            f"{number} groups", {"local": lambda: _timed(LocalEngine(), root)}
        ).of["local"]

    one, ten, hundred = (times_with(number) for number in (1, 10, 100))
    _have_read(root, _SHARES)
    middle = sorted(one)[len(one) // 2]
    return Row(
        "lag report of 100 groups vs of 1 (10 groups: "
        f"{sorted(ten)[len(ten) // 2] / middle:.2f} x)",
        f"{sorted(hundred)[len(hundred) // 2] * 1e3:.0f} ms",
        f"{middle * 1e3:.0f} ms",
        [many / middle for many in hundred],
        Goal(2, at_most=True),
        samples={"1": one, "10": ten, "100": hundred},
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


def _read(root: Path) -> float:
    """What any report has to do: all units that somebody has not read, as arrays."""
    with StoreView.open(root) as view:
        start = perf_counter()
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            read_units(view, topic, queue_id, low, high)
        return perf_counter() - start


def _timed(engine: LocalEngine | SparkEngine, root: Path) -> float:
    start = perf_counter()
    made = lag_report(engine, [StoreRef("b", str(root))], _START_MS + 86_400_000, Choice())
    seconds = perf_counter() - start
    assert made.report.totals["lag"]
    return seconds


def _make(root: Path, messages: int) -> None:
    """Six hours of messages in four topics of eight queues, with eight tags."""
    MessageStore.create(root)
    now = [_START_MS]
    queue_ids = [number % _QUEUES for number in range(_BATCH)]
    with MessageStore.open(root, exclusive=True, clock=lambda: now[0]) as store:
        for number in range(messages // _BATCH):
            now[0] = _START_MS + number * _BATCH * _HOURS * 3_600_000 // messages
            tag = f"tag-{number % _TAGS}"
            store.put(
                prepare_column(
                    f"topic-{number % _TOPICS}",
                    queue_ids,
                    [bytes(_BODY)] * _BATCH,
                    born_timestamp=now[0],
                    born_host=HOST,
                    store_host=HOST,
                    properties=encode_properties({"WAIT": "true", "TAGS": tag}),
                    tags=tag,
                    unique_ids=IDS.take(_BATCH, now[0]),
                    keys=[f"order-{number}"] * _BATCH,
                )
            )


def _have_read(root: Path, shares: list[float] | tuple[float, ...]) -> None:
    """Groups that have read these shares of each queue."""
    table: dict[str, dict[str, int]] = {}
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            end = view.max_offset_in_queue(topic, queue_id)
            for number, share in enumerate(shares):
                key = topic_at_group(topic, f"group-{number}")
                table.setdefault(key, {})[str(queue_id)] = int(end * share)
    folder = root / "config"
    folder.mkdir(exist_ok=True)
    (folder / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
