"""Opening a store of 1 GiB whose shared state is lost: after a reboot, or after another program.

The store is built once. In each round a process opens it and ends without closing, so that
``abort`` stays; before a "clean" round, ``abort`` is removed, as a clean close does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ours import new_store, put_column
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import columns
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.format.names import ABORT, OURS

NAME = "recovery"
_SECONDS_A_GIB = 1.2


def measure(run: Run) -> Iterator[Row]:
    size = run.sized(1 << 30, 1 << 27)
    with run.folder() as folder:
        root = folder / "store"
        with new_store(folder) as store:
            batches = columns(20, 1_000, 1024 - 180)  # the records have 1 KiB
            while store.log_end < size - (2 << 20):
                for column in batches:
                    if store.log_end < size - (2 << 20):
                        put_column(store, column)
            gibibytes = store.log_end / (1 << 30)
        times = run.take_turns(
            "recovery",
            {
                "after a crash": lambda: _open(root, crashed=True),
                "after a clean close": lambda: _open(root, crashed=False),
            },
        )
    for name, seconds in times.of.items():
        yield Row(
            f"opening 1 GiB of 1 KiB records {name}, shared state lost",
            f"{times.median(name):.2f} s",
            f"{gibibytes:.2f} GiB",
            [value / gibibytes for value in seconds],
            Goal(_SECONDS_A_GIB, at_most=True),
            "s/GiB",
            samples=times.of,
        )


def _open(root: Path, *, crashed: bool) -> float:
    (root / OURS / SHARED_STATE_NAME).unlink()
    abort = root / ABORT
    if crashed:
        abort.touch()
    else:
        abort.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.programs.open_store", str(root)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)
