"""The cost of sharing: the write lock in a batch of 100, and several writing processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.contest import Contestant
from benchmarks.ours import put_columns
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import BESIDES, columns
from storage.store import MessageStore

NAME = "sharing"
_BATCH = 100
_BODY = 1024
_JUDGED = 4


def measure(run: Run) -> Iterator[Row]:
    yield _write_lock(run)
    yield from _writers(run)


def _write_lock(run: Run) -> Row:
    batches = columns(run.sized(400, 100), _BATCH, _BODY)
    times = run.take_turns(
        "batches of 100",
        {
            "exclusive": lambda: put_columns(run, batches, exclusive=True),
            "shared": lambda: put_columns(run, batches),
        },
        short=True,  # a small difference needs them
        memory=len(batches) * _BATCH * (_BODY + BESIDES),
    )
    return Row(
        "what the write lock adds to a batch of 100 x 1 KiB",
        f"{times.median('shared') / len(batches) * 1e6:.0f} us",
        f"{times.median('exclusive') / len(batches) * 1e6:.0f} us",
        [ratio - 1 for ratio in times.ratios("shared", "exclusive")],
        Goal(0.12, at_most=True, percent=True),
        samples=times.of,
    )


def _writers(run: Run) -> Iterator[Row]:
    batches = run.sized(4_000, 400)
    counts = (1, 4) if run.quick else (1, 2, 4, 8)
    times = run.take_turns(
        "writing processes",
        {str(n): _group(run, n, batches) for n in counts},
        short=True,
        memory=batches * _BATCH * (_BODY + BESIDES),
    )
    rates = {name: f"{batches * _BATCH / times.median(name) / 1e3:.0f} k/s" for name in times.of}
    for number in counts[1:]:
        name = str(number)
        yield Row(
            f"{number} writing processes vs 1, batches of 100 x 1 KiB",
            rates[name],
            rates["1"],
            times.ratios("1", name),
            Goal(0.8) if number == _JUDGED else None,
            samples=times.of,
        )


def _group(run: Run, number: int, batches: int) -> Contestant:
    return lambda: _processes(run, number, batches // number)


def _processes(run: Run, number: int, batches: int) -> float:
    """Seconds from the first write of any to the last write of all."""
    with run.folder() as folder:
        root: Path = folder / "store"
        MessageStore.create(root)
        writers = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.programs.writer", str(root), str(batches)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(number)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()  # it is ready
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        spans = []
        for writer in writers:
            output, _ = writer.communicate()
            spans.append([int(word) for word in output.split()])
        assert all(writer.returncode == 0 for writer in writers)
        return (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9
