"""From the queues of a group to its totals in a topic. Pure.

Unknown is None and enters no sum; ``unknown_queues`` counts the queues that were left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from operator import gt, sub
from typing import Final, NamedTuple

from storage import native

from .health import Health, worst
from .queue_lag import QueueColumns, QueueLag as QueueLag, drain_ms as drain_ms
from .queue_position import QueuePosition

_sums_known: Final = native.form("sums_known", native.nothing)
"""The sums of a list of queues whose lags are all known, as ``_known_totals`` takes them; None of
others. The status is None where queues have several; the last two: whether a rate is unknown."""


class Totals(NamedTuple):
    """The lag of a group, or of all groups, in a topic."""

    queues: int
    lag: int | None
    lag_bytes: int | None
    oldest_unread_timestamp: int | None
    rate_in: float | None
    rate_out: float | None
    drain_ms: int | None
    status: Health
    worst_queue_id: int | None
    skew: float | None
    lost: int | None
    risk_timestamp: int | None
    unknown_queues: int


def is_unknown(unread: QueuePosition) -> bool:
    """Whether it is not known how much of a queue is unread; of an empty queue it is."""
    return unread.lag is None and not (
        unread.committed_offset is None and unread.min_offset == unread.max_offset
    )


def all_known(queues: Iterable[QueueLag]) -> bool:
    """Whether the lag of each queue is known."""
    if isinstance(queues, QueueColumns):
        known = [at for at in queues.columns.committed if at is not None]
        return len(known) == len(queues) and not any(map(gt, known, queues.columns.highs))
    for queue in queues:
        _, at, high = queue[1]
        if at is None or at > high:
            return False
    return True


def skew(lags: Collection[int]) -> float | None:
    """Compute how uneven queues are: the largest lag over the mean. 1.0 is even, the number of
    queues means that one has everything; None if nothing is unread."""
    total = sum(lags)
    return round(max(lags) * len(lags) / total, 2) if total else None


def sum_of_all(values: Iterable[int | None]) -> int | None:
    """Sum up; None if one of the values is not known."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def add_up(queues: Sequence[QueueLag]) -> Totals:
    """Sum up the queues of one group in one topic."""
    if not isinstance(queues, QueueColumns):
        known = _sums_known(queues)
        return _add_up_each(queues) if known is None else _known_totals(queues, *known)
    ids, lows, committed, highs, sizes, stored, rates_in, rates_out, statuses, risks = (
        queues.columns
    )
    if not queues or None in committed:
        return _add_up_each(queues)
    lags = [*map(sub, highs, committed)]
    if min(lags) < 0:
        return _add_up_each(queues)
    # All are known, as mostly: they are added up without a step of Python for each queue.
    total, most = sum(lags), max(lags)
    unread = [*map(sub, committed, lows)]
    unknown = sizes.count(None)
    total_bytes = None if unknown == len(sizes) else sum(filter(None, sizes))
    rate_in, rate_out = total_rate(rates_in), total_rate(rates_out)
    return Totals(
        len(queues),
        total,
        total_bytes,
        _least(stored),
        rate_in,
        rate_out,
        drain_ms(total, rate_in, rate_out),
        Health.OK if statuses.count(Health.OK) == len(statuses) else worst(set(statuses)),
        ids[lags.index(most)] if most else None,
        round(most * len(lags) / total, 2) if total else None,
        -sum(part for part in unread if part < 0) if min(unread) < 0 else 0,
        _least(risks),
        unknown,
    )


def _known_totals(
    queues: Sequence[QueueLag],
    lag: int,
    lag_bytes: int | None,
    oldest: int | None,
    most: int,
    lost: int,
    risk: int | None,
    unknown: int,
    worst_queue: int | None,
    status: Health | None,
    no_rate_in: bool,
    no_rate_out: bool,
) -> Totals:
    """The same of what ``_sums_known`` gives."""
    rate_in = None if no_rate_in else total_rate([queue[4] for queue in queues])
    rate_out = None if no_rate_out else total_rate([queue[5] for queue in queues])
    return Totals(
        len(queues),
        lag,
        lag_bytes,
        oldest,
        rate_in,
        rate_out,
        drain_ms(lag, rate_in, rate_out),
        worst({queue[6] for queue in queues}) if status is None else status,
        worst_queue,
        round(most * len(queues) / lag, 2) if lag else None,
        lost,
        risk,
        unknown,
    )


def _add_up_each(queues: Sequence[QueueLag]) -> Totals:
    """The same where something is unknown."""
    lags: dict[int, int] = {}
    statuses: set[Health] = set()
    total_bytes = lost = unknown = 0
    none_unknown = True
    bytes_known = False
    rates_in: list[float | None] = []
    rates_out: list[float | None] = []
    stored: list[int | None] = []
    risks: list[int | None] = []
    for queue_id, what, lag_bytes, oldest, queue_in, queue_out, status, risk in queues:
        rates_in.append(queue_in)
        statuses.add(status)
        low, committed, high = what
        if committed is None or committed > high:
            unknown += 1
            none_unknown = none_unknown and not is_unknown(what)
            continue
        lags[queue_id] = high - committed
        if low > committed:
            lost += low - committed
        rates_out.append(queue_out)
        if lag_bytes is None:
            unknown += 1
        else:
            total_bytes += lag_bytes
            bytes_known = True
        stored.append(oldest)
        risks.append(risk)
    all_lag = sum(lags.values()) if lags else None
    if not all_lag and not none_unknown:
        all_lag = None  # the known queues have no lag, the others are unknown: not 0
        bytes_known = bytes_known and total_bytes > 0
    rate_in = total_rate(rates_in)
    rate_out = total_rate(rates_out) if lags else None
    return Totals(
        len(queues),
        all_lag,
        total_bytes if bytes_known else None,
        _least(stored),
        rate_in,
        rate_out,
        drain_ms(all_lag, rate_in, rate_out),
        worst(statuses),
        _worst_queue(lags),
        skew(lags.values()),
        lost if lags else None,
        _least(risks),
        unknown,
    )


def total_rate(rates: Collection[float | None]) -> float | None:
    """The sum of rates; None if one of them is not known. The order makes no difference."""
    return None if None in rates else round(fsum(rates), 3)  # type: ignore[arg-type]


def over_groups(groups: Collection[Sequence[QueueLag]]) -> Totals:
    """Add up all groups of one topic: incoming messages count once, outgoing ones for each group.

    ``drain_ms`` is the slowest group's; the worst queue is the one with the largest sum.
    """
    parts = [add_up(queues) for queues in groups]
    lags: dict[int, int] = defaultdict(int)
    for queues in groups:
        for queue in queues:
            if queue.unread.lag is not None:
                lags[queue.queue_id] += queue.unread.lag
    drains = [part.drain_ms for part in parts if part.lag is not None]
    return Totals(
        max((part.queues for part in parts), default=0),
        sum_or_unknown(part.lag for part in parts),
        sum_or_unknown(part.lag_bytes for part in parts),
        _least(part.oldest_unread_timestamp for part in parts),
        max((part.rate_in for part in parts if part.rate_in is not None), default=None),
        _sum_of_all(part.rate_out for part in parts if part.lag is not None),
        None if None in drains else max((d for d in drains if d is not None), default=None),
        worst(part.status for part in parts),
        _worst_queue(lags),
        skew(lags.values()),
        _sum_of_known(part.lost for part in parts),
        _least(part.risk_timestamp for part in parts),
        sum(part.unknown_queues for part in parts),
    )


def _worst_queue(lags: Mapping[int, int]) -> int | None:
    """Find the queue with the largest lag, the first of equals; None if nothing is unread."""
    worst_queue = max(lags, key=lambda queue_id: (lags[queue_id], -queue_id), default=None)
    return worst_queue if worst_queue is not None and lags[worst_queue] else None


def _sum_of_known(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def sum_or_unknown(values: Iterable[int | None]) -> int | None:
    """Add up the known values; 0 only if all are known."""
    all_values = list(values)
    return _sum_of_known(all_values) or (0 if all_values and None not in all_values else None)


def _sum_of_all(values: Iterable[float | None]) -> float | None:
    """A rate is known only if all its parts are, and there is one."""
    known: list[float] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return round(sum(known), 3) if known else None


def _least(values: Iterable[int | None]) -> int | None:
    return min([value for value in values if value is not None], default=None)
