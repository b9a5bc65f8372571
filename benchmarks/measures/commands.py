"""Every command's help, as a whole process: what starting each of them costs. For information."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.contest import Contestant
from benchmarks.report import Row
from benchmarks.run import Run
from rmqctl.cli.tree import TREE, CommandGroup

NAME = "commands"
_SHOWN = 10


def measure(run: Run) -> Iterator[Row]:
    contestants: dict[str, Contestant] = {}
    for name, entry in TREE.items():
        verbs = (
            [[name, verb] for verb in entry.verbs] if isinstance(entry, CommandGroup) else [[name]]
        )
        for words in verbs:
            command = [*rmqctl(), *words, "--help"]
            contestants[" ".join(words)] = partial(seconds_of, command)
    contestants["rmqctl"] = partial(seconds_of, [*rmqctl(), "--help"])
    times = run.take_turns("start of every command", contestants)
    slowest = sorted(set(contestants) - {"rmqctl"}, key=times.median)[-_SHOWN:]
    middle = median(times.median(name) for name in contestants)
    yield Row(
        f"{len(contestants)} commands with --help, the slowest vs the one in the middle",
        f"{times.median(slowest[-1]) * 1e3:.0f} ms",
        f"{middle * 1e3:.0f} ms",
        [times.median(slowest[-1]) / middle],
    )
    for name in reversed(slowest):
        sides = (f"{times.median(name) * 1e3:.0f} ms", f"{times.median('rmqctl') * 1e3:.0f} ms")
        what = f"rmqctl {name} --help vs rmqctl --help"
        yield Row(what, *sides, times.ratios(name, "rmqctl"))
