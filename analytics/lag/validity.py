"""Until when the state of a group in a queue holds if nothing but the time changes. Pure.

It follows :mod:`.trend` and :func:`.health.judge`: which of their answers depend on the time, and
when an observation leaves the time that they look at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from storage.configs.offset_samples import Change

from .health import PATIENCE_MS
from .trend import RATE_WINDOW_MS, TREND_WINDOW_MS, Trend

if TYPE_CHECKING:
    from .totals import QueueLag

FOREVER: Final = 1 << 62
AT_ONCE: Final = 0
"""It has to be computed anew with the next look."""
_at: Final = itemgetter(0)


class Validity:
    """The validity of what was computed at one time (ms), with the trend of that time.

    ``changes`` and ``ends`` are the observations, the present one included.
    """

    def __init__(self, trend: Trend, as_of: int, *, again: bool) -> None:
        """``again``: there was an observation at this time before."""
        self._again = again
        self._known_from = trend.known_from
        self.as_of = as_of

    def of_count(self, count: int | None, changes: Sequence[Change]) -> int:
        """The first time (ms) at which what was counted from changes (:meth:`.Trend.read`) may
        differ: when the first of them leaves the five minutes. What is 0 stays 0."""
        known_from = self._known_from
        if count is None or known_from is None:
            return AT_ONCE
        if not count:
            return FOREVER
        first = bisect_right(changes, known_from, key=_at)
        return changes[first][0] + RATE_WINDOW_MS if first < len(changes) else FOREVER

    def of_status(self, row: QueueLag, changes: Sequence[Change], ends: Sequence[Change]) -> int:
        """The first time (ms) at which the status may differ."""
        committed = row.unread.committed_offset
        if committed is None or committed >= row.unread.max_offset:
            return FOREVER
        as_of = self.as_of
        oldest = row.oldest_unread_timestamp or 0
        if as_of - oldest < PATIENCE_MS:
            return oldest + PATIENCE_MS
        until = max(changes[-1][0], oldest) + PATIENCE_MS
        if as_of >= until:
            return FOREVER
        if self._again:
            return AT_ONCE  # of two observations at one time the later one counts from now on
        since = as_of - TREND_WINDOW_MS
        seen = _first_observed(changes, ends, since)
        if seen is not None and as_of < seen + PATIENCE_MS:
            until = min(until, seen + PATIENCE_MS)
        for each in (changes, ends):
            if each[-1][0] > since:
                leaves = next(at for at, _ in each if at > since)
                until = min(until, leaves + TREND_WINDOW_MS)
        return until


def _first_observed(changes: Sequence[Change], ends: Sequence[Change], since: int) -> int | None:
    """The time of the first of :func:`.trend.observations`; None without any."""
    if ends[0][0] <= since:
        end = next(end for at, end in reversed(ends) if at <= since)
        if end is not None:
            return next((at for at, _ in reversed(changes) if at <= since), since)
    return next((at for at, end in ends if at > since and end is not None), None)
