"""What the forms for any POSIX system cost beside those of Linux (storage/platform/)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.programs.platform_forms import WORK
from benchmarks.report import Row
from benchmarks.run import NotMeasurableError, Run

NAME = "platform"


def measure(run: Run) -> Iterator[Row]:
    if sys.platform != "linux":
        raise NotMeasurableError("both forms are there on Linux only")
    share = run.sized(100, 20) / 100
    for name in WORK:
        times = run.take_turns(
            name,
            {
                "posix": partial(_seconds, run, name, share, "1"),
                "linux": partial(_seconds, run, name, share, ""),
            },
            new_processes=True,
        )
        us = {form: f"{times.median(form) * 1e6:,.1f} us" for form in times.of}
        yield Row(
            f"{name}: any POSIX system vs Linux",
            us["posix"],
            us["linux"],
            times.ratios("posix", "linux"),
            samples=times.of,
        )


def _seconds(run: Run, name: str, share: float, posix: str) -> float:
    with run.folder() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.programs.platform_forms", name, folder, str(share)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "RMQCTL_POSIX": posix},
        )
    return float(done.stdout)
