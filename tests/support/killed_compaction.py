"""Killing a compaction at every instant, and looking at the folder that it leaves.

Runs in a slim interpreter (tests.support.slim): it forks at each instant, and all work on Parquet
is done by children, as pyarrow has threads.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from traceback import format_exc

import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401 - once, before the forks

from analytics.history import compaction, swapping
from analytics.history.swapping import LISTING_S
from tests.support.crash import die
from tests.support.kept_reports import DAY_MS, OLD, document, files, places, rows, run

LATER = OLD + 60 * DAY_MS
LAST = OLD + 2 * DAY_MS
CHANGING = frozenset(
    {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.utime"}
    | {"ctypes.dlsym"}  # right before folders are exchanged
)


def killed_at_every_instant(
    folder: str, first: int, step: int, exchanges: bool
) -> dict[str, object]:
    """Kill at the instants first, first + step, ... until a compaction survives."""
    place = Path(folder)
    made = _in_child(lambda: _prepare(place / "made"), place)
    assert made == [], made
    failures: list[str] = []
    for number in count(first, step):
        at = place / f"at-{number}"
        shutil.copytree(place / "made", at)
        was_killed = _compact_until(at, number, exchanges=exchanges)
        failures += [
            f"killed at instant {number}: {problem}"
            for problem in _in_child(lambda at=at: _judge(at, exchanges=exchanges), place)  # type: ignore[misc]
        ]
        shutil.rmtree(at)
        if not was_killed or len(failures) > 10:
            return {"failures": failures, "instants": number}
    raise AssertionError


def _prepare(folder: Path) -> list[str]:
    for day in range(3):
        run(folder, OLD + day * DAY_MS, {"a": day + 1, "b": 9 - day}, full=False)
        if day == 1:
            _compact(folder)  # so that a joined file is joined again
    (folder / "groups" / "month=2026-01" / "_SUCCESS").touch()  # of another program: it stays
    return []


def _compact(folder: Path, listing_s: float = 0) -> None:
    warnings: list[str] = []
    with compaction.compacting(str(folder), listing_s=listing_s) as old:
        for one in compaction.plan(str(folder), LATER):
            compaction.join(one, warnings.append, old)
    assert not warnings, warnings


def _compact_until(folder: Path, number: int, *, exchanges: bool) -> bool:
    """Compact in a child that is killed at an instant; whether it came to that."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if not exchanges:  # a file system that cannot do it
                vars(swapping)["exchange"] = lambda one, other: False
            left = number

            def see(event: str, arguments: tuple[object, ...]) -> None:
                nonlocal left
                writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
                if event in CHANGING or writes:
                    left -= 1
                    if not left:
                        die()

            sys.addaudithook(see)
            _compact(folder)
            code = 0
        except BaseException:  # noqa: BLE001 - it must not run on as the parent
            os.write(2, format_exc().encode())
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def _judge(folder: Path, *, exchanges: bool) -> list[str]:
    problems = [f"{what}, at once" for what in _see(folder, all_programs=exchanges)]
    before = len(files(folder))
    _compact(folder)
    problems += [f"{what}, compacted again" for what in _see(folder, all_programs=True)]
    left = files(folder)
    if len(left) != 4 or before < 4:
        problems.append(f"files: {left}")
    if (folder / swapping.STAGING).exists():
        problems.append("its staging is left")
    return problems


def _see(folder: Path, *, all_programs: bool) -> list[str]:
    wanted = sorted(
        (OLD + day * DAY_MS, broker, 0, group, "orders", lag)
        for day in range(3)
        for broker, lag in (("a", day + 1), ("b", 9 - day))
        for group in ("billing", "shipping")
    )
    problems = []
    if all_programs and places(rows(folder, "groups")) != wanted:
        problems.append(f"rows: {places(rows(folder, 'groups'))}")
    for day in (0, 2):
        totals = json.loads(document(folder, OLD + day * DAY_MS))["totals"]
        if (totals["stores"], totals["lag"], totals["queues"]) != (2, 20, 4):
            problems.append(f"day {day}: {totals}")
    return problems


def _in_child(judge: Callable[[], list[str]], place: Path) -> list[str]:
    """What a function finds, called in a child."""
    answer = place / "answer.json"
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            answer.write_text(json.dumps(judge()))
        except BaseException:  # noqa: BLE001 - a finding, too
            answer.write_text(json.dumps([format_exc(limit=-4)]))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    found: list[str] = json.loads(answer.read_text())
    return found


def keeps_and_compacts(folder: str, runs: int) -> None:
    """Keep reports of an old month and compact them, again and again."""
    place = Path(folder)
    for number in range(1, runs):
        run(place, OLD + number * 60_000, {"a": 5, "b": 6}, full=False)
        _compact(place, LISTING_S)


if __name__ == "__main__":
    keeps_and_compacts(sys.argv[1], int(sys.argv[2]))
