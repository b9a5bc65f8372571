"""Counts and sizes of the messages of a search, in total or by a property."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.scan_progress import OnProgress, no_progress

from .counting import Counter
from .search.run import Search
from .stats_rows import MessageStats, StatsRow, TimeStatsRow, TimeValueStatsRow
from .stats_values import SPANS, check, pair_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from storage.readonly import StoreView

    from .search.query import Query

_SUMMARY: Final = ("topic", "tag", "key", "host")


class Stats:
    """What was counted. ``damaged`` is the number of records that could not be read."""

    def __init__(self, counter: Counter, by: str | None, damaged: int) -> None:
        self._counter = counter
        self._by = by
        self.damaged = damaged

    def summary(self) -> MessageStats:
        """One row for all messages; its lists are empty if the messages were counted by WHAT."""
        return self._counter.summary(self.damaged)

    def rows(self) -> Iterator[Any]:
        """Rows of ``stats_row_type(by)``: the most frequent value first, or in order of time."""
        if self._by is None:
            return iter((self.summary(),))
        if pair_of(self._by):
            return self._counter.time_value_rows(self._by)
        if self._by in SPANS:
            return self._counter.time_rows(self._by)
        return self._counter.rows(self._by)


def stats(
    view: "StoreView",
    query: "Query",
    by: str | None = None,
    *,
    zone: "tzinfo | None" = None,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
) -> Stats:
    """Count the messages of a search, in total or by a property.

    ``by`` is topic, queue, tag, key, host, attempts, minute, hour, day, json.PATH, property.NAME,
    or a time span with another, as ``hour,tag``. Spans begin in ``zone``, default: the local one.
    ValueError for another name. For ``jobs`` see :class:`Search`.
    """
    if by is not None:
        check(by)
    counter = Counter(_SUMMARY if by is None else (by,), zone)
    damaged = Search(view, query, jobs=jobs, on_progress=on_progress).tally(counter)
    return Stats(counter, by, damaged)


def stats_row_type(by: str | None) -> type:
    """The type of the rows of ``by``; ValueError for an unknown name."""
    if by is None:
        return MessageStats
    check(by)
    return TimeValueStatsRow if pair_of(by) else TimeStatsRow if by in SPANS else StatsRow
