"""Checking a store: against reading its files once with `cat`, and the quick check of 100 GB.

The log is full, so that `cat` is not slowed by holes; the index, whose file is mostly holes, is
checked, but not read by `cat`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import rmqctl
from benchmarks.measures.memory import peak_of
from benchmarks.ours import new_store, put_column
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.sparse_store import make_sparse_store
from benchmarks.workload import columns
from storage.readonly import StoreView
from storage.tools.fsck import fsck

NAME = "fsck"
_TIMES_CAT = 5
_FAST_SECONDS = 5
_MEGABYTES = 300


def measure(run: Run) -> Iterator[Row]:
    gibibytes = run.sized(2, 1)
    with run.folder() as folder:
        root = folder / "store"
        with new_store(folder) as store:
            batches = columns(20, 1_000, 1024 - 180)  # the records have 1 KiB
            while store.log_end < (gibibytes << 30) - (2 << 20):
                for column in batches:
                    if store.log_end < (gibibytes << 30) - (2 << 20):
                        put_column(store, column)
        times = run.take_turns(
            "fsck",
            {
                "cat": lambda: _cat(root),
                "one process": lambda: _fsck(root, 1),
                "two processes": lambda: _fsck(root, 2),
            },
        )
        for name in ("two processes", "one process"):
            yield Row(
                f"fsck of {gibibytes} GiB of 1 KiB messages with {name}, to cat of log and queues",
                f"{times.median(name):.2f} s",
                f"cat {times.median('cat'):.2f} s",
                times.ratios(name, "cat"),
                Goal(_TIMES_CAT, at_most=True) if name == "two processes" else None,
                samples=times.of,
            )
        peak, seconds = peak_of([*rmqctl(), "-S", str(root), "-q", "store", "fsck"])
        yield Row(
            "anonymous memory of store fsck",
            f"{peak:.0f} MB",
            f"in {seconds:.1f} s",
            [peak],
            Goal(_MEGABYTES, at_most=True),
            "MB",
        )
    with run.folder() as folder:
        root = make_sparse_store(folder / "store", run.sized(100, 20))
        times = run.take_turns("fsck --fast", {"fast": lambda: _fsck(root, 1, fast=True)})
        yield Row(
            f"fsck --fast of {run.sized(100, 20)} GiB, sparse",
            f"{times.median('fast'):.2f} s",
            "files, ends and samples",
            times.of["fast"],
            Goal(_FAST_SECONDS, at_most=True),
            "s",
        )


def _cat(root: Path) -> float:
    files = [*sorted(root.glob("commitlog/*")), *sorted(root.glob("consumequeue/*/*/*"))]
    start = time.perf_counter()
    subprocess.run(["cat", *files], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _fsck(root: Path, jobs: int, *, fast: bool = False) -> float:
    start = time.perf_counter()
    with StoreView.open(root) as view:
        report = fsck(view, jobs=jobs, fast=fast)
    seconds = time.perf_counter() - start
    assert report.healthy, report.findings[:3]
    return seconds
