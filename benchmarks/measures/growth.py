"""How costs grow with messages, queues and groups: the exponent of each main operation."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.growth import by_groups, by_messages, by_progress, by_queues
from benchmarks.report import Row
from benchmarks.run import Run

NAME = "growth"


def measure(run: Run) -> Iterator[Row]:
    yield from by_messages.measure(run)
    yield from by_queues.measure(run)
    yield from by_groups.measure(run)
    yield from by_progress.measure(run)
