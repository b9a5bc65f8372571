"""The rows of ``lag show`` from look to look, kept as columns.

Of most groups only the age and the rates are others in the next look, as these depend on the time.
So groups that changed are added up again, the columns of ages and rates are computed as a whole,
and the rows are put together from all columns at once.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from analytics.lag.counts import CountedLags, GroupCounts, Rates
from analytics.lag.kept import changed
from analytics.lag.totals import add_up, drain_ms

from .rows import LagRow

_row: Final = partial(tuple.__new__, LagRow)
_FIELDS: Final = LagRow._fields
_UNKNOWN: Final = 1 << 62


class LagColumns:
    """The columns of the last look of a :class:`analytics.lag.repeated_look.RepeatedLook`."""

    def __init__(self) -> None:
        self._counts: Sequence[GroupCounts] = ()
        self._columns: dict[str, list[Any]] = {}
        self._read: list[tuple[int, ...] | None] = []
        """What was read in queues, but 0; None if that is unknown in some of them."""
        self._since: list[int] = []
        """Since when no queue has been read; _UNKNOWN if one was, or if that is unknown."""
        self._places: dict[tuple[str, tuple[int, ...]], int] = {}
        """Topics, with the queues that a group reads, and their numbers."""
        self._place: list[int] = []

    def rows(self, lags: CountedLags, as_of: int) -> list[LagRow]:
        """The rows of a look, as :func:`.tables.group_rows` gives them."""
        columns = self._updated(lags.counts)
        columns["oldest_unread_age_ms"] = [
            None if oldest is None else (as_of - oldest if oldest < as_of else 0)
            for oldest in columns["oldest_unread_timestamp"]
        ]
        columns["rate_in"] = self._rates_in(lags.rates)
        columns["rate_out"] = self._rates_out(lags.rates)
        columns["drain_ms"] = [
            lag if not lag else drain_ms(lag, rate_in, rate_out) if rate_out else None
            for lag, rate_in, rate_out in zip(
                columns["lag"], columns["rate_in"], columns["rate_out"], strict=True
            )
        ]
        return list(map(_row, zip(*(columns[name] for name in _FIELDS), strict=True)))

    def lags(self, lags: CountedLags) -> Sequence[int | None]:
        """The lag of each group in its topic."""
        return list(self._updated(lags.counts)["lag"])

    def _updated(self, counts: Sequence[GroupCounts]) -> dict[str, list[Any]]:
        if len(counts) != len(self._counts) or not self._columns:
            size = len(counts)
            self._columns = {name: [None] * size for name in _FIELDS}
            self._read, self._since, self._place = [None] * size, [0] * size, [0] * size
            self._counts = ()
        if counts is not self._counts:
            for number in changed(self._counts, counts):
                self._put(number, counts[number])
            self._counts = counts
        return self._columns

    def _put(self, number: int, one: GroupCounts) -> None:
        total = add_up(one.queues)
        columns = self._columns
        columns["group"][number] = one.group
        columns["topic"][number] = one.topic
        columns["queues"][number] = total.queues
        columns["lag"][number] = total.lag
        columns["lag_bytes"][number] = total.lag_bytes
        columns["oldest_unread_timestamp"][number] = total.oldest_unread_timestamp
        columns["status"][number] = total.status
        columns["retry"][number] = one.retry
        columns["dlq"][number] = one.dlq
        columns["worst_queue_id"][number] = total.worst_queue_id
        columns["skew"][number] = total.skew
        columns["lost"][number] = total.lost
        columns["risk_timestamp"][number] = total.risk_timestamp
        columns["unknown_queues"][number] = total.unknown_queues
        place = one.topic, one.queue_ids
        self._place[number] = self._places.setdefault(place, len(self._places))
        self._put_read(number, one)

    def _put_read(self, number: int, one: GroupCounts) -> None:
        """Note what was read in the queues whose lag is known, as only these are added up."""
        known = [
            read
            for queue, read in zip(one.queues, one.read, strict=True)
            if queue.unread.lag is not None
        ]
        counts = [count for count, _ in known if count is not None]
        unknown = not known or len(counts) < len(known)
        self._read[number] = None if unknown else tuple(count for count in counts if count)
        stands = not unknown and not any(counts)
        self._since[number] = max(since for _, since in known) if stands else _UNKNOWN

    def _rates_in(self, rates: Rates) -> list[float | None]:
        of_place: list[float | None] = []
        for topic, queue_ids in self._places:
            known = rates.rate_in.get(topic, {})
            total: float | None = 0.0
            for queue_id in queue_ids:
                rate = known.get(queue_id)
                total = None if total is None or rate is None else total + rate
            of_place.append(None if total is None else round(total, 3))
        return [of_place[number] for number in self._place]

    def _rates_out(self, rates: Rates) -> list[float | None]:
        if rates.span_s is None:
            start = rates.start
            return [0.0 if since <= start else None for since in self._since]
        sums = _Sums(rates.span_s)
        return [None if read is None else sums[read] for read in self._read]


class _Sums(dict[tuple[int, ...], float]):
    """Rates of counts, added up: many groups have the same counts."""

    def __init__(self, span_s: float) -> None:
        super().__init__()
        self._span_s = span_s

    def __missing__(self, counts: tuple[int, ...]) -> float:
        total = 0.0
        for count in counts:
            total += count / self._span_s
        found = self[counts] = round(total, 3)
        return found
