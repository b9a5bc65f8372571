"""The exponent of a cost: 0 is constant, 1 is linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log
from statistics import fmean, median
from time import perf_counter
from typing import NamedTuple

from benchmarks.report import Goal, Row


class Point(NamedTuple):
    """Seconds of one operation in a store of a size, a figure a round."""

    size: int
    seconds: Sequence[float]


def seconds_each(operations: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Seconds of one of the operations, round by round; one round before them warms up."""
    taken = []
    for _ in range(rounds + 1):
        start = perf_counter()
        for operation in operations:
            operation()
        taken.append((perf_counter() - start) / len(operations))
    return taken[1:]


def exponents(points: Sequence[Point]) -> list[float]:
    """Slope of log(seconds) over log(size), least squares, for each round."""
    sizes = [log(max(point.size, 1)) for point in points]
    middle = fmean(sizes)
    spread = sum((size - middle) ** 2 for size in sizes)
    found = []
    for seconds in zip(*(point.seconds for point in points), strict=True):
        costs = [log(second) for second in seconds]
        mean = fmean(costs)
        products = ((x - middle) * (y - mean) for x, y in zip(sizes, costs, strict=True))
        found.append(sum(products) / spread)
    return found


def growth_row(what: str, of: str, points: Sequence[Point], best: str, goal: float) -> Row:
    """A line of the report: cost at the smallest and the largest size, and the exponent."""
    first, last = points[0], points[-1]
    costs = [f"{_human(median(point.seconds))}" for point in (first, last)]
    return Row(
        f"growth: {what}, {first.size:,} to {last.size:,} {of}",
        " to ".join(costs),
        best,
        exponents(points),
        Goal(goal, at_most=True),
        "exponent",
        samples={f"{point.size}": list(point.seconds) for point in points},
    )


def _human(seconds: float) -> str:
    for unit, size in (("us", 1e-6), ("ms", 1e-3)):
        if seconds < 1000 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
