"""The lag day by day, out of kept reports: what the page draws as a trend.

Of each day (UTC) and store the last run counts, where stores of one name count each (see ``logs``).
A day without a run of a store lacks that store, and says how many it has; a day without any run is
not there. Unknown is None and enters no sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.lag.totals import sum_or_unknown
from analytics.report.copies import without_copies
from analytics.report.stores import StoreRef

from .earlier_runs import add_stores, without_proven
from .logs import DAY_MS, looked_at, newest_of_logs
from .reading import all_runs, tables_by_folder
from .tables import Kept, arrow, date_of

if TYPE_CHECKING:
    from analytics.lag.selection import Choice
    from analytics.report.amounts import Row

MOST_DAYS: Final = 400
_FIGURES: Final = (
    *("group", "topic", "lag", "lag_bytes", "oldest_unread_age_ms", "unknown_queues"),
)


class Days(NamedTuple):
    """The days of a history, the first one first."""

    days: list[Row]
    """day_timestamp, stores (that are in the sums), groups, lag, lag_bytes, oldest_unread_age_ms,
    unknown_queues"""
    groups: list[Row]
    """The same for each day, group and topic, with these instead of the number of groups."""
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
    of_days: dict[tuple[int, str], list[Kept]] = defaultdict(list)
    for folder in folders:
        for kept in all_runs(folder):
            day = kept.as_of // DAY_MS
            if until // DAY_MS - MOST_DAYS < day and kept.as_of <= until:
                of_days[day, kept.broker].append(kept)
    months: dict[str, list[list[Kept]]] = defaultdict(list)
    for (day, _), runs in sorted(of_days.items()):
        months[f"{date_of(day * DAY_MS):%Y-%m}"].append(list(looked_at(runs)))
    found = Days([], [], [])
    for of_month in months.values():
        _add_month(found, of_month, choice)
    return found


def _add_month(found: Days, of_days: Sequence[Sequence[Kept]], choice: Choice) -> None:
    """Add the days of a month; ``of_days`` are the runs of a broker and day each."""
    unreadable: dict[Kept, str] = {}
    stores: dict[Kept, Row] = {}
    runs = [kept for of_day in of_days for kept in without_proven(of_day, stores, unreadable)]
    add_stores(runs, stores, unreadable)
    shown: list[Kept] = []
    counts: dict[int, int] = {}
    last: set[Kept] = set()
    for day, of_day in groupby(runs, lambda kept: kept.as_of // DAY_MS):
        logs = []
        for _, of_name in groupby(of_day, lambda kept: kept.broker):
            newest = chain.from_iterable(newest_of_logs(list(of_name), stores))
            for kept in newest:
                last.add(kept)
                if kept in stores:
                    logs.append(_run(kept, stores[kept]))
        its, _ = without_copies(logs)
        shown += [run.kept for run in its]
        counts[day] = len(its)
    unreadable = {kept: reason for kept, reason in unreadable.items() if kept in last}
    tables = tables_by_folder(shown, "groups", _FIGURES, unreadable)
    lost = {kept.as_of // DAY_MS for kept in unreadable}
    for kept in shown:
        if kept in unreadable:
            counts[kept.as_of // DAY_MS] -= 1
    rows = [row for table in tables.values() for row in _summed(table)]
    by_day: dict[int, dict[tuple[str, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if choice.takes(row["group"], row["topic"]):
            by_day[row["day"]][row["group"], row["topic"]].append(row)
    for day, number in sorted(counts.items()):
        begin = {"day_timestamp": day * DAY_MS}
        together = [
            {
                "group": group,
                "topic": topic,
                **begin,
                "stores": sum(row["stores"] for row in its),
                **_sum(its),
            }
            for (group, topic), its in sorted(by_day[day].items())
        ]
        groups = len({row["group"] for row in together})
        found.groups.extend(together)
        if number or day in lost:
            found.days.append({**begin, "stores": number, "groups": groups, **_sum(together)})
    found.warnings.extend(sorted(set(unreadable.values())))


def _run(kept: Kept, row: Row) -> _Run:
    log = row["log_min_offset"], row["log_max_offset"]
    return _Run(kept, StoreRef(kept.broker, row["path"]), log, frozenset(row["marks"] or ()))


def _summed(table: Any) -> list[Row]:
    """The rows of groups, added up over the stores of each day."""
    day = arrow().compute.divide(table.column("as_of"), DAY_MS)
    sums = (
        table.append_column("day", day)
        .group_by(["day", "group", "topic"])
        .aggregate(
            [
                ("as_of", "count"),
                *((name, what) for name in ("lag", "lag_bytes") for what in ("sum", "count")),
                ("oldest_unread_age_ms", "max"),
                ("unknown_queues", "sum"),
            ]
        )
    )
    return [
        {
            "day": row["day"],
            "group": row["group"],
            "topic": row["topic"],
            "stores": row["as_of_count"],
            "lag": _known(row, "lag"),
            "lag_bytes": _known(row, "lag_bytes"),
            "oldest_unread_age_ms": row["oldest_unread_age_ms_max"],
            "unknown_queues": row["unknown_queues_sum"],
        }
        for row in sums.to_pylist()
    ]


def _known(row: Row, name: str) -> int | None:
    """A sum as :func:`sum_or_unknown` makes it: 0 only if all values are known."""
    value: int | None = row[f"{name}_sum"]
    return value or (0 if row[f"{name}_count"] == row["as_of_count"] else None)


def _sum(rows: Iterable[Row]) -> dict[str, Any]:
    all_rows = list(rows)
    ages = [row["oldest_unread_age_ms"] for row in all_rows]
    return {
        "lag": sum_or_unknown(row["lag"] for row in all_rows),
        "lag_bytes": sum_or_unknown(row["lag_bytes"] for row in all_rows),
        "oldest_unread_age_ms": max((age for age in ages if age is not None), default=None),
        "unknown_queues": sum(row["unknown_queues"] for row in all_rows),
    }
