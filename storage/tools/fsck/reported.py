"""Places that a check has reported already, so that one damage is reported once.

A damaged place of the log also shows in the units and the keys of its messages. Those are not
reported again: each finding is checked against this table first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from storage.record_batch.arrays import Longs

from .offset_runs import OffsetRuns


class Reported:
    """Places of the log that findings have named."""

    def __init__(self) -> None:
        self._ranges = OffsetRuns()
        self._bounds: tuple[Longs, Longs] | None = None
        self.odd_times: set[int] = set()
        """Log offsets of some records whose store time goes back."""
        self.tail = False
        """Whether a finding names the log's end."""
        self.files: set[str] = set()
        """Files, relative to the store, whose length or absence was reported with its meaning."""

    def add(self, start: int, end: int) -> None:
        """Note that the bytes in [start, end) of the log are lost or wrong."""
        self._ranges.add(start, end)
        self._bounds = None

    def ranges(self) -> list[tuple[int, int]]:
        """The places that were added."""
        return self._ranges.bounds()

    def count(self) -> int:
        """How many places, times and files are noted."""
        return len(self.ranges()) + len(self.odd_times) + len(self.files)

    def absorb(self, other: Reported) -> None:
        """Add the places of a part of the log that follows."""
        for start, end in other._ranges:
            self.add(start, end)
        self.odd_times |= other.odd_times
        self.files |= other.files
        self.tail |= other.tail

    def has(self, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each log offset, whether it lies in a reported place."""
        if self._bounds is None:
            runs = np.array(list(self._ranges), np.int64).reshape(-1, 2)
            self._bounds = runs[:, 0], runs[:, 1]
        starts, ends = self._bounds
        if not len(starts):
            return np.zeros(len(offsets), np.bool_)
        at = np.searchsorted(starts, offsets, "right") - 1
        return (at >= 0) & (offsets < ends[np.maximum(at, 0)])
