"""A file of lines through the command line, against Python scripts over SQLite; whole processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.commands import peer_script, rmqctl, seconds_of, write_lines
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from storage.store import MessageStore

NAME = "shell"


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(1_000_000, 100_000)
    with run.folder() as folder:
        lines = folder / "lines"
        write_lines(lines, count)
        times = run.take_turns(
            "produce",
            {"rmqctl": lambda: _produce(run, lines), "sqlite": lambda: _load(run, lines)},
        )
        yield Row(
            f"produce of a file of {count:,} lines of 100 B vs executemany",
            f"{times.median('rmqctl'):.2f} s",
            f"{times.median('sqlite'):.2f} s",
            times.ratios("sqlite", "rmqctl"),
            Goal(2.0),
            samples=times.of,
        )
        root, database = folder / "store", folder / "lines.db"
        MessageStore.create(root)
        _run_produce(root, lines)
        seconds_of([*peer_script("sqlite_load"), str(database), str(lines)])
        produced, printed = folder / "consumed", folder / "printed"
        times = run.take_turns(
            "consume -e",
            {
                "rmqctl": lambda: seconds_of(_consume(root), output=produced),
                "sqlite": lambda: seconds_of(
                    [*peer_script("sqlite_print"), str(database)], output=printed
                ),
            },
        )
        assert produced.stat().st_size == printed.stat().st_size == lines.stat().st_size
        yield Row(
            f"consume -e of {count:,} lines vs select and print",
            f"{times.median('rmqctl'):.2f} s",
            f"{times.median('sqlite'):.2f} s",
            times.ratios("sqlite", "rmqctl"),
            Goal(1.0),
            samples=times.of,
        )


def _produce(run: Run, lines: Path) -> float:
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root)
        return _run_produce(root, lines)


def _run_produce(root: Path, lines: Path) -> float:
    return seconds_of([*rmqctl(), "-S", str(root), "-q", "produce", "lines", str(lines)])


def _consume(root: Path) -> list[str]:
    return [*rmqctl(), "-S", str(root), "-q", "consume", "lines", "-e"]


def _load(run: Run, lines: Path) -> float:
    with run.folder() as folder:
        return seconds_of([*peer_script("sqlite_load"), str(folder / "lines.db"), str(lines)])
