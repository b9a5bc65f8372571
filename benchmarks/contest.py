"""Taking turns: the only fair comparison on a machine with other work.

Each round runs every contestant once, in an order that rotates. A ratio is taken within a round,
and the median of the ratios counts. Earlier rounds warm files, caches and code.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

Contestant = Callable[[], float]
"""Does the work once and gives the seconds that count; set-up and clearing away do not."""


@dataclass
class Times:
    """Seconds of every round, by contestant; warming rounds are left out."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """The contestant's median, in seconds."""
        return median(self.of[name])

    def ratios(self, slower: str, faster: str) -> list[float]:
        """Time of one divided by that of the other, round by round."""
        return [a / b for a, b in zip(self.of[slower], self.of[faster], strict=True)]


def take_turns(
    contestants: Mapping[str, Contestant],
    rounds: int,
    *,
    note: Callable[[str], None] = lambda _: None,
    warming: int = 1,
    prepare: Callable[[], None] = lambda: None,
) -> Times:
    """Run all contestants ``rounds`` times, and ``warming`` times before that; ``prepare`` before
    each."""
    names = list(contestants)
    times = Times({name: [] for name in names})
    os.sync()  # no contestant waits for earlier writes
    gc.collect()
    gc.freeze()  # garbage collection skips the messages made before
    for number in range(-warming, rounds):
        note(f"round {number + 1} of {rounds}" if number >= 0 else "warming up")
        first = number % len(names)
        for name in names[first:] + names[:first]:
            gc.collect()
            prepare()
            seconds = contestants[name]()
            if number >= 0:
                times.of[name].append(seconds)
    return times
