"""What earlier looks tell of a queue: how fast it is read, and the series that health is judged by.

Earlier looks are (time in ms, offset) pairs, one for each offset with the time when it was first
seen; None where there was none. ``watched`` are the times in which somebody kept looking: what
happened between two of them is not known to the minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .health import Look
from .rates import RATE_WINDOW_MS

TREND_WINDOW_MS: Final = 600_000
"""How far back health looks: ten minutes."""
LEAST_SPAN_MS: Final = 15_000
"""Consumers write their progress each 5 s: a rate over less than some of them says nothing."""

Changes = Sequence[tuple[int, int | None]]
Span = tuple[int, int]
"""Begin and end, ms."""


class Rates(NamedTuple):
    """Messages a second; None where that is not known."""

    rate_in: float | None
    rate_out: float | None


_UNKNOWN: Final = Rates(None, None)


def rates(committed: Changes, ends: Changes, watched: Iterable[Span], now: Look) -> Rates:
    """What came in and was read, over the last five minutes or as far back as is known.

    Both over the same time, so that they may be compared. Progress that goes back is no reading:
    only steps forward count. Both are None without progress, or if nobody looked in that time;
    ``rate_in`` alone where it can be told by the log as well (:class:`.rates.StoredSince`).
    """
    if now.committed_offset is None or not committed:
        return _UNKNOWN
    start = now.at - RATE_WINDOW_MS
    last_at, last = committed[-1]
    if last == now.committed_offset and last_at <= start:
        return Rates(None, 0.0)
    known_from = next((max(begin, start) for begin, end in watched if end >= start), None)
    if known_from is None or now.at - known_from < LEAST_SPAN_MS:
        return _UNKNOWN
    span_s = (now.at - known_from) / 1000
    (_, held), later = _split(committed, known_from)
    offsets = [held, *(offset for _, offset in later), now.committed_offset]
    known = [offset for offset in offsets if offset is not None]
    read = sum(max(0, after - before) for before, after in pairwise(known))
    end = _split(ends, known_from)[0][1]
    grown = None if end is None else round(max(0, now.max_offset - end) / span_s, 3)
    return Rates(grown, round(read / span_s, 3))


def looks(committed: Changes, ends: Changes, now: Look) -> list[Look]:
    """What was seen in the last ten minutes, one look for each change, the present one last.

    The first one says where the queue was when the time began, if that is known.
    """
    start = now.at - TREND_WINDOW_MS
    (since, offset), moves = _split(committed, start)
    (_, end), grown = _split(ends, start)
    found = [] if end is None else [Look(since, offset, end)]
    offsets, max_offsets = dict(moves), dict(grown)
    for at in sorted({*offsets, *max_offsets}):
        offset, end = offsets.get(at, offset), max_offsets.get(at, end)
        if end is not None:
            found.append(Look(at, offset, end))
    return [*found, now]


def _split(changes: Changes, start: int) -> tuple[tuple[int, int | None], Changes]:
    """Part what held at ``start``, with its time, from what was seen after it."""
    first = len(changes)
    while first and changes[first - 1][0] > start:
        first -= 1
    return changes[first - 1] if first else (start, None), changes[first:]
