"""Sets of queue offsets as runs, for millions of mostly consecutive numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class OffsetRuns:
    """A set of ints, held as disjoint ascending [start, end) runs."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        """Add all of [start, end). Fast when runs come in ascending order."""
        if start >= end:
            return
        if not self._ends or start > self._ends[-1]:
            self._starts.append(start)
            self._ends.append(end)
            return
        low = bisect_right(self._starts, start)
        if low and self._ends[low - 1] >= start:
            low -= 1
            start = self._starts[low]
        high = low
        while high < len(self._starts) and self._starts[high] <= end:
            end = max(end, self._ends[high])
            high += 1
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]

    def add_stretches(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Add all [starts[i], ends[i]), which ascend; what touches is added as one."""
        if not len(starts):
            return
        breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
        firsts = starts[np.concatenate(([0], breaks))].tolist()
        lasts = ends[np.concatenate((breaks - 1, [len(ends) - 1]))].tolist()
        for start, end in zip(firsts, lasts, strict=True):
            self.add(start, end)

    def add_all(self, numbers: NDArray[np.int64]) -> None:
        """Add each number; fast when they ascend, mostly one by one."""
        self.add_stretches(numbers, numbers + 1)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset)
        return at > 0 and offset < self._ends[at - 1]

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def bounds(self) -> list[tuple[int, int]]:
        """All runs, ascending."""
        return list(self)

    def within(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The runs of [start, end) that are in the set."""
        for run_start, run_end in self:
            if run_start < end and run_end > start:
                yield max(start, run_start), min(end, run_end)

    def missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The runs of [start, end) that are not in the set."""
        for run_start, run_end in self:
            if run_end <= start:
                continue
            if run_start >= end:
                break
            if run_start > start:
                yield start, run_start
            start = run_end
        if start < end:
            yield start, end
