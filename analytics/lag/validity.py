"""Until when the state of a group in a queue holds if nothing but the time changes. Pure.

It follows :mod:`.trend` and :func:`.health.judge`: which of their answers depend on the time, and
when an observation leaves the time that they look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from storage.configs.offset_samples import Change

from .health import PATIENCE_MS
from .trend import RATE_WINDOW_MS, TREND_WINDOW_MS, Trend, observations

if TYPE_CHECKING:
    from .totals import QueueLag

FOREVER: Final = 1 << 62
AT_ONCE: Final = 0
"""It has to be computed anew with the next look."""


class Validity:
    """The validity of what was computed at one time (ms), with the trend of that time."""

    def __init__(self, trend: Trend, as_of: int, *, again: bool) -> None:
        """``again``: there was an observation at this time before."""
        self._again = again
        self._trend = trend
        self._as_of = as_of
        self._grows = trend.known_from is not None and trend.known_from > trend.start

    def until(self, row: QueueLag, changes: Sequence[Change], ends: Sequence[Change]) -> int:
        """The first time (ms) at which ``row`` may differ; ``changes`` and ``ends`` are the
        observations, the present one included."""
        committed = row.unread.committed_offset
        if committed is None:
            return FOREVER
        if not changes or changes[-1][1] != committed:
            return AT_ONCE
        rate = self._rate_out(row.rate_out, changes)
        high = row.unread.max_offset
        if committed >= high or not rate:
            return rate
        return min(rate, self._status(row, changes, ends))

    def _rate_out(self, rate: float | None, changes: Sequence[Change]) -> int:
        trend = self._trend
        last = changes[-1][0]
        if rate is None:
            # The rate is 0 from then on. A trend that becomes known is another matter.
            return last + RATE_WINDOW_MS if trend.known_from is None else AT_ONCE
        if not rate:
            return FOREVER
        if self._grows or trend.known_from is None:
            return AT_ONCE  # the same messages in a longer time
        within = [at for at, _ in changes if at > trend.known_from]
        return within[0] + RATE_WINDOW_MS if within else FOREVER

    def _status(self, row: QueueLag, changes: Sequence[Change], ends: Sequence[Change]) -> int:
        as_of = self._as_of
        oldest = row.oldest_unread_timestamp or 0
        if as_of - oldest < PATIENCE_MS:
            return oldest + PATIENCE_MS
        stands = max(changes[-1][0], oldest) + PATIENCE_MS
        if as_of >= stands:
            return FOREVER
        if self._again:
            return AT_ONCE  # of two observations at one time the later one counts from now on
        until = stands
        seen = observations(changes, ends, as_of)
        if seen and as_of < seen[0].at + PATIENCE_MS:
            until = min(until, seen[0].at + PATIENCE_MS)
        for each in (changes, ends):
            leaves = next((at for at, _ in each if at > as_of - TREND_WINDOW_MS), None)
            if leaves is not None:
                until = min(until, leaves + TREND_WINDOW_MS)
        return until
