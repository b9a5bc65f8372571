"""The factors that docs/scale.md calculates with: the cost of a message, a row, a queue, a
store."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport
from analytics.report.report import make_report
from analytics.spark.session import SparkSession
from benchmarks.report import Row
from benchmarks.report_store import (
    AS_OF,
    SHARES,
    have_read,
    make_store,
    reported,
    seconds_of_report,
)
from benchmarks.run import Run, progress

NAME = "scale"
_UNIT_BYTES = 20
_BROKERS = 20
_TASKS = 40
_QUEUES = 32
_GROUPS = 100


def measure(run: Run) -> Iterator[Row]:
    messages = run.sized(4_000_000, 400_000)
    progress("scale")("making stores")
    with run.folder() as folder:
        root = folder / "store"
        make_store(root, messages)
        yield _a_message(run, root, messages)
        yield _a_queue_of_a_group(run, root)
        yield from _from_the_disk(root, messages)
        yield from _brokers(run, folder, messages // _BROKERS)
    with SparkSession() as session:
        yield from _a_task(run, SparkEngine(session.context))


def _row(what: str, values: Sequence[float], unit: str, detail: str) -> Row:
    return Row(f"scale: {what}", f"{median(values):.3g} {unit}", detail, values, None, unit)


def _a_message(run: Run, root: Path, messages: int) -> Row:
    found = []
    for _ in range(run.rounds):
        taken = []
        for share in (0.0, 0.9):
            have_read(root, [share])
            taken.append(min(seconds_of_report(LocalEngine(), root) for _ in range(3)))
        found.append((taken[0] - taken[1]) / (0.9 * messages) * 1e9)
    return _row("counting an unread message, one core", found, "ns", "queues of 8 tags, by minute")


def _a_queue_of_a_group(run: Run, root: Path) -> Row:
    found = []
    for _ in range(run.rounds):
        taken = []
        for number in (1, _GROUPS):
            have_read(root, [index / number for index in range(number)])
            taken.append(min(seconds_of_report(LocalEngine(), root) for _ in range(3)))
        found.append((taken[1] - taken[0]) / ((_GROUPS - 1) * _QUEUES) * 1e6)
    return _row(
        "a queue of a group, one core", found, "us", f"{_GROUPS} groups at places of their own"
    )


def _from_the_disk(root: Path, messages: int) -> Iterator[Row]:
    """Bytes that a report reads of files outside of the page cache."""
    have_read(root, [0.0])
    counter = Path("/proc/self/io")
    if not counter.exists():
        return
    os.sync()
    for path in root.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def read() -> int:
        fields = dict(line.split(": ") for line in counter.read_text().splitlines())
        return int(fields["read_bytes"])

    before = read()
    seconds = seconds_of_report(LocalEngine(), root)
    taken = read() - before
    log = (taken - _UNIT_BYTES * messages) / 1e6
    yield _row(
        "read from a cold disk, a message", [taken / messages], "bytes", f"in {seconds:.2f} s"
    )
    yield _row("of that from the log, in all", [log], "MB", "looks at where minutes begin")


def _brokers(run: Run, folder: Path, each: int) -> Iterator[Row]:
    """Stores of many brokers: read by one run, or kept by their own runs and gathered."""
    roots = []
    for number in range(_BROKERS):
        roots.append(folder / f"store {number}")
        make_store(roots[-1], each + number * 500)
        have_read(roots[-1], SHARES)
    kept = folder / "kept"
    whole = reported(LocalEngine(), *roots)
    rows = sum(len(amounts.keys) for share in whole.shares for amounts in share.minutes.values())
    keeping, gathering, direct, together = [], [], [], []
    for _ in range(run.rounds):
        direct.append(seconds_of_report(LocalEngine(), *roots))
        start = perf_counter()
        _keep(whole, kept)
        keeping.append((perf_counter() - start) / rows * 1e6)
        start = perf_counter()
        found = gathered_report(LocalEngine(), find_kept([str(kept)], None), Choice())
        gathering.append(perf_counter() - start)
        start = perf_counter()
        make_report(whole.shares, AS_OF)
        together.append((perf_counter() - start) / rows * 1e9)
        assert json.dumps(found.report.document()) == json.dumps(whole.report.document())
    size = sum(path.stat().st_size for path in kept.rglob("*.parquet"))
    count = sum(1 for _ in kept.rglob("*.parquet"))
    what = f"{rows:,} rows of group, topic and minute, {_BROKERS} stores"
    yield _row("a row in the driver", [len(pickle.dumps(whole.shares)) / rows], "bytes", what)
    yield _row("a row put together with others", together, "ns", what)
    yield _row("a row kept on the broker", keeping, "us", what)
    yield _row(
        "a row on disk", [size / rows], "bytes", f"{count} Parquet files, everything in them"
    )
    yield Row(
        f"scale: report from the kept shares of {_BROKERS} stores vs of the stores, equal",
        f"{median(gathering) * 1e3:.0f} ms",
        f"{median(direct) * 1e3:.0f} ms",
        [one / other for one, other in zip(gathering, direct, strict=True)],
    )


def _keep(made: MadeReport, folder: Path) -> None:
    places = [(row["group"], row["topic"]) for row in made.report.groups]
    keep(made.shares, AS_OF, folder, places, None)


def _a_task(run: Run, engine: SparkEngine) -> Iterator[Row]:
    engine.map(_nothing, range(_TASKS))

    def seconds(tasks: int) -> float:
        start = perf_counter()
        engine.map(_nothing, range(tasks))
        return perf_counter() - start

    one = [seconds(1) for _ in range(run.rounds)]
    many = [(seconds(_TASKS) - seconds(1)) / (_TASKS - 1) * 1e3 for _ in range(run.rounds)]
    yield _row("a job of a warm Spark", [value * 1e3 for value in one], "ms", "one task of nothing")
    cores = f"{engine.cores} cores"
    yield _row("a further task of it", [value * engine.cores for value in many], "core-ms", cores)


def _nothing(number: int) -> int:
    return number
