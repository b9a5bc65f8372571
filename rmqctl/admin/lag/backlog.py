"""The composition of a backlog: ages, sizes, tags, keys, hosts; and messages at risk."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analytics.lag.exact_times import Part
from analytics.lag.histogram import Bucket
from analytics.lag.lag_snapshot import GroupLag, LagSnapshot
from analytics.lag.queue_position import unread_bytes
from analytics.lag.totals import add_up, is_unknown
from analytics.lag.unknown import is_unknown_risk
from storage.parse.durations import format_duration, format_size
from storage.read.log_offsets import first_at
from storage.retention import LogFile, RetentionRules, log_files, safe_from

from .backlog_rows import HistogramRow, RiskRow

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_BAR: Final = 24
"""Length of the longest bar."""
_AT_ONCE: Final = 32
NONE: Final = "(none)"
OTHER: Final = "(other)"


def parts_of(group_lags: Iterable[GroupLag]) -> list[Part]:
    """The queues that a group reads."""
    return [
        Part(group_lag.topic, queue.queue_id, queue.unread)
        for group_lag in group_lags
        for queue in group_lag.queues
    ]


def bucket_rows(buckets: Sequence[Bucket], show: Callable[[int], str]) -> list[HistogramRow]:
    """Rows of numeric buckets, without empty ones at both ends."""
    used = [number for number, bucket in enumerate(buckets) if bucket.messages]
    if not used:
        return []
    shown = buckets[used[0] : used[-1] + 1]
    total = sum(bucket.messages for bucket in shown)
    most = max(bucket.messages for bucket in shown)
    return [
        HistogramRow(
            _label(bucket, show),
            bucket.messages,
            round(bucket.messages / total, 4),
            bucket.total_bytes,
            _bar(bucket.messages, most),
            bucket.low,
            bucket.high,
        )
        for bucket in shown
    ]


def _label(bucket: Bucket, show: Callable[[int], str]) -> str:
    if bucket.low is None:
        return f"< {show(bucket.high or 0)}"
    if bucket.high is None:
        return f">= {show(bucket.low)}"
    return f"{show(bucket.low)} - {show(bucket.high)}"


def age_label(milliseconds: int) -> str:
    """An edge of ages."""
    return format_duration(milliseconds)


def size_label(size: int) -> str:
    """An edge of sizes."""
    return format_size(size)


def name_rows(
    view: "StoreView",
    parts: Sequence[Part],
    names_of: "Callable[[MessageExt], Iterable[str]]",
    most: int,
    note: Callable[[int], None],
) -> tuple[list[HistogramRow], int]:
    """Rows by a name of messages, the most frequent first, and the number of messages that could be
    read. Reads each unread message.

    ``names_of`` gives the names of a message; a message with several counts for each. Names after
    the ``most`` frequent ones form the last row, in which each message counts once.
    """
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    shared: dict[frozenset[str], tuple[int, int]] = {}
    read = 0
    for message in _unread_messages(view, parts, note):
        read += 1
        names = frozenset(names_of(message)) or frozenset({NONE})
        for name in names:
            counts[name] += 1
            sizes[name] += message.store_size
        if len(names) > 1:
            number, size = shared.get(names, (0, 0))
            shared[names] = number + 1, size + message.store_size
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    found = [(name, counts[name], sizes[name]) for name in ranked[:most]]
    if ranked[most:]:
        rest = set(ranked[most:])
        count, size = sum(counts[n] for n in rest), sum(sizes[n] for n in rest)
        for names, (number, their_size) in shared.items():
            again = max(0, len(names & rest) - 1)
            count -= again * number
            size -= again * their_size
        found.append((OTHER, count, size))
    largest = max((count for _, count, _ in found), default=0)
    rows = [
        HistogramRow(name, count, round(count / read, 4), size, _bar(count, largest), None, None)
        for name, count, size in found
    ]
    return rows, read


def _unread_messages(
    view: "StoreView", parts: Sequence[Part], note: Callable[[int], None]
) -> "Iterator[MessageExt]":
    for topic, queue_id, what in parts:
        offset, end = what.first_unread, what.max_offset
        while offset is not None and offset < end:
            found = view.get_message(topic, queue_id, offset, min(_AT_ONCE, end - offset))
            # After damage it may go on beyond the end.
            yield from (message for message in found.messages if message.queue_offset < end)
            following = min(found.next_begin_offset, end)
            if following <= offset:
                break
            note(following - offset)
            offset = following


def _bar(count: int, most: int) -> str:
    return "#" * max(1, round(count * _BAR / most)) if count else ""


def risk_rows(
    view: "StoreView", seen: LagSnapshot, rules: RetentionRules, within_ms: int
) -> Iterator[RiskRow]:
    """Groups that lost unread messages, or may lose some within a time, or of which that is
    unknown, by name. Nothing is known where the progress of groups is doubtful."""
    files = log_files(view.root, view.config, rules, view.log_max_offset(), seen.as_of)
    safe = safe_from(files, seen.as_of + within_ms)
    for group_lag in seen.group_lags:
        row = _risk(view, group_lag, files, safe, seen.as_of, in_doubt=seen.doubt is not None)
        if row.lost != 0 or row.at_risk != 0:
            yield row


def _risk(
    view: "StoreView",
    group_lag: GroupLag,
    files: Sequence[LogFile],
    safe: int,
    as_of: int,
    *,
    in_doubt: bool,
) -> RiskRow:
    messages = 0
    total_bytes: int | None = 0
    for queue in group_lag.queues:
        what = queue.unread
        first = what.first_unread
        if first is None or what.lag is None:
            continue
        kept = first_at(view, group_lag.topic, queue.queue_id, safe, first, what.max_offset)
        messages += kept - first
        if kept == first:
            continue
        cuts = {first, kept} - {what.max_offset}
        unread = unread_bytes(view, group_lag.topic, queue.queue_id, cuts, what.max_offset)
        size = unread[first]
        if size is None or total_bytes is None:
            total_bytes = None
        else:
            total_bytes += size - (unread.get(kept) or 0)
    total = add_up(group_lag.queues)
    # What is known in part is at least so much, and never none.
    none_lost = None if in_doubt or any(is_unknown(q.unread) for q in group_lag.queues) else 0
    none_at_risk = None if any(map(is_unknown_risk, group_lag.queues)) else none_lost
    first_due = total.risk_timestamp if messages else None
    return RiskRow(
        group_lag.group,
        group_lag.topic,
        total.lost or none_lost,
        messages or none_at_risk,
        total_bytes if messages else none_at_risk,
        first_due,
        None if first_due is None else max(0, first_due - as_of),
        total.drain_ms,
        total.status,
        total.lag,
        total.unknown_queues,
    )
