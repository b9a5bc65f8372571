"""Trends from earlier observations of a queue: how fast it is read, and the series for health.

Earlier observations are (time in ms, offset) pairs, one for each offset with its first time; None
where there was no offset. ``watched`` are the times of continuous observation: the time of an event
between two of them is not known to the minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .health import Observation
from .rates import RATE_WINDOW_MS

TREND_WINDOW_MS: Final = 600_000
"""The time span of health: ten minutes."""
LEAST_SPAN_MS: Final = 15_000
"""Consumers write their progress each 5 s: a rate over a few seconds is meaningless."""

Changes = Sequence[tuple[int, int | None]]
Span = tuple[int, int]
"""Begin and end, ms."""


class Trend:
    """Messages in and out over the last five minutes, or as far back as is known.

    Both rates (messages a second) are of the same time, so they may be compared. For any
    number of queues.
    """

    def __init__(self, watched: Iterable[Span], now_ms: int) -> None:
        self._start = now_ms - RATE_WINDOW_MS
        self._known_from = next(
            (max(begin, self._start) for begin, end in watched if end >= self._start), None
        )
        if self._known_from is not None and now_ms - self._known_from < LEAST_SPAN_MS:
            self._known_from = None
        self._span_s = (now_ms - (self._known_from or 0)) / 1000

    def rate_in(self, ends: Changes, max_offset: int) -> float | None:
        """How fast a queue grew whose end is ``max_offset`` now; None if it was not observed.

        The log has the rate in that case (:class:`.rates.StoredSince`).
        """
        known_from = self._known_from
        if known_from is None:
            return None
        held = next((end for at, end in reversed(ends) if at <= known_from), None)
        return None if held is None else max(0, max_offset - held) / self._span_s

    def rate_out(self, committed: Changes, offset: int | None) -> float | None:
        """How fast a queue was read whose progress is ``offset`` now.

        Progress that goes back is no reading: only steps forward count. None without progress, or
        if it was not observed in that time.
        """
        if offset is None or not committed:
            return None
        if committed[-1][1] == offset and committed[-1][0] <= self._start:
            return 0.0
        known_from = self._known_from
        if known_from is None:
            return None
        read, later = 0, offset
        for at, before in reversed(committed):
            if before is not None:
                read += max(0, later - before)
                later = before
            if at <= known_from:
                break
        return read / self._span_s


def seen_since(committed: Changes, offset: int | None, now_ms: int) -> int:
    """Since when (ms) the present offset was observed; if it never was, that is now."""
    return committed[-1][0] if committed and committed[-1][1] == offset else now_ms


def looks(committed: Changes, ends: Changes, now_ms: int) -> list[Observation]:
    """The observations of the last ten minutes, one for each change.

    The first one has the offset at the beginning of that time, if it is known.
    """
    start = now_ms - TREND_WINDOW_MS
    (since, offset), moves = _split(committed, start)
    (_, end), grown = _split(ends, start)
    found = [] if end is None else [Observation(since, offset, end)]
    offsets, max_offsets = dict(moves), dict(grown)
    for at in sorted({*offsets, *max_offsets}):
        offset, end = offsets.get(at, offset), max_offsets.get(at, end)
        if end is not None:
            found.append(Observation(at, offset, end))
    return found


def _split(changes: Changes, start: int) -> tuple[tuple[int, int | None], Changes]:
    """Split changes into the value at ``start``, with its time, and the later ones."""
    first = len(changes)
    while first and changes[first - 1][0] > start:
        first -= 1
    return changes[first - 1] if first else (start, None), changes[first:]
