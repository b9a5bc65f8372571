"""``rmqctl console``: what each screen writes and costs, at 80x24, at rest and while all moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.commands import rmqctl
from benchmarks.console_store import Size, make, moves, topic_of
from benchmarks.process_memory import require_proc
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from benchmarks.terminal import Terminal, terminal

NAME = "console_screens"
_SIZE = Size(groups=50, topics=20, queues=1)
_OLD_MS = 2 * 3_600_000
"""Ages are then shown in minutes: at rest, nothing but the clock is another one each second."""
_FRAME = b"READ ONLY"
_SETTLED_S = 5
_SCREENS = (
    ("overview",),
    ("groups",),
    ("group", "group-001"),
    ("history", "group-001"),
    ("topics",),
    ("topic", topic_of(1)),
    ("messages", topic_of(1)),
    ("message", topic_of(1), "0", "1"),
    ("dlqs",),
    ("agenda",),
    ("retries", "group-001"),
    ("health",),
    ("audit",),
    ("contexts",),
)


def measure(run: Run) -> Iterator[Row]:
    require_proc()
    seconds = run.sized(20, 6)
    with run.folder() as folder:
        root = folder / "store"
        make(root, _SIZE, _OLD_MS)
        for words in _SCREENS:
            name = " ".join(words)
            with terminal(_console(root, words, "2s")) as shown:
                share, count = _cost(shown, seconds)
            yield _bytes(f"console {name}, nothing moves", count * 2)
            yield Row("... CPU of a core", f"{share:.1%}", "", [share], _most(0.02, percent=True))
            with (
                moves(root, _SIZE, 1.0, 1.0),
                terminal(_console(root, words, "1s")) as shown,
            ):
                share, count = _cost(shown, seconds)
            yield Row(
                f"... {_SIZE.rows:,} rows move each second",
                f"{count / 1e3:.1f} kB/s",
                "",
                [count / 1e3],
                _most(10),
                "kB/s",
            )
            yield Row("... CPU of a core", f"{share:.1%}", "", [share], _most(0.05, percent=True))


def _console(root: Path, words: tuple[str, ...], every: str) -> list[str]:
    return [*rmqctl(), "-S", str(root), "console", *words, "--every", every]


def _most(value: float, *, percent: bool = False) -> Goal:
    return Goal(value, at_most=True, percent=percent)


def _bytes(what: str, a_look: float) -> Row:
    return Row(f"{what}: bytes a look", f"{a_look:.0f} B", "", [a_look], _most(100), "B")


def _cost(shown: Terminal, seconds: float) -> tuple[float, float]:
    """The share of a core, and bytes a second, once the screen has settled."""
    shown.until(_FRAME)
    shown.written(_SETTLED_S)
    start, cpu = perf_counter(), shown.cpu_s()
    count = shown.written(seconds)
    passed = perf_counter() - start
    return (shown.cpu_s() - cpu) / passed, count / passed
