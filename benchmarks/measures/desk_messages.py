"""Finding messages in a gibibyte of log: a word against grep over the same file, one by its id."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of, write_lines
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from storage.store import MessageStore

WORD = "xylophone"
_LOG_FILE = f"{0:020d}"


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(3_500_000, 350_000)
    with run.folder() as folder:
        root, lines = folder / "store", folder / "lines"
        MessageStore.create(root)
        _write_lines(lines, count)
        seconds_of([*rmqctl(), "-S", str(root), "-q", "produce", "lines", str(lines)])
        lines.unlink()
        yield from _search(run, root)
        yield _get(run, root)


def _write_lines(path: Path, count: int) -> None:
    """Lines of 100 bytes, of which one in 100,000 holds the word."""
    write_lines(path, count)
    with path.open("r+b") as file:
        for number in range(0, count, 100_000):
            file.seek(number * 100 + 50)
            file.write(WORD.encode())


def _search(run: Run, root: Path) -> Iterator[Row]:
    log = root / "commitlog" / _LOG_FILE
    grep = shutil.which("grep")
    if grep is None:
        raise NotMeasurableError("grep is not there")
    count = [grep, "-a", "-c", WORD, str(log)]
    found = subprocess.run(count, env={"LC_ALL": "C"}, capture_output=True, check=True)
    search = [*rmqctl(), "-S", str(root), "message", "search", WORD, "-o", "jsonl"]
    rows = subprocess.run(search, capture_output=True, check=True).stdout.count(b"\n")
    assert rows == int(found.stdout)
    size = log.stat().st_size / (1 << 30)
    for jobs in (2, 1):
        times = run.take_turns(
            f"search with {jobs} processes",
            {
                "rmqctl": partial(_to_file, [*search, "--jobs", str(jobs)], root),
                "grep": partial(_to_file, ["env", "LC_ALL=C", *count], root),
            },
            rounds=run.rounds * 2,
        )
        yield Row(
            f"message search of a word in {size:.1f} GiB, --jobs {jobs}, vs grep -a -c",
            f"{times.median('rmqctl') * 1e3:.0f} ms",
            f"{times.median('grep') * 1e3:.0f} ms",
            times.ratios("rmqctl", "grep"),
            Goal(2.0, at_most=True) if jobs > 1 else None,
            samples=times.of,
        )


def _to_file(command: list[str], folder: Path) -> float:
    """Into a file: grep stops at its first hit if its output is discarded."""
    return seconds_of(command, output=folder.with_name("output"))


def _get(run: Run, root: Path) -> Row:
    """By unique id, the whole process; the goal is absolute, so the peer is 150 ms."""
    last = [*rmqctl(), "-S", str(root), "consume", "lines", "-e", "--last", "1", "-f", "%m"]
    message_id = subprocess.run(last, capture_output=True, check=True, text=True).stdout
    get = [*rmqctl(), "-S", str(root), "message", "get", message_id]
    bare = [sys.executable, "-c", "pass"]
    times = run.take_turns(
        "get",
        {"get": lambda: seconds_of(get), "pass": lambda: seconds_of(bare)},
        rounds=run.rounds * 3,
    )
    return Row(
        "message get by unique id vs 150 ms",
        f"{times.median('get') * 1e3:.0f} ms",
        f"python -c pass: {times.median('pass') * 1e3:.0f} ms",
        [seconds / 0.150 for seconds in times.of["get"]],
        Goal(1.0, at_most=True),
        samples=times.of,
    )
