"""How fast queues grow and are read, and the series of observations for health.

Earlier observations are (time in ms, offset) pairs, one for each offset with its first time; None
where there was no offset. ``watched`` are the times of continuous observation: the time of an event
between two of them is not known to the minute.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from storage import native
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

from .few_units import few_unit_bytes
from .health import Observation

if TYPE_CHECKING:
    from storage.readonly import StoreView

TREND_WINDOW_MS: Final = 600_000
"""The time span of health: ten minutes."""
LEAST_SPAN_MS: Final = 15_000
"""Consumers write their progress each 5 s: a rate over a few seconds is meaningless."""

_at: Final = itemgetter(0)
_value: Final = itemgetter(1)

Changes = Sequence[tuple[int, int | None]]
Span = tuple[int, int]
"""Begin and end, ms."""
RATE_WINDOW_MS: Final = 300_000
"""The time span of ``rate_in`` and ``rate_out``: five minutes."""

Counted = tuple[int, int, int]
"""What :meth:`Trend.read` gave, the time of the last change then, and of the first one that
counted."""
First = tuple[int, tuple[int, int] | None]
"""The offset of the first message that counts, with its log offset and size, None where these are
not known; the end of the queue without any."""


class StoredSince:
    """Counts messages stored at ``since_ms`` or later, from the log alone.

    No record is read twice and few are read at all: store times never go back along the log, so the
    time of one record bounds all before it and all after it, whatever their queues. For many queues
    of one store; for one thread.
    """

    def __init__(self, view: StoreView, since_ms: int) -> None:
        self._view = view
        self._since = since_ms
        self._per_file = view.config.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
        self._before = -1  # records up to here are older
        self._after = 1 << 63  # records from here on are not

    def count(self, topic: str, queue_id: int, min_offset: int, max_offset: int) -> int | None:
        """Count the queue's messages between the offsets.

        None if units or records on the way cannot be read.
        """
        first = self.first(topic, queue_id, min_offset, max_offset)
        return None if first is None else max_offset - first[0]

    def first(self, topic: str, queue_id: int, min_offset: int, max_offset: int) -> First | None:
        """The first message that counts; None as above."""
        within = min_offset, max_offset
        units = None
        if min_offset < max_offset:  # mostly there are few: all are read at once
            units = few_unit_bytes(self._view, topic, queue_id, min_offset, within)
        if units is not None:
            number = self._bisect(units)
            if number is None:
                return None
            first = min_offset + number
            return first, _place_in(units, number) if first < max_offset else None
        found = self._first(topic, queue_id, min_offset, max_offset)
        if found is None:
            return None
        return found, self.place(topic, queue_id, found) if found < max_offset else None

    def _first(self, topic: str, queue_id: int, min_offset: int, max_offset: int) -> int | None:
        end = max_offset
        if end > min_offset and self._is_last_older(topic, queue_id, end):
            return end  # mostly: a unit is read, and not a file of them
        while end > min_offset:
            first = max(min_offset, (end - 1) // self._per_file * self._per_file)
            found = self._search(topic, queue_id, first, end)
            if found is None or found > first:
                return found
            end = first
        return min_offset

    def place(self, topic: str, queue_id: int, offset: int) -> tuple[int, int] | None:
        """Log offset and size of a message; None if its unit cannot be read."""
        within = offset, offset + 1
        units = self._view.unit_view(topic, queue_id, *within, within)
        return None if units is None else _place_in(units, 0)

    def counts(self, log_offset: int, size: int) -> bool:
        """Whether the message at a log offset counts; no if that is unknown."""
        if log_offset >= self._after:
            return True
        return log_offset > self._before and self._is_older(log_offset, size) is False

    def _is_last_older(self, topic: str, queue_id: int, end: int) -> bool:
        """Whether the last message is surely older, and so are all."""
        place = self.place(topic, queue_id, end - 1)
        if place is None or place[1] == PRE_BLANK_SIZE:
            return False
        if self._before < place[0] < self._after:
            return self._is_older(*place) is True
        return place[0] <= self._before

    def _search(self, topic: str, queue_id: int, first: int, end: int) -> int | None:
        """Find the first message of [first, end) that is not older; ``end`` without any."""
        pieces: list[tuple[int, memoryview]] = []
        at = first
        while at < end:
            units = self._view.unit_view(topic, queue_id, at, end, (first, end))
            if units is None:
                return None
            pieces.append((at, units))
            at += len(units) // CQ_STORE_UNIT_SIZE
        for at, units in reversed(pieces):
            number = self._bisect(units)
            if number is None or number:
                return None if number is None else at + number
        return first

    def _bisect(self, units: memoryview) -> int | None:
        """Count the units whose records are older."""
        low, high = 0, len(units) // CQ_STORE_UNIT_SIZE
        probes = [0, high - 1]  # mostly all are older, or none
        while low < high:
            probe = probes.pop() if probes else (low + high) // 2
            if not low <= probe < high:
                continue
            log_offset, size, _ = CQ_STORE_UNIT.unpack_from(units, probe * CQ_STORE_UNIT_SIZE)
            older: bool | None = log_offset <= self._before or size == PRE_BLANK_SIZE
            if not older and log_offset < self._after:
                older = self._is_older(log_offset, size)
            if older is None:
                return None
            if older:
                low = probe + 1
            else:
                high = probe
        return low

    def _is_older(self, log_offset: int, size: int) -> bool | None:
        """Read a record, and keep the bound that it gives for all others."""
        stored = self._view.record_timestamp(log_offset, size)
        if stored is None:
            return None
        if stored < self._since:
            self._before = log_offset
            return True
        self._after = log_offset
        return False


def _place_in(units: memoryview, number: int) -> tuple[int, int]:
    """Log offset and size of the message that one of these units names."""
    log_offset, size, _ = CQ_STORE_UNIT.unpack_from(units, number * CQ_STORE_UNIT_SIZE)
    return log_offset, size


class Trend:
    """Messages in and out over the last five minutes, or as far back as is known.

    Both rates (messages a second) are of the same time, so they may be compared. For any
    number of queues.
    """

    def __init__(self, watched: Iterable[Span], now_ms: int) -> None:
        self.start = now_ms - RATE_WINDOW_MS
        """The beginning of the five minutes."""
        self.watched_since = next((begin for begin, end in watched if end >= self.start), None)
        """Since when it is known, also before the five minutes; None if it is not known."""
        self.known_from = (
            None if self.watched_since is None else max(self.watched_since, self.start)
        )
        self.span_s: float | None = None
        """The length of the known part; None if it is too short for a rate."""
        if self.known_from is not None and now_ms - self.known_from >= LEAST_SPAN_MS:
            self.span_s = (now_ms - self.known_from) / 1000

    def rate_in(self, ends: Changes, max_offset: int) -> float | None:
        """How fast a queue grew whose end is ``max_offset`` now; None if it was not observed.

        The log has the rate in that case (:class:`.rates.StoredSince`).
        """
        span_s = self.span_s
        count = None if span_s is None else self.arrived(ends, max_offset)
        return None if span_s is None or count is None else count / span_s

    def arrived(self, ends: Changes, max_offset: int) -> int | None:
        """The messages that were stored in the known part; None if it was not observed."""
        known_from = self.known_from
        if known_from is None:
            return None
        held = next((end for at, end in reversed(ends) if at <= known_from), None)
        return None if held is None else max(0, max_offset - held)

    def rate_out(self, committed: Changes, offset: int | None) -> float | None:
        """How fast a queue was read whose progress is ``offset`` now.

        Progress that goes back is no reading: only steps forward count. None without progress, or
        if it was not observed in that time.
        """
        if offset is None or not committed:
            return None
        if committed[-1][1] == offset and committed[-1][0] <= self.start:
            return 0.0
        span_s = self.span_s
        count = None if span_s is None else self.read(committed, offset)
        return None if span_s is None or count is None else count / span_s

    def rates_out(
        self, changes: list[Changes], offsets: list[int | None]
    ) -> Sequence[float | None]:
        """:meth:`rate_out` of many queues."""
        return rates_out(changes, offsets, self.start, self.known_from, self.span_s, self.rate_out)

    def read(self, committed: Changes, offset: int) -> int | None:
        """The messages that were read in the known part; None if no part is known."""
        if self.known_from is None:
            return None
        read, later = 0, offset
        for at, before in reversed(committed):
            if before is not None:
                if later > before:
                    read += later - before
                later = before
            if at <= self.known_from:
                break
        return read

    def read_again(self, committed: Changes, offset: int, earlier: Counted) -> int | None:
        """:meth:`read` from an earlier result, in few steps; None where it has to count.

        A queue that moves all the time has hundreds of changes; of these one comes, and one leaves
        the time that counts.
        """
        read, since, first = earlier
        known_from = self.known_from
        if known_from is None or len(committed) < 2 or committed[-1][1] != offset:
            return None
        last_at = committed[-1][0]
        at, before = committed[-2]
        if last_at != since:
            if at != since or before is None:
                return None
            if offset > before:
                read += offset - before
        elif at == since:  # of two changes at one time one may be counted
            return None
        if first > known_from:
            return read
        begin = bisect_left(committed, first, key=_at)
        if not begin or committed[begin][0] != first:
            return None
        end = bisect_right(committed, known_from, begin, key=_at)
        for (_, one), (_, other) in pairwise(committed[begin - 1 : end]):
            if one is None or other is None:
                return None
            if other > one:
                read -= other - one
        return read


def _rates_out(
    changes: list[Changes],
    offsets: list[int | None],
    _start: int,
    _known_from: int | None,
    _span_s: float | None,
    one: Callable[[Changes, int | None], float | None],
    /,
) -> list[float | None]:
    return [*map(one, changes, offsets)]


rates_out: Final = native.form("rates_out", _rates_out)


def unchanged_since(committed: Changes, offset: int | None, now_ms: int) -> int:
    """Since when (ms) the present offset was observed; if it never was, that is now."""
    return committed[-1][0] if committed and committed[-1][1] == offset else now_ms


def observations(committed: Changes, ends: Changes, now_ms: int) -> list[Observation]:
    """The observations of the last ten minutes, one for each change.

    The first one has the offset at the beginning of that time, if it is known.
    """
    if not committed and not ends:
        return []
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


def decisive_observations(
    committed: Changes, ends: Changes, now_ms: int, offset: int | None, end: int
) -> list[Observation]:
    """The observations, or one of them from which :func:`.health.judge` finds the same health of a
    queue whose progress is ``offset`` now, and its end ``end``.

    Mostly the newest ones decide. There may be hundreds of a queue, and all queues may have moved.
    """
    if not committed or not ends or offset is None or None in map(_value, ends):
        return observations(committed, ends, now_ms)
    last_end = ends[-1][1]
    assert last_end is not None
    start = max(now_ms - TREND_WINDOW_MS, ends[0][0])
    later: int | None = None
    for at, before in reversed(committed):
        if at != later and before is not None and before > offset:
            return [Observation(at, before, last_end)]  # it went back
        if at <= start:
            break
        later = at  # of two at one time the last one counts
    before = committed[-1][1]
    if before is not None and before <= last_end and end - offset < last_end - before:
        return [Observation(committed[-1][0], before, last_end)]  # it came nearer
    return observations(committed, ends, now_ms)


def _split(changes: Changes, start: int) -> tuple[tuple[int, int | None], Changes]:
    """Split changes into the value at ``start``, with its time, and the later ones."""
    first = len(changes)
    while first and changes[first - 1][0] > start:
        first -= 1
    return changes[first - 1] if first else (start, None), changes[first:]
