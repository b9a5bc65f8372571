"""``rmqctl console`` on a store with thousands of topics and groups: looks, keys, stalls."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.console_store import LargeStore, make_large
from benchmarks.measures.console import answers, driven
from benchmarks.process_memory import require_proc
from benchmarks.report import Goal, Row
from benchmarks.run import Run
from storage.format.names import ABORT, OURS

NAME = "console_large"
_SIZE = LargeStore(topics=5_000, groups=10_000)
_QUICK = LargeStore(topics=500, groups=1_000)
_JUDGED_ANEW_S = 75
"""A minute after the first look many states are another one."""
_SCREENS = {
    "overview": _JUDGED_ANEW_S,
    "groups": _JUDGED_ANEW_S,
    "topics": 20,
    "health": 20,
    "dlqs": 20,
    "agenda": 20,
}
"""Each with the seconds for which it is looked at."""
_LEFT_SCREENS = {"overview": 20, "groups": 15, "topics": 15, "health": 15}
"""Those of a store that a Java broker has left: its first looks find the ends of all queues."""


def measure(run: Run) -> Iterator[Row]:
    require_proc()
    size = _QUICK if run.quick else _SIZE
    with run.folder() as folder:
        root = folder / "store"
        make_large(root, size)
        what = f"{size.topics:,} topics, {size.groups:,} groups"
        for screen, seconds in _SCREENS.items():
            yield from _screen(root, screen, what, run.sized(seconds, 8))
        _as_a_killed_java_broker_leaves_it(root)
        for screen, seconds in _LEFT_SCREENS.items():
            yield from _screen(root, screen, f"{what}, no shared state", run.sized(seconds, 8))


def _as_a_killed_java_broker_leaves_it(root: Path) -> None:
    """Take away what is rmqctl's, the shared state first of all, and leave its mark of a start."""
    shutil.rmtree(root / OURS)
    (root / ABORT).touch()


def _screen(root: Path, screen: str, of: str, seconds: float) -> Iterator[Row]:
    keys, found = driven(root, (screen,), seconds)
    what = f"console {screen}, {of}"
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
    for name, _, took in found["walks"]:
        yield Row(f"... the walk of {name}, CPU", f"{took:.2f} s", "", [took], unit="s")
    yield from answers("... key to changed screen, p95", keys, found)
