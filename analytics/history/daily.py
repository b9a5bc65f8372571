"""The lag day by day, out of kept reports: what the page draws as a trend.

Of each day (UTC) and store the last run counts. A day without a run of a store lacks that store,
and says how many it has; a day without any run is not there. Unknown is None and enters no sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.lag.totals import sum_or_unknown
from analytics.report.copies import without_copies
from analytics.report.stores import StoreRef

from .reading import UNREADABLE, all_runs, rows_of

if TYPE_CHECKING:
    from analytics.lag.selection import Choice
    from analytics.report.amounts import Row

    from .tables import Kept

DAY_MS: Final = 86_400_000
MOST_DAYS: Final = 400


class Days(NamedTuple):
    """The days of a history, the first one first."""

    days: list[Row]
    """day_timestamp, stores, groups, lag, lag_bytes, oldest_unread_age_ms, unknown_queues"""
    groups: list[Row]
    """The same for each day, group and topic, without the number of groups."""
    warnings: list[str]
    """A sentence for each run that could not be read."""


class _Run(NamedTuple):
    """A store's run, with what tells copies of its log."""

    kept: Kept
    ref: StoreRef
    log: tuple[int, int]
    marks: frozenset[str]


def days_of(folders: Sequence[str], choice: Choice, until: int) -> Days:
    """The days of kept reports up to a moment (ms), at most the last 400 days.

    Raises KeptFileError, NoArrowError and OSError.
    """
    last: dict[tuple[int, str, int], Kept] = {}
    for folder in folders:
        for kept in all_runs(str(Path(folder))):
            day = kept.as_of // DAY_MS
            if kept.as_of > until or day <= until // DAY_MS - MOST_DAYS:
                continue
            place = day, kept.broker, kept.number
            if place not in last or last[place].as_of < kept.as_of:
                last[place] = kept
    by_day: dict[int, list[Kept]] = defaultdict(list)
    for (day, _, _), kept in sorted(last.items()):
        by_day[day].append(kept)
    found = Days([], [], [])
    for day, runs in by_day.items():
        _add_day(found, day, _newest_of_brokers(runs), choice)
    return found


def _newest_of_brokers(runs: Sequence[Kept]) -> list[Kept]:
    """Without stores that a broker had in an earlier run of the day only."""
    newest: dict[str, int] = {}
    for kept in runs:
        newest[kept.broker] = max(kept.as_of, newest.get(kept.broker, 0))
    return [kept for kept in runs if kept.as_of == newest[kept.broker]]


def _add_day(found: Days, day: int, kept: Sequence[Kept], choice: Choice) -> None:
    runs: list[_Run] = []
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    tables: dict[Kept, list[Row]] = {}
    for one in kept:
        try:
            (store,) = rows_of(one, "stores")
            tables[one] = rows_of(one, "groups")
        except UNREADABLE as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            found.warnings.append(f"{one.broker}: not read: {reason}")
            continue
        log = store["log_min_offset"], store["log_max_offset"]
        ref = StoreRef(one.broker, store["path"])
        runs.append(_Run(one, ref, log, frozenset(store["marks"])))
    shown, _ = without_copies(runs)
    for run in shown:
        for row in tables[run.kept]:
            if choice.takes(row["group"], row["topic"]):
                rows[row["group"], row["topic"]].append(row)
    begin = {"day_timestamp": day * DAY_MS, "stores": len(shown)}
    together = list(_groups(rows, begin))
    found.groups.extend(together)
    found.days.append(
        {**begin, "groups": len({row["group"] for row in together}), **_sum(together)}
    )


def _groups(rows: dict[tuple[str, str], list[Row]], begin: Row) -> Iterator[Row]:
    for (group, topic), of_stores in sorted(rows.items()):
        yield {
            "group": group,
            "topic": topic,
            **begin,
            "stores": len(of_stores),
            **_sum(of_stores),
        }


def _sum(rows: Iterable[Row]) -> dict[str, Any]:
    all_rows = list(rows)
    ages = [row["oldest_unread_age_ms"] for row in all_rows]
    return {
        "lag": sum_or_unknown(row["lag"] for row in all_rows),
        "lag_bytes": sum_or_unknown(row["lag_bytes"] for row in all_rows),
        "oldest_unread_age_ms": max((age for age in ages if age is not None), default=None),
        "unknown_queues": sum(row["unknown_queues"] for row in all_rows),
    }
