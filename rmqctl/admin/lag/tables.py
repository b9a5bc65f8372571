"""From a lag snapshot to the rows of ``lag show``."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from analytics.lag.lag_snapshot import GroupLag, LagSnapshot
from analytics.lag.totals import add_up, over_groups, sum_of_all

from .rows import LagQueueRow, LagRow, LagTopicRow

_new: Final = tuple.__new__  # half the time of _replace
_OLDEST: Final = LagRow._fields.index("oldest_unread_timestamp")
"""The age is the field after it."""


def group_rows(seen: LagSnapshot) -> Iterator[LagRow]:
    """A row for each group and topic, by name."""
    for group_lag in seen.group_lags:
        yield at_time(group_row(group_lag), seen.as_of)


def group_row(group_lag: GroupLag) -> LagRow:
    """The row of a group in a topic, without the age, which depends on the time."""
    total = add_up(group_lag.queues)
    return LagRow(
        group_lag.group,
        group_lag.topic,
        total.queues,
        total.lag,
        total.lag_bytes,
        total.oldest_unread_timestamp,
        None,
        total.rate_in,
        total.rate_out,
        total.drain_ms,
        total.status,
        group_lag.retry,
        group_lag.dlq,
        total.worst_queue_id,
        total.skew,
        total.lost,
        total.risk_timestamp,
        total.unknown_queues,
    )


def at_time(row: LagRow, as_of: int) -> LagRow:
    """The row with the age at a time; the row itself if nothing is unread."""
    oldest = row.oldest_unread_timestamp
    if oldest is None:
        return row
    return _new(LagRow, (*row[: _OLDEST + 1], _age(oldest, as_of), *row[_OLDEST + 2 :]))


def topic_rows(seen: LagSnapshot) -> Iterator[LagTopicRow]:
    """A row for each topic, by name."""
    topics: dict[str, list[GroupLag]] = defaultdict(list)
    for group_lag in seen.group_lags:
        topics[group_lag.topic].append(group_lag)
    for topic, group_lags in sorted(topics.items()):
        total = over_groups([group_lag.queues for group_lag in group_lags])
        oldest = total.oldest_unread_timestamp
        yield LagTopicRow(
            topic,
            len(group_lags),
            total.queues,
            total.lag,
            total.lag_bytes,
            oldest,
            _age(oldest, seen.as_of),
            total.rate_in,
            total.rate_out,
            total.drain_ms,
            total.status,
            sum_of_all(group_lag.retry for group_lag in group_lags),
            sum(group_lag.dlq for group_lag in group_lags),
            total.worst_queue_id,
            total.skew,
            total.lost,
            total.risk_timestamp,
            total.unknown_queues,
        )


def queue_rows(seen: LagSnapshot) -> Iterator[LagQueueRow]:
    """A row for each group, topic and queue, in this order."""
    for group_lag in seen.group_lags:
        for queue in group_lag.queues:
            what = queue.unread
            oldest = queue.oldest_unread_timestamp
            yield LagQueueRow(
                group_lag.group,
                group_lag.topic,
                queue.queue_id,
                what.min_offset,
                what.committed_offset,
                what.max_offset,
                what.lag,
                queue.lag_bytes,
                oldest,
                _age(oldest, seen.as_of),
                _rounded(queue.rate_in),
                _rounded(queue.rate_out),
                queue.drain_ms,
                queue.status,
                what.lost,
                queue.risk_timestamp,
            )


def _age(timestamp: int | None, as_of: int) -> int | None:
    """Age of a message; 0 for one that was stored after the snapshot began."""
    return None if timestamp is None else max(0, as_of - timestamp)


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)
