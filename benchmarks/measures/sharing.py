"""The cost of sharing: the write lock in a batch of 100, and several writing processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.contest import Contestant
from benchmarks.ours import put_columns
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.workload import BESIDES, columns
from storage.store import MessageStore

NAME = "sharing"
_BATCH = 100
_BODY = 1024
_GOALS = {2: 0.9, 4: 0.8, 8: 0.7}
_BESIDE = 7
_PUTS = 300


def measure(run: Run) -> Iterator[Row]:
    yield _write_lock(run)
    yield from _writers(run)
    yield from _paced_puts(run)


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
            Goal(_GOALS[number]),
            samples=times.of,
        )


def _group(run: Run, number: int, batches: int) -> Contestant:
    return lambda: _processes(run, number, batches // number)


def _processes(run: Run, number: int, batches: int) -> float:
    """Seconds from the first write of any to the last write of all."""
    with run.folder() as folder:
        root: Path = folder / "store"
        MessageStore.create(root)
        writers = [_program("writer", str(root), str(batches)) for _ in range(number)]
        _begin(writers)
        spans = []
        for writer in writers:
            output, _ = writer.communicate()
            spans.append([int(word) for word in output.split()])
        assert all(writer.returncode == 0 for writer in writers)
        return (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9


def _paced_puts(run: Run) -> Iterator[Row]:
    """A put each millisecond beside writers of batches; the limit is a process that puts nothing
    and is woken as often, beside as many that only compute."""
    puts, wakes = "a put", "a wake"
    times = run.take_turns(
        "a put beside seven writers",
        {puts: lambda: _beside_writers(run), wakes: _beside_busy_processes},
        new_processes=True,
    )
    late = {name: times.median(name) * 1e3 for name in times.of}
    yield Row(
        f"single put of 1 KiB beside {_BESIDE} writing processes, p99",
        f"{late[puts]:.2f} ms",
        "",
        [seconds * 1e3 for seconds in times.of[puts]],
        Goal(2, at_most=True),
        unit="ms",
        samples=times.of,
    )
    yield Row(
        "... beside how late a process is woken among as many that compute, p99",
        f"{late[puts]:.2f} ms",
        f"{late[wakes]:.2f} ms",
        times.ratios(puts, wakes),
        samples=times.of,
    )


def _beside_writers(run: Run) -> float:
    with run.folder() as folder:
        root: Path = folder / "store"
        MessageStore.create(root)
        writers = [_program("writer", str(root), str(_UNTIL_KILLED)) for _ in range(_BESIDE)]
        with _killed_at_end(writers):
            paced = _program("paced_puts", str(root), str(_PUTS))
            _begin([*writers, paced])
            return _answer_us(paced)


def _beside_busy_processes() -> float:
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(_BESIDE)]
    with _killed_at_end(busy):
        paced = _program("paced_puts", "-", str(_PUTS))
        _begin([paced])
        return _answer_us(paced)


_BUSY = "while True: pass"
_UNTIL_KILLED = 1_000_000_000


def _program(name: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.programs.{name}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _begin(programs: list[subprocess.Popen[str]]) -> None:
    """Wait until all are ready, then let them go."""
    for program in programs:
        assert program.stdout is not None
        program.stdout.readline()
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()


def _answer_us(program: subprocess.Popen[str]) -> float:
    """Seconds; the program prints microseconds."""
    output, _ = program.communicate()
    assert program.returncode == 0
    return int(output) / 1e6


@contextmanager
def _killed_at_end(programs: Sequence[subprocess.Popen[Any]]) -> Iterator[None]:
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
