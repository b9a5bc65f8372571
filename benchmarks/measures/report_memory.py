"""Anonymous memory of ``lag report`` over 100 million unread messages: of each process."""

from __future__ import annotations

import json
from collections.abc import Iterator

from benchmarks.commands import rmqctl
from benchmarks.large_store import make_large_store
from benchmarks.memory_peaks import Watched, watched
from benchmarks.report import Goal, Row
from benchmarks.report_store import have_read
from benchmarks.run import Run

_LIMIT_MB = 1_000
_QUEUES = 8
_SHARED_BY = 1_000


def measure(run: Run) -> Iterator[Row]:
    messages = run.sized(100_000_000, 10_000_000)
    with run.folder() as folder:
        root = folder / "store"
        make_large_store(root, "big", messages, _QUEUES, shared_by=_SHARED_BY)
        have_read(root, [0.0, 0.25, 0.5])
        what = f"anonymous memory, lag report of {messages / 1e6:g} M unread messages"
        base = [*rmqctl(), "-S", str(root), "lag", "report", "-q", "-o", "json"]
        for engine in ("local", "spark"):
            found = _checked(watched([*base, "--engine", engine], "rmqctl"), 2 * messages)
            for process, megabytes in found.peaks.items():
                yield Row(
                    f"{what}, {engine}: {process}",
                    f"{megabytes:.0f} MB",
                    f"in {found.seconds:.1f} s",
                    [megabytes],
                    Goal(_LIMIT_MB, at_most=True),
                    "MB",
                )


def _checked(found: Watched, least: int) -> Watched:
    report = json.loads(found.stdout)
    assert report["totals"]["lag"] >= least
    assert not any("store times" in warning for warning in report["warnings"])
    assert len(report["minutes"]) > 100
    return found
