"""Time from a send to the listener in another process, and from an empty folder to a first message.

RocketMQ's producer and consumer are two JVMs beside its broker; ours are two Python processes on
one folder. One message each 20 ms, so that all processes sleep in between.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import count as counted
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.goals import row
from benchmarks.java_peer import NAMESRV, Bench, running_cluster
from benchmarks.measures.latency import round_of
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run, clear_progress, progress

NAME = "java_latency"
_EVERY_MS = 20
_BODY = 1024


class _Percentiles(NamedTuple):
    p50: float
    p99: float


def measure(run: Run) -> Iterator[Row]:
    yield from _latency(run)
    yield from _cold(run)


def _latency(run: Run) -> Iterator[Row]:
    count = run.sized(1_000, 200)
    ours: list[_Percentiles] = []
    java: list[_Percentiles] = []
    note = progress("latency beside Java")
    with (
        run.folder() as scratch,
        running_cluster(scratch / "java", scratch) as cluster,
        cluster.client() as producer,
        cluster.client() as consumer,
    ):
        names = (f"latency-{number}" for number in counted())
        _java_latency(producer, consumer, next(names), count)
        for number in range(run.rounds):
            note(f"round {number + 1} of {run.rounds}")
            alone = round_of(run, count, 0, beside=False)
            ours.append(_Percentiles(alone.p50, alone.p99))
            java.append(_java_latency(producer, consumer, next(names), count))
    clear_progress()
    for place, key in enumerate(("broker/latency-p50", "broker/latency-p99")):
        mine, its = [one[place] for one in ours], [one[place] for one in java]
        ratios = [a / b for a, b in zip(mine, its, strict=True)]
        sides = (f"{median(mine):.2f} ms", f"{median(its):.2f} ms")
        yield row(
            key, sides, ratios, detail=f"each {_EVERY_MS} ms", samples={"ours": mine, "java": its}
        )


def _java_latency(producer: Bench, consumer: Bench, topic: str, count: int) -> _Percentiles:
    """A new topic and a new group; the consumer has its queues before the first timed message."""
    producer.ask("pace", topic=topic, everyMs=1, count=20, size=_BODY, untimed=True)
    consumer.ask("listen", namesrv=NAMESRV, topic=topic, group=f"g-{topic}", count=count)
    producer.ask("pace", topic=topic, everyMs=_EVERY_MS, count=count, size=_BODY)
    took = [nanoseconds / 1e6 for nanoseconds in consumer.ask("heard")]
    return _Percentiles(median(took), quantiles(took, n=100)[98])


def _cold(run: Run) -> Iterator[Row]:
    times = run.take_turns(
        "first message",
        {
            "ours": lambda: _our_first(run),
            "shell": lambda: _shell_first(run),
            "java": lambda: _java_first(run),
        },
        new_processes=True,
    )
    texts = {name: f"{times.median(name):.2f} s" for name in times.of}
    ratios = times.ratios("java", "ours")
    yield row("broker/cold", (texts["ours"], texts["java"]), ratios, samples=times.of)
    what = "... by `rmqctl store init` and `rmqctl produce`"
    yield Row(what, texts["shell"], texts["java"], times.ratios("java", "shell"))


def _our_first(run: Run) -> float:
    """A program begins with no folder and ends a moment after its message was acknowledged."""
    with run.folder() as folder:
        program = [sys.executable, "-m", "benchmarks.programs.first_message"]
        start = perf_counter()
        with subprocess.Popen([*program, str(folder / "store")], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            seconds = perf_counter() - start
    if said.strip() != b"SEND_OK":
        raise NotMeasurableError(f"the first message: {said!r}")
    return seconds


def _shell_first(run: Run) -> float:
    with run.folder() as folder:
        line = folder / "line"
        line.write_text("one\n")
        program = [*rmqctl(), "-S", str(folder / "store"), "-q"]
        return seconds_of([*program, "store", "init"]) + seconds_of(
            [*program, "produce", "cold", str(line)]
        )


def _java_first(run: Run) -> float:
    with run.folder() as scratch:
        start = perf_counter()
        with running_cluster(scratch / "java", scratch) as cluster:
            cluster.first_message("cold")
            return perf_counter() - start
