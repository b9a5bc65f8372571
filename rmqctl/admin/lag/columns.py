"""The rows of ``lag show`` from look to look, kept as columns.

Of most groups only the age and the rates are others in the next look, as these depend on the time.
So groups that changed are added up again, the columns of ages and rates are computed as a whole,
and the rows are put together from all columns at once.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from analytics.lag.counts import CountedLags, GroupCounts, Rates, Read
from analytics.lag.health import worst
from analytics.lag.kept import changed
from analytics.lag.totals import QueueLag, Totals, add_up, total_rate

from .rows import LagRow
from .unknown import unknown_sentence

_row: Final = partial(tuple.__new__, LagRow)
_FIELDS: Final = LagRow._fields
_UNKNOWN: Final = 1 << 62
_HALF: Final = 0.0005
"""Of the last digit of a rate."""
_CLOSE: Final = 1e-9


class LagColumns:
    """The columns of the last look of a :class:`analytics.lag.repeated_look.RepeatedLook`."""

    def __init__(self) -> None:
        self._counts: Sequence[GroupCounts] = ()
        self._columns: dict[str, list[Any]] = {}
        self._read: list[Sequence[int] | None] = []
        """What was read in queues, but 0; None if that is unknown in some of them."""
        self._sums: list[int | None] = []
        """The sum of that."""
        self._since: list[int] = []
        """Since when no queue has been read; _UNKNOWN if one was, or if that is unknown."""
        self._places: dict[tuple[str, tuple[int, ...]], int] = {}
        """Topics, with the queues that a group reads, and their numbers."""
        self._place: list[int] = []
        self._unknown: list[str | None] = []

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
            (
                lag
                if not lag
                else None
                if not rate_out or rate_in is None or rate_out <= rate_in
                else round(lag / (rate_out - rate_in) * 1000)  # as drain_ms, without a call
            )
            for lag, rate_in, rate_out in zip(
                columns["lag"], columns["rate_in"], columns["rate_out"], strict=True
            )
        ]
        return list(map(_row, zip(*(columns[name] for name in _FIELDS), strict=True)))

    def lags(self, lags: CountedLags) -> Sequence[int | None]:
        """The lag of each group in its topic."""
        return list(self._updated(lags.counts)["lag"])

    def unknown(self, lags: CountedLags) -> list[str]:
        """The sentences about unknown values, as :func:`.unknown.unknown_sentences` gives them."""
        self._updated(lags.counts)
        return [sentence for sentence in self._unknown if sentence is not None]

    def _updated(self, counts: Sequence[GroupCounts]) -> dict[str, list[Any]]:
        if len(counts) != len(self._counts) or not self._columns:
            size = len(counts)
            self._columns = {name: [None] * size for name in _FIELDS}
            self._read, self._sums = [None] * size, [None] * size
            self._since, self._place = [0] * size, [0] * size
            self._unknown = [None] * size
            self._counts = ()
        if counts is not self._counts:
            before, totals = self._counts, _TotalsOf()
            for number in changed(before, counts):
                one = counts[number]
                known = before[number] if before else None
                if known is None or not _same_but_states(known, one):
                    self._put_sums(number, one, totals.of(one.queues))
                elif one.queues is not known.queues:
                    states = {queue.status for queue in one.queues}
                    self._columns["status"][number] = worst(states)
                    if one[-4:] == known[-4:]:  # what was read, retries, dead letters, members
                        continue
                self._put(number, one)
            self._counts = counts
        return self._columns

    def _put_sums(self, number: int, one: GroupCounts, total: Totals) -> None:
        """Note what only the queues decide."""
        columns = self._columns
        columns["group"][number] = one.group
        columns["topic"][number] = one.topic
        columns["queues"][number] = total.queues
        columns["lag"][number] = total.lag
        columns["lag_bytes"][number] = total.lag_bytes
        columns["oldest_unread_timestamp"][number] = total.oldest_unread_timestamp
        columns["status"][number] = total.status
        columns["worst_queue_id"][number] = total.worst_queue_id
        columns["skew"][number] = total.skew
        columns["lost"][number] = total.lost
        columns["risk_timestamp"][number] = total.risk_timestamp
        columns["unknown_queues"][number] = total.unknown_queues
        none_unknown = total.lag is not None and not total.unknown_queues
        self._unknown[number] = None if none_unknown else unknown_sentence(one)
        place = one.topic, one.queue_ids
        self._place[number] = self._places.setdefault(place, len(self._places))

    def _put(self, number: int, one: GroupCounts) -> None:
        """Note the rest."""
        columns = self._columns
        columns["retry"][number] = one.retry
        columns["dlq"][number] = one.dlq
        known = one.read
        if columns["lag"][number] is None or columns["unknown_queues"][number]:
            known = [
                read
                for queue, read in zip(one.queues, one.read, strict=True)
                if queue.unread.lag is not None
            ]
        self._put_read(number, known)

    def _put_read(self, number: int, known: Sequence[Read]) -> None:
        """Note what was read in the queues whose lag is known."""
        counts, sinces = zip(*known, strict=True) if known else ((None,), ())
        unknown = None in counts
        self._read[number] = read = None if unknown else [*filter(None, counts)]
        self._sums[number] = None if read is None else sum(read)
        self._since[number] = _UNKNOWN if read or unknown else max(sinces)

    def _rates_in(self, rates: Rates) -> list[float | None]:
        of_place: list[float | None] = []
        for topic, queue_ids in self._places:
            known = rates.rate_in.get(topic, {})
            of_place.append(total_rate([known.get(queue_id) for queue_id in queue_ids]))
        return [of_place[number] for number in self._place]

    def _rates_out(self, rates: Rates) -> list[float | None]:
        if rates.span_s is None:
            start = rates.start
            return [0.0 if since <= start else None for since in self._since]
        rate_of = _RateOf(rates.span_s)
        found = [None if total is None else rate_of[total] for total in self._sums]
        if rate_of.doubtful:
            for number, total in enumerate(self._sums):
                if total in rate_of.doubtful:
                    read = self._read[number] or ()
                    found[number] = total_rate([count / rates.span_s for count in read])
        return found


class _TotalsOf:
    """Totals of queues, once for those that several groups share: these have read all. The queues
    live as long as it does."""

    def __init__(self) -> None:
        self._known: dict[int, Totals] = {}

    def of(self, queues: Sequence[QueueLag]) -> Totals:
        """See :func:`analytics.lag.totals.add_up`."""
        found = self._known.get(id(queues))
        if found is None:
            found = self._known[id(queues)] = add_up(queues)
        return found


def _same_but_states(before: GroupCounts, now: GroupCounts) -> bool:
    """Whether it is the same group and topic, and nothing of the queues differs but how they are
    judged, as after a minute in which nothing moved."""
    if before[:2] != now[:2]:
        return False
    queues, others = before.queues, now.queues
    if queues is others:
        return True
    if len(queues) != len(others):
        return False
    for one, other in zip(queues, others, strict=True):
        if one is not other and (one[1] != other[1] or one[:6] != other[:6] or one[7] != other[7]):
            return False
    return True


class _RateOf(dict[int, float]):
    """Rates of what was read in all queues: many groups have the same sum."""

    def __init__(self, span_s: float) -> None:
        super().__init__()
        self._span_s = span_s
        self.doubtful: set[int] = set()
        """Sums whose rate may be rounded in another way than the sum of the queues' rates."""

    def __missing__(self, total: int) -> float:
        exact = total / self._span_s
        found = self[total] = round(exact, 3)
        if abs(abs(exact - found) - _HALF) < _CLOSE:
            self.doubtful.add(total)
        return found
