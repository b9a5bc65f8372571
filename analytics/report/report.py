"""The report: results of scans and counts as rows that can be printed or kept.

Pure: the same input gives the same report with any engine. Rows are dictionaries whose keys are the
fields of the command line; unknown is None and enters no sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.kernels.partials import MINUTE_MS, UNKNOWN_MINUTE
from analytics.lag.health import worst
from analytics.lag.queue_position import QueuePosition
from analytics.lag.totals import (
    QueueLag,
    Totals,
    add_up,
    is_unknown,
    sum_of_all,
    sum_or_unknown,
)

from .amounts import Amounts, Row, Rows, added_up

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import Depth, GroupLag

    from .partial import PartialReport, Place, Tags

AGES_MS: Final = tuple(
    minutes * MINUTE_MS for minutes in (0, 1, 5, 15, 60, 360, 1_440, 4_320, 10_080)
)
"""Where the classes of ages begin: now, 1, 5, 15 min, 1, 6 h, 1, 3, 7 days."""
_MINUTES_PER_HOUR: Final = 60
_SPANS_MS: Final = {
    "minute_timestamp": MINUTE_MS,
    "hour_timestamp": _MINUTES_PER_HOUR * MINUTE_MS,
}
_NOTHING: Final = Amounts(*np.zeros((3, 0), np.int64))


@dataclass(frozen=True)
class Report:
    """The lag of all groups. Times are epoch ms, rates messages a second.

    Tables that may have many rows make them at each iteration.
    """

    as_of: int
    stores: Sequence[Row]
    """broker, path, log_min_offset, log_max_offset"""
    totals: Row
    groups: Sequence[Row]
    """A row for each group and topic, over all stores: the fields of ``lag show``."""
    queues: Collection[Row]
    """A row for each group, topic, broker and queue."""
    tags: Collection[Row]
    """group, topic, tag (null: none), messages, bytes"""
    minutes: Collection[Row]
    """group, topic, minute_timestamp (null: store time unreadable), messages, bytes"""
    hours: Collection[Row]
    """The same with hour_timestamp."""
    ages: Collection[Row]
    """group, topic, from_age_ms, to_age_ms (null: any older), messages, bytes; by whole minutes"""
    agenda: Sequence[Row]
    """broker, level, messages: delayed messages that wait; null: unknown"""
    orphans: Sequence[Row]
    """broker, group, topic: progress in topics that do not exist"""
    warnings: Sequence[str]

    def document(self) -> dict[str, Any]:
        """The whole report, with all rows."""
        return {
            name: value if isinstance(value, dict | int) else list(value)
            for name, value in vars(self).items()
        }


def make_report(
    shares: Sequence[PartialReport], as_of: int, warnings: Iterable[str] = ()
) -> Report:
    """Combine the partial reports of all stores."""
    by_group = _by_group(shares)
    minutes = {place: _minutes(place, shares) for place in by_group}
    depths = _depths(shares)
    groups = [
        _group_row(place, group_lags, depths[place[0]], as_of)
        for place, group_lags in by_group.items()
    ]
    all_warnings = [*warnings, *(one.text for share in shares for one in share.warnings)]
    return Report(
        as_of,
        [
            {
                "broker": share.ref.broker,
                "path": share.ref.path,
                "log_min_offset": share.log[0],
                "log_max_offset": share.log[1],
            }
            for share in shares
        ],
        _totals(groups, shares, as_of, len(all_warnings)),
        groups,
        Rows(lambda: _queue_rows(by_group, as_of)),
        Rows(lambda: _tags(by_group, shares)),
        Rows(lambda: _timed(minutes, "minute_timestamp")),
        Rows(lambda: _timed(minutes, "hour_timestamp", _MINUTES_PER_HOUR)),
        Rows(lambda: _ages(minutes, as_of)),
        [
            {"broker": share.ref.broker, "level": one.level, "messages": one.messages}
            for share in shares
            for one in share.agenda
        ],
        [
            {"broker": share.ref.broker, "group": one.group, "topic": one.topic}
            for share in shares
            for one in share.orphans
        ],
        all_warnings,
    )


def _by_group(shares: Sequence[PartialReport]) -> dict[Place, list[tuple[str, GroupLag]]]:
    found: dict[Place, list[tuple[str, GroupLag]]] = defaultdict(list)
    for share in shares:
        for group_lag in share.group_lags:
            found[group_lag.group, group_lag.topic].append((share.ref.broker, group_lag))
    return dict(sorted(found.items()))


def _minutes(place: Place, shares: Sequence[PartialReport]) -> Amounts:
    parts = [share.minutes[place] for share in shares if place in share.minutes]
    return added_up(parts) if parts else _NOTHING


def _depths(shares: Sequence[PartialReport]) -> dict[str, Depth]:
    """Waiting retries (None: not known) and dead letters of each group in all stores.

    A store has one number for all topics of a group.
    """
    each: dict[str, dict[int, Depth]] = defaultdict(dict)
    for number, share in enumerate(shares):
        for group, depth in share.depths.items():
            each[group][number] = depth
        for group_lag in share.group_lags:
            each[group_lag.group][number] = group_lag.retry, group_lag.dlq
    return {
        group: (
            sum_of_all(retry for retry, _ in stores.values()),
            sum(dlq for _, dlq in stores.values()),
        )
        for group, stores in each.items()
    }


def _group_row(
    place: Place,
    group_lags: Sequence[tuple[str, GroupLag]],
    depths: Depth,
    as_of: int,
) -> Row:
    # Queues of several brokers have the same ids: number them all, and name the worst at the end.
    together = [queue for _, group_lag in group_lags for queue in group_lag.queues]
    total = add_up([queue._replace(queue_id=at) for at, queue in enumerate(together)])
    at = total.worst_queue_id
    return {
        **_named(place),
        **_figures(total, as_of),
        "status": str(total.status),
        "retry": depths[0],
        "dlq": depths[1],
        "worst_queue_id": None if at is None else together[at].queue_id,
        "skew": total.skew,
        "lost": total.lost,
        "risk_timestamp": total.risk_timestamp,
        "unknown_queues": total.unknown_queues,
    }


def _figures(total: Totals, as_of: int) -> Row:
    oldest = total.oldest_unread_timestamp
    return {
        "queues": total.queues,
        "lag": total.lag,
        "lag_bytes": total.lag_bytes,
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "rate_in": total.rate_in,
        "rate_out": total.rate_out,
        "drain_ms": total.drain_ms,
    }


def _queue_rows(
    by_group: Mapping[Place, Sequence[tuple[str, GroupLag]]], as_of: int
) -> Iterator[Row]:
    for place, group_lags in by_group.items():
        for broker, group_lag in group_lags:
            for queue in group_lag.queues:
                yield {
                    **_named(place),
                    "broker": broker,
                    "queue_id": queue.queue_id,
                    "min_offset": queue.unread.min_offset,
                    "committed_offset": queue.unread.committed_offset,
                    "max_offset": queue.unread.max_offset,
                    **_queue_figures(queue, as_of),
                }


def has_unknown_lag(queue: Mapping[str, Any]) -> bool:
    """Whether it is unknown how much of the queue of a row is unread."""
    offsets = queue["min_offset"], queue["committed_offset"], queue["max_offset"]
    return is_unknown(QueuePosition(*offsets))


def _queue_figures(queue: QueueLag, as_of: int) -> Row:
    oldest = queue.oldest_unread_timestamp
    return {
        "lag": queue.unread.lag,
        "lag_bytes": queue.lag_bytes,
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "rate_in": _rounded(queue.rate_in),
        "rate_out": _rounded(queue.rate_out),
        "drain_ms": queue.drain_ms,
        "status": str(queue.status),
        "lost": queue.unread.lost,
        "risk_timestamp": queue.risk_timestamp,
    }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


def _age(timestamp: int | None, as_of: int) -> int | None:
    return None if timestamp is None else max(0, as_of - timestamp)


def _named(place: Place) -> Row:
    return {"group": place[0], "topic": place[1]}


def ends_after(row: Row, field: str, begin: int | None) -> bool:
    """Whether the minute or hour of a row ends after a time (ms); True where one is unknown."""
    start = row[field]
    return begin is None or start is None or start + _SPANS_MS[field] > begin


def _timed(minutes: Mapping[Place, Amounts], name: str, by: int = 1) -> Iterator[Row]:
    for place, amounts in minutes.items():
        keys = amounts.keys
        found = (
            amounts.by(np.where(keys == UNKNOWN_MINUTE, keys, keys // by)) if by > 1 else amounts
        )
        group, topic = place
        for key, messages, size in zip(*(column.tolist() for column in found), strict=True):
            moment = None if key == UNKNOWN_MINUTE else key * by * MINUTE_MS
            yield {
                "group": group,
                "topic": topic,
                name: moment,
                "messages": messages,
                "bytes": size,
            }


def _ages(minutes: Mapping[Place, Amounts], as_of: int) -> Iterator[Row]:
    """By age ranges; a message is as old as the beginning of its minute, and at least 0."""
    for place, amounts in minutes.items():
        known = Amounts(*(column[amounts.keys != UNKNOWN_MINUTE] for column in amounts))
        old = np.maximum(as_of - known.keys * MINUTE_MS, 0)
        classes = known.by(np.searchsorted(AGES_MS, old, "right") - 1)
        for number, messages, size in zip(*(column.tolist() for column in classes), strict=True):
            last = number + 1 == len(AGES_MS)
            yield {
                **_named(place),
                "from_age_ms": AGES_MS[number],
                "to_age_ms": None if last else AGES_MS[number + 1],
                "messages": messages,
                "bytes": size,
            }


def _tags(by_group: Iterable[Place], shares: Sequence[PartialReport]) -> Iterator[Row]:
    """The largest first. Numbers that are no hash of a tag are combined."""
    for place in by_group:
        total: Tags = {}
        for share in shares:
            for text, (messages, size) in share.tags.get(place, {}).items():
                before = total.get(text, (0, 0))
                total[text] = (before[0] + messages, before[1] + size)
        for text, (messages, size) in sorted(
            total.items(), key=lambda item: (-item[1][0], str(item))
        ):
            yield {**_named(place), "tag": text, "messages": messages, "bytes": size}


def _totals(
    groups: Sequence[Row], shares: Sequence[PartialReport], as_of: int, warnings: int
) -> Row:
    def known(name: str) -> list[Any]:
        return [row[name] for row in groups if row[name] is not None]

    oldest = min(known("oldest_unread_timestamp"), default=None)
    depths = {row["group"]: (row["retry"], row["dlq"]) for row in groups}
    statuses = {
        queue.status
        for share in shares
        for group_lag in share.group_lags
        for queue in group_lag.queues
    }
    return {
        "stores": len(shares),
        "groups": len({row["group"] for row in groups}),
        "topics": len({row["topic"] for row in groups}),
        "queues": sum(row["queues"] for row in groups),
        "lag": sum_or_unknown(row["lag"] for row in groups),
        "lag_bytes": sum_or_unknown(row["lag_bytes"] for row in groups),
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "lost": sum(known("lost")) if known("lost") else None,
        "retry": sum_of_all(retry for retry, _ in depths.values()),
        "dlq": sum(dlq for _, dlq in depths.values()),
        "status": str(worst(statuses)),
        "unknown_queues": sum(row["unknown_queues"] for row in groups),
        "warnings": warnings,
    }
