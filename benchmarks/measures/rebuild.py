"""Rebuilding consume queues and the key index from the log: records a second, and memory.

The store is built once, without a queue file when a round begins. All of it is timed: the walk of
the log from page cache, the units, and the sync of the files.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.commands import rmqctl
from benchmarks.ours import new_store, put_column
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import columns
from storage.format.names import CONSUMEQUEUE, INDEX
from storage.readonly import StoreView
from storage.tools.rebuild.index import rebuild_index
from storage.tools.rebuild.queue import rebuild_queues

from .memory import peak_of

NAME = "rebuild"
_BATCH = 1_000
_LIMIT_MB = 300


def measure(run: Run) -> Iterator[Row]:
    yield from _speed(run, "1 KiB", 1024 - 180, Goal(1.0))
    yield from _speed(run, "280 B", 100, Goal(1.0))
    yield from _memory(run)


def _speed(run: Run, what: str, body_size: int, goal: Goal) -> Iterator[Row]:
    with run.folder() as folder:
        root, records = _store(run, folder, body_size)
        shutil.rmtree(root / CONSUMEQUEUE)
        (root / CONSUMEQUEUE).mkdir()
        shutil.rmtree(root / INDEX)
        (root / INDEX).mkdir()
        times = run.take_turns(
            "rebuild",
            {
                "queues": lambda: _made(root, folder, rebuild_queues),
                "index": lambda: _made(root, folder, rebuild_index),
            },
        )
    million = records / 1e6
    for name, least in (("queues", goal), ("index", None)):
        yield Row(
            f"{name} made anew from {what} records",
            f"{million / times.median(name):.2f} M/s",
            f"{million:.2f} M records",
            [million / seconds for seconds in times.of[name]],
            least,
            "M/s",
            samples={name: times.of[name]},
        )


def _memory(run: Run) -> Iterator[Row]:
    with run.folder() as folder:
        root, records = _store(run, folder, 100)
        for part in ("queue", "index"):
            folder_of = CONSUMEQUEUE if part == "queue" else INDEX
            shutil.rmtree(root / folder_of)
            (root / folder_of).mkdir()
            command = ["store", "rebuild", part, "--execute", "--yes", "-q"]
            peak, seconds = peak_of([*rmqctl(), "-S", str(root), *command])
            yield Row(
                f"anonymous memory of store rebuild {part}, {records / 1e6:.1f} M records",
                f"{peak:.0f} MB",
                f"in {seconds:.1f} s",
                [peak],
                Goal(_LIMIT_MB, at_most=True),
                "MB",
            )


def _store(run: Run, folder: Path, body_size: int) -> tuple[Path, int]:
    """A closed store of that many bytes of records."""
    size = run.sized(1 << 30, 1 << 27)
    records = 4
    with new_store(folder) as store:
        batches = columns(20, _BATCH, body_size)
        while store.log_end < size - (2 << 20):
            for column in batches:
                if store.log_end < size - (2 << 20):
                    put_column(store, column)
                    records += _BATCH
    return folder / "store", records


def _made(root: Path, folder: Path, make: Callable[[StoreView, Path], object]) -> float:
    out = folder / "made"
    out.mkdir()
    start = time.perf_counter()
    with StoreView.open(root) as view:
        make(view, out)
    seconds = time.perf_counter() - start
    shutil.rmtree(out)
    return seconds
