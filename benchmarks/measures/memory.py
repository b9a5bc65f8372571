"""Anonymous memory of a long `produce` and `consume -e`: its peak, without pages of files."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from benchmarks.commands import rmqctl, write_lines
from benchmarks.process_memory import ANONYMOUS, memory_bytes, require_proc
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from storage.store import MessageStore

NAME = "memory"
_LIMIT_MB = 400


def measure(run: Run) -> Iterator[Row]:
    require_proc()
    count = run.sized(10_000_000, 1_000_000)
    size = f"{count / 10_000_000:g} GB"
    with run.folder() as folder:
        lines, root = folder / "lines", folder / "store"
        write_lines(lines, count)
        MessageStore.create(root)
        base = [*rmqctl(), "-S", str(root), "-q"]
        for what, command in (
            (f"anonymous memory of produce, {size} of lines", ["produce", "lines", str(lines)]),
            (f"anonymous memory of consume -e, {size} of lines", ["consume", "lines", "-e"]),
        ):
            peak, seconds = peak_of([*base, *command])
            yield Row(
                what,
                f"{peak:.0f} MB",
                f"in {seconds:.1f} s",
                [peak],
                Goal(_LIMIT_MB, at_most=True),
                "MB",
            )


def peak_of(command: Sequence[str]) -> tuple[float, float]:
    """Highest RssAnon in MB, read every 5 ms, and the time of the process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        with suppress(OSError):  # it has just ended
            peak = max(peak, memory_bytes(ANONYMOUS, process.pid))
        time.sleep(0.005)
    seconds = time.perf_counter() - start
    if process.returncode:
        assert process.stderr is not None
        raise NotMeasurableError(process.stderr.read().decode(errors="replace").strip()[-200:])
    return peak / 1e6, seconds
