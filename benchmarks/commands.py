"""Running rmqctl and peer scripts as a shell does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter

from .run import NotMeasurableError


def rmqctl() -> list[str]:
    """The command as it is installed beside this interpreter."""
    path = Path(sys.executable).with_name("rmqctl")
    return [str(path)] if path.exists() else [sys.executable, "-m", "rmqctl"]


def peer_script(name: str) -> list[str]:
    """A script of benchmarks/programs, started as a user would."""
    return [sys.executable, str(Path(__file__).with_name("programs") / f"{name}.py")]


def seconds_of(
    command: Sequence[str], *, output: Path | None = None, env: Mapping[str, str] | None = None
) -> float:
    """Time of the whole process, its standard output going to a file or to /dev/null."""
    with (output or Path("/dev/null")).open("wb") as sink:
        start = perf_counter()
        done = subprocess.run(command, stdout=sink, stderr=subprocess.PIPE, check=False, env=env)
        seconds = perf_counter() - start
    if done.returncode:
        error = done.stderr.decode(errors="replace").strip().splitlines()
        reason = error[-1] if error else f"exit code {done.returncode}"
        raise NotMeasurableError(f"{' '.join(command[:4])} ...: {reason}")
    return seconds


def write_lines(path: Path, count: int) -> None:
    """A file of different lines of 100 bytes, the line feed among them."""
    filler = "the quick brown fox jumps over the lazy dog " * 2
    with path.open("w") as file:
        for first in range(0, count, 10_000):
            file.writelines(
                f"{number:010d} {filler[number % 20 :][:88].ljust(88, '.')}\n"
                for number in range(first, min(count, first + 10_000))
            )
