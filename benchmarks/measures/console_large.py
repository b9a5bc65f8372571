"""``rmqctl console`` on a store with thousands of topics and groups: looks, keys, stalls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.commands import peer_script
from benchmarks.console_store import LargeStore, make_large
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.terminal import terminal

NAME = "console_large"
_SIZE = LargeStore(topics=5_000, groups=10_000)
_QUICK = LargeStore(topics=500, groups=1_000)
_SCREENS = (("overview",), ("groups",), ("topics",), ("health",), ("dlqs",), ("agenda",))
_FRAME = b"READ ONLY"
_MARKS = b"@", b"`"  # no row and no heading has them; one takes the place of the other


def measure(run: Run) -> Iterator[Row]:
    if not Path("/proc/self/status").exists():
        raise NotMeasurableError("there is no /proc/self/status here")
    size = _QUICK if run.quick else _SIZE
    with run.folder() as folder:
        root = folder / "store"
        make_large(root, size)
        for screen in _SCREENS:
            yield from _screen(run, root, size, screen)


def _screen(run: Run, root: Path, size: LargeStore, words: tuple[str, ...]) -> Iterator[Row]:
    seconds = run.sized(75, 8)  # a minute after the first look many states are judged anew
    keys, found = _driven(root, words, seconds)
    what = f"console {' '.join(words)}, {size.topics:,} topics, {size.groups:,} groups"
    slowest = max(found["looks"], key=lambda look: look[2])
    cpu = [took for _, _, took in found["looks"]]
    yield Row(
        f"{what}: the slowest look ({slowest[0]}), CPU",
        f"{slowest[2]:.2f} s",
        "",
        [slowest[2]],
        Goal(3, at_most=True),
        "s",
        samples={"look": cpu},
    )
    keys.sort()
    p95 = keys[len(keys) * 95 // 100]
    yield Row(
        "... key to changed screen, p95",
        f"{p95:.0f} ms",
        f"p50 {median(keys):.0f} ms",
        [p95],
        Goal(50, at_most=True),
        "ms",
        samples={"key": keys},
    )
    stall = max(wait for _, wait in found["waits"]) * 1e3
    yield Row(
        "... longest stall of the event loop",
        f"{stall:.0f} ms",
        "",
        [stall],
        Goal(100, at_most=True),
        "ms",
    )


def _driven(root: Path, words: tuple[str, ...], seconds: float) -> tuple[list[float], Any]:
    """The waits for keys in ms, and what the program has written."""
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
