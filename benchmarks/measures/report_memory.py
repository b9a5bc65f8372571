"""Anonymous memory of ``lag report`` over 100 million unread messages: of each process."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import rmqctl
from benchmarks.large_store import make_large_store
from benchmarks.report import Goal, Row
from benchmarks.report_store import have_read
from benchmarks.run import NotMeasurableError, Run

_LIMIT_MB = 1_000
_QUEUES = 8
_SHARED_BY = 1_000
_LOOK_S = 0.01


def measure(run: Run) -> Iterator[Row]:
    if not Path("/proc/self/status").exists():
        raise NotMeasurableError("there is no /proc here")
    messages = run.sized(100_000_000, 10_000_000)
    with run.folder() as folder:
        root = folder / "store"
        make_large_store(root, "big", messages, _QUEUES, shared_by=_SHARED_BY)
        have_read(root, [0.0, 0.25, 0.5])
        what = f"anonymous memory, lag report of {messages / 1e6:g} M unread messages"
        base = [*rmqctl(), "-S", str(root), "lag", "report", "-q", "-o", "json"]
        for engine in ("local", "spark"):
            peaks = _peaks([*base, "--engine", engine], 2 * messages)
            for process, megabytes in peaks.of.items():
                yield Row(
                    f"{what}, {engine}: {process}",
                    f"{megabytes:.0f} MB",
                    f"in {peaks.seconds:.1f} s",
                    [megabytes],
                    Goal(_LIMIT_MB, at_most=True),
                    "MB",
                )


class _Peaks(NamedTuple):
    """Most anonymous memory (MB) of any process of a kind, and how long it took."""

    of: dict[str, float]
    seconds: float


def _peaks(command: Sequence[str], least: int) -> _Peaks:
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        peaks: dict[str, float] = defaultdict(float)
        chunks = []
        assert process.stdout is not None
        stdout = process.stdout
        reader = threading.Thread(target=lambda: chunks.append(stdout.read()))
        reader.start()
        while process.poll() is None:
            for pid, kind in _family(process.pid, "rmqctl"):
                peaks[kind] = max(peaks[kind], _anonymous(pid))
            time.sleep(_LOOK_S)
        reader.join()
        seconds = time.perf_counter() - start
        if process.returncode:
            assert process.stderr is not None
            raise NotMeasurableError(process.stderr.read().decode(errors="replace")[-200:])
    report = json.loads(chunks[0])
    assert report["totals"]["lag"] >= least
    assert not any("store times" in warning for warning in report["warnings"])
    assert len(report["minutes"]) > 100
    return _Peaks(dict(peaks), seconds)


def _family(pid: int, kind: str) -> Iterator[tuple[int, str]]:
    """A process and its children: Spark's JVM, and its Python workers."""
    yield pid, kind
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(word) for task in tasks for word in task.read_text().split()]
    except OSError:
        return
    for child in children:
        try:
            program = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        yield from _family(child, "the JVM" if program.endswith(b"java") else "a worker")


def _anonymous(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0
