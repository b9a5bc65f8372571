"""The beginnings of minutes in the log.

Store times never go back along the log: the broker stamps records under the lock under which it
appends them. So one record shows for each edge on which side of it *all* records before it, or
after it, lie, whatever their queues. The first queue costs a binary search for each edge, all of
them at once; the others read the few records between known ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FAR: Final = np.iinfo(np.int64).max

TimesOf: TypeAlias = "Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]"
"""Store times (ms) of records by their log offsets and sizes, -1 where one cannot be read."""


class DisorderError(Exception):
    """Store times go back: then the time of every record of the log must be read."""


class UnreadableRecordError(Exception):
    """A record cannot be read: then the time of each of those that were asked about must be."""


class MinuteEdges:
    """Times (ms, ascending) and their known positions in one log.

    It grows with each queue; for one thread.
    """

    def __init__(self, times: NDArray[np.int64]) -> None:
        self.times = times
        self._older = np.full(len(times), -1, np.int64)  # up to here stored before the edge
        self._newer = np.full(len(times), _FAR, np.int64)  # from here on not
        self.reads = 0
        """Number of records read."""

    def positions(
        self, offsets: NDArray[np.int64], sizes: NDArray[np.int64], times_of: TimesOf
    ) -> NDArray[np.int64]:
        """For each edge: how many records at log offsets ``offsets`` (ascending) are older.

        Raises DisorderError and UnreadableRecordError.
        """
        low = np.searchsorted(offsets, self._older, "right")
        high = np.searchsorted(offsets, self._newer, "left")
        while (unsure := np.flatnonzero(low < high)).size:
            probes = np.unique((low[unsure] + high[unsure]) >> 1)
            self._learn(offsets[probes], times_of(offsets[probes], sizes[probes]))
            low = np.maximum(low, np.searchsorted(offsets, self._older, "right"))
            high = np.minimum(high, np.searchsorted(offsets, self._newer, "left"))
        return low

    def _learn(self, offsets: NDArray[np.int64], stored: NDArray[np.int64]) -> None:
        """Add the store times of records (ascending)."""
        self.reads += len(offsets)
        if (stored < 0).any():
            raise UnreadableRecordError
        if (np.diff(stored) < 0).any():
            raise DisorderError
        # How many of the records were stored before each edge.
        before = np.searchsorted(stored, self.times, "left")
        some = before > 0
        older, newer = self._older.copy(), self._newer.copy()
        older[some] = np.maximum(older[some], offsets[before[some] - 1])
        rest = before < len(offsets)
        newer[rest] = np.minimum(newer[rest], offsets[before[rest]])
        if (older >= newer).any():
            raise DisorderError  # nothing is learnt of what contradicts the rest
        self._older, self._newer = older, newer
