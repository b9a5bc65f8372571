"""``rmqctl console``: its start, its looks, what it costs, and how soon it answers a key."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.commands import peer_script, rmqctl, seconds_of
from benchmarks.console_store import Size, make, moves
from benchmarks.process_memory import require_proc
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.terminal import Terminal, terminal

NAME = "console"

_POSITIONS = Size(groups=50, topics=125, queues=8)
_MOVING = Size(groups=50, topics=20, queues=1)
_MANY_ROWS = Size(groups=100, topics=100, queues=1)
_FRAME = b"READ ONLY"
_ROW = b"topic-"
_MARKS = b"@", b"`"  # no row and no heading has them; one takes the place of the other
_AGE_MS = 2 * 3_600_000
"""Of messages whose age is another one after minutes only, as it is shown."""
_SETTLED_LOOKS = 15
"""Looks of two seconds after which rates are known."""


def measure(run: Run) -> Iterator[Row]:
    require_proc()
    with run.folder() as folder:
        positions, moving, many = (folder / name for name in ("positions", "moving", "rows"))
        make(positions, _POSITIONS, _AGE_MS)
        yield from _starts(run, positions)
        yield from _first_rows(run, positions)
        yield from _looks(run, positions)
        yield from _keys(run, positions)
        yield from _idle(run, positions)
        make(moving, _MOVING)
        yield from _rows_move(run, moving)
        yield from _ages(run, moving)
        make(many, _MANY_ROWS)
        yield from _memory(run, many)


def _console(root: Path, *words: str) -> list[str]:
    return [*rmqctl(), "-S", str(root), "console", *words]


def _most(value: float, *, percent: bool = False) -> Goal:
    return Goal(value, at_most=True, percent=percent)


def _starts(run: Run, root: Path) -> Iterator[Row]:
    """The first frame, beside a command that hardly does anything and a bare application."""

    def first_frame(command: list[str]) -> float:
        with terminal(command) as shown:
            return shown.until(_FRAME)

    bare = [sys.executable, *peer_script("bare_textual")[1:]]
    times = run.take_turns(
        "console start",
        {
            "console": lambda: first_frame(_console(root)),
            "version": lambda: seconds_of([*rmqctl(), "version"]),
            "bare": lambda: first_frame(bare),
        },
        rounds=run.rounds if run.quick else max(7, run.rounds),
    )
    ours, both = times.median("console"), times.median("version") + times.median("bare")
    ratios = [
        one / (version + app)
        for one, version, app in zip(
            times.of["console"], times.of["version"], times.of["bare"], strict=True
        )
    ]
    yield Row(
        "console, first frame vs rmqctl version and a bare Textual application",
        f"{ours * 1e3:.0f} ms",
        f"{both * 1e3:.0f} ms",
        ratios,
        _most(1.25),
        samples=times.of,
    )
    milliseconds = [one * 1e3 for one in times.of["console"]]
    yield Row("... first frame", f"{ours * 1e3:.0f} ms", "", milliseconds, _most(600), "ms")


def _first_rows(run: Run, root: Path) -> Iterator[Row]:
    found = []
    for _ in range(run.sized(3, 1)):
        with terminal(_console(root, "groups")) as shown:
            shown.until(_FRAME)
            found.append(shown.until(_ROW))
    yield Row(
        f"... rows of {_POSITIONS.positions:,} positions after the first frame",
        f"{median(found):.2f} s",
        "",
        found,
        _most(1),
        "s",
    )


def _looked(root: Path, size: Size, looks: int, share: float, every: int) -> dict[str, Any]:
    """See benchmarks/programs/console_looks.py."""
    numbers = (*size[:3], looks, share, every)
    command = [sys.executable, "-m", "benchmarks.programs.console_looks", str(root)]
    done = subprocess.run(
        [*command, *map(str, numbers)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["rows"] == size.rows, found["rows"]
    return found


def _looks(run: Run, root: Path) -> Iterator[Row]:
    found = _looked(root, _POSITIONS, run.sized(45, 20), 0.01, 1)
    what = f"console, {_POSITIONS.positions:,} positions, 1 % moved since the last look"
    for name, title, goal in (("look", "look and rows", 50), ("draw", "a frame", 15)):
        samples = [seconds * 1e3 for seconds in found[name][_SETTLED_LOOKS:]]
        yield Row(
            f"{what}: {title}, CPU",
            f"{median(samples):.1f} ms",
            "",
            samples,
            _most(goal),
            "ms",
            samples={name: found[name]},
        )
    first = found["look"][0] * 1e3
    yield Row("... the first look, CPU", f"{first:.0f} ms", "", [first], None, "ms")


def _keys(run: Run, root: Path) -> Iterator[Row]:
    """Each look is a full one: all positions move, and the next look begins at once."""
    with moves(root, _POSITIONS, 1.0, 0.2):
        keys, found = driven(root, ("groups", "--every", "100ms"), run.sized(15, 4))
    yield from answers("console, key to changed screen while full looks run, p95", keys, found)


def answers(title: str, keys: list[float], found: Any) -> Iterator[Row]:
    """The rows of what :func:`driven` gives."""
    keys.sort()
    p95 = keys[len(keys) * 95 // 100]
    yield Row(
        title,
        f"{p95:.0f} ms",
        f"p50 {median(keys):.0f} ms",
        [p95],
        _most(50),
        "ms",
        samples={"key": keys},
    )
    stall = max(wait for _, wait in found["waits"]) * 1e3
    yield Row(
        "... longest stall of the event loop", f"{stall:.0f} ms", "", [stall], _most(100), "ms"
    )


def driven(root: Path, words: tuple[str, ...], seconds: float) -> tuple[list[float], Any]:
    """Press keys in the console for so long: the waits for a changed screen in ms, and what
    benchmarks/programs/console_stalls.py has written."""
    out = root.with_name(f"{words[0]}.json")
    program = [*peer_script("console_stalls"), str(out)]
    keys: list[float] = []
    with terminal([*program, "-S", str(root), "console", *words]) as shown:
        passed = shown.until(_FRAME)
        shown.send(b":" + _MARKS[1])
        passed += shown.until(_MARKS[1])
        while passed < seconds:
            mark = _MARKS[len(keys) % 2]
            shown.send(b"\x7f" + mark)
            took = shown.until(mark)
            keys.append(took * 1e3)
            pause = 0.02 + len(keys) % 7 / 100
            shown.written(pause)
            passed += took + pause
        shown.written(1.5)  # it writes each second
    found: Any = json.loads(out.read_text())
    out.unlink()
    return keys, found


def _cost(shown: Terminal, seconds: float) -> tuple[float, float]:
    """The share of a core, and bytes a second."""
    start, cpu = perf_counter(), shown.cpu_s()
    count = shown.written(seconds)
    passed = perf_counter() - start
    return (shown.cpu_s() - cpu) / passed, count / passed


def _idle(run: Run, root: Path) -> Iterator[Row]:
    with terminal(_console(root, "groups")) as shown:
        shown.until(_ROW)
        shown.written(6)
        share, count = _cost(shown, run.sized(20, 6))
    yield Row(
        "console, nothing moves: CPU of a core",
        f"{share:.1%}",
        "",
        [share],
        _most(0.02, percent=True),
    )
    a_look = count * 2
    yield Row("... bytes a look", f"{a_look:.0f} B", "", [a_look], _most(100), "B")


def _rows_move(run: Run, root: Path) -> Iterator[Row]:
    with (
        moves(root, _MOVING, 1.0, 1.0),
        terminal(_console(root, "groups", "--every", "1s")) as shown,
    ):
        shown.until(_ROW)
        shown.written(6)
        share, count = _cost(shown, run.sized(20, 6))
    what = f"console, {_MOVING.rows:,} rows move each second"
    yield Row(f"{what}: CPU of a core", f"{share:.1%}", "", [share], _most(0.05, percent=True))
    kilobytes = count / 1e3
    yield Row(f"{what}: at 80x24", f"{kilobytes:.1f} kB/s", "", [kilobytes], _most(10), "kB/s")


def _ages(run: Run, root: Path) -> Iterator[Row]:
    """Nothing moves but the ages of all rows, which are shown in seconds."""
    with terminal(_console(root, "groups")) as shown:
        shown.until(_ROW)
        shown.written(6)
        _, count = _cost(shown, run.sized(20, 6))
    a_look = count * 2
    yield Row(
        "console, nothing moves but ages of minutes and seconds: bytes a look",
        f"{a_look:.0f} B",
        "",
        [a_look],
        None,
        "B",
    )


def _memory(run: Run, root: Path) -> Iterator[Row]:
    looks = run.sized(1_800, 300)
    found = _looked(root, _MANY_ROWS, looks, 0.01, 20)["mib"]
    last, third = found[-1], found[len(found) // 3]
    what = f"console, {looks:,} looks at {_MANY_ROWS.rows:,} rows"
    yield Row(f"{what}: anonymous memory", f"{last:.0f} MiB", "", [last], _most(100), "MiB")
    growth = last - third
    yield Row(
        "... growth in the last two thirds", f"{growth:.1f} MiB", "", [growth], _most(3), "MiB"
    )
