"""A file of lines through the command line; whole processes.

Beside ``produce`` stand the program ``sqlite3``, importing into a WAL table whose index has the
number that each line begins with (ours indexes an id of each message), and a Python script over
SQLite. Beside ``consume -e`` stand ``sqlite3``, a Python script and, for information, ``cat``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.commands import peer_script, rmqctl, seconds_of, write_lines
from benchmarks.contest import Contestant
from benchmarks.goals import row
from benchmarks.report import Goal, Missing, Row
from benchmarks.run import Run
from storage.store import MessageStore

NAME = "shell"
_SCHEMA = (
    "pragma journal_mode = wal; pragma synchronous = normal; create table messages (body text); "
)
_INDEX = "create index by_number on messages (substr(body, 1, 10)); "


def measure(run: Run) -> Iterator[Row | Missing]:
    count = run.sized(2_000_000, 100_000)
    program = shutil.which("sqlite3")
    if program is None:
        yield Missing("shell against the program sqlite3", "it is not on the path")
    with run.folder() as folder:
        lines = folder / "lines"
        write_lines(lines, count)
        yield from _produce(run, lines, count, program)
        yield from _consume(run, folder, lines, count, program)


def _produce(run: Run, lines: Path, count: int, program: str | None) -> Iterator[Row]:
    contestants: dict[str, Contestant] = {
        "rmqctl": lambda: _load_ours(run, lines),
        "script": lambda: _load_script(run, lines),
    }
    if program is not None:
        contestants["sqlite3"] = partial(_load_program, run, lines, program, _SCHEMA + _INDEX)
        contestants["no index"] = partial(_load_program, run, lines, program, _SCHEMA)
    times = run.take_turns("produce", contestants)
    seconds = {name: f"{times.median(name):.2f} s" for name in times.of}
    what = f"produce of {count:,} lines of 100 B"
    if program is not None:
        sides = (seconds["rmqctl"], seconds["sqlite3"])
        ratios = times.ratios("sqlite3", "rmqctl")
        detail = f"{count:,} x 100 B"
        yield row("shell/sqlite3", sides, ratios, detail=detail, samples=times.of)
        ratios = times.ratios("no index", "rmqctl")
        yield Row(f"{what} vs sqlite3 without an index", sides[0], seconds["no index"], ratios)
    yield Row(
        f"{what} vs executemany",
        seconds["rmqctl"],
        seconds["script"],
        times.ratios("script", "rmqctl"),
        Goal(2.0),
        samples=times.of,
    )


def _consume(run: Run, folder: Path, lines: Path, count: int, program: str | None) -> Iterator[Row]:
    root, database, imported = folder / "store", folder / "lines.db", folder / "imported.db"
    MessageStore.create(root)
    _run_produce(root, lines)
    seconds_of([*peer_script("sqlite_load"), str(database), str(lines)])
    produced, printed = folder / "consumed", folder / "printed"
    consume = [*rmqctl(), "-S", str(root), "-q", "consume", "lines", "-e"]
    contestants: dict[str, Contestant] = {
        "rmqctl": lambda: seconds_of(consume, output=produced),
        "script": lambda: seconds_of([*peer_script("sqlite_print"), str(database)], output=printed),
        "cat": lambda: seconds_of(["cat", str(lines)], output=printed),
    }
    if program is not None:
        seconds_of(_import(program, imported, lines, _SCHEMA))
        select = [program, str(imported), "select body from messages order by rowid"]
        contestants["sqlite3"] = lambda: seconds_of(select, output=printed)
    times = run.take_turns("consume -e", contestants)
    assert produced.stat().st_size == printed.stat().st_size == lines.stat().st_size
    if program is not None:
        sides = (f"{times.median('rmqctl'):.2f} s", f"{times.median('sqlite3'):.2f} s")
        ratios = times.ratios("sqlite3", "rmqctl")
        detail = f"{count:,} x 100 B"
        yield row("shell/consume", sides, ratios, detail=detail, samples=times.of)
    for name, peer, goal in (
        ("script", "select and print in Python", Goal(1.0)),
        ("cat", "cat", None),
    ):
        if name in contestants:
            yield Row(
                f"consume -e of {count:,} lines vs {peer}",
                f"{times.median('rmqctl'):.2f} s",
                f"{times.median(name):.2f} s",
                times.ratios(name, "rmqctl"),
                goal,
                samples=times.of,
            )


def _load_ours(run: Run, lines: Path) -> float:
    with run.folder() as folder:
        root = folder / "store"
        MessageStore.create(root)
        return _run_produce(root, lines)


def _run_produce(root: Path, lines: Path) -> float:
    return seconds_of([*rmqctl(), "-S", str(root), "-q", "produce", "lines", str(lines)])


def _load_script(run: Run, lines: Path) -> float:
    with run.folder() as folder:
        return seconds_of([*peer_script("sqlite_load"), str(folder / "lines.db"), str(lines)])


def _load_program(run: Run, lines: Path, program: str, schema: str) -> float:
    with run.folder() as folder:
        return seconds_of(_import(program, folder / "lines.db", lines, schema))


def _import(program: str, database: Path, lines: Path, schema: str) -> list[str]:
    # No line has this separator, so each is one value; no quotes are looked for.
    options = ["-ascii", "-separator", "\x1f", "-newline", "\n"]
    return [program, *options, str(database), schema, f".import '{lines}' messages"]
