"""Rows of the tables about progress: ``offsets``, ``lag`` and ``lag_partials``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from analytics.engines.task import CountTask, do, forget
from analytics.kernels.partials import MINUTE_MS, UNKNOWN_MINUTE, PartialCounts, QueueTask
from analytics.lag.queue_position import QueuePosition, oldest_unread_timestamp, unread_bytes
from storage.configs.consumer_offsets import split_topic_at_group
from storage.readonly import StoreView

from .ranges import is_wanted

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef

    from .options import Options
    from .selection import Selection

Row = dict[str, object]
_US_PER_MS: Final = 1000


class GroupPosition(NamedTuple):
    """The position of a group in a queue."""

    group: str
    topic: str
    queue_id: int
    what: QueuePosition


def group_lags(view: StoreView, options: Options, chosen: Selection) -> Iterator[GroupPosition]:
    """All selected groups, by topic, group and queue. Progress is read before the ends of queues,
    so that no lag is negative because of the time in between."""
    for key, offsets in sorted(view.consumer_offsets().items()):
        split = split_topic_at_group(key)
        if split is None:
            continue
        topic, group = split
        if options.groups is not None and group not in options.groups:
            continue
        if not (chosen.wants("group", group) and chosen.wants("topic", topic)):
            continue
        if not is_wanted(topic, options.topics):
            continue
        for queue_id, committed in sorted(offsets.items()):
            if chosen.wants("queue_id", queue_id):
                low, high = view.queue_bounds(topic, queue_id)
                yield GroupPosition(group, topic, queue_id, QueuePosition(low, committed, high))


def offset_rows(ref: StoreRef, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``offsets`` of one store."""
    with StoreView.open(ref.path) as view:
        for group_lag in group_lags(view, options, chosen):
            yield _place(ref, group_lag)


def lag_rows(ref: StoreRef, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``lag`` of one store."""
    with StoreView.open(ref.path) as view:
        for group_lag in group_lags(view, options, chosen):
            _, topic, queue_id, what = group_lag
            oldest = oldest_unread_timestamp(view, topic, queue_id, what)
            yield {
                **_place(ref, group_lag),
                "lag": what.lag,
                "lag_bytes": _bytes(view, group_lag),
                "oldest_unread_timestamp": None if oldest is None else oldest * _US_PER_MS,
            }


def _bytes(view: StoreView, group_lag: GroupPosition) -> int | None:
    _, topic, queue_id, what = group_lag
    first = what.first_unread
    if first is None:
        return None if what.lag is None else 0
    return unread_bytes(view, topic, queue_id, (first,), what.max_offset)[first]


def partial_rows(ref: StoreRef, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``lag_partials`` of one store."""
    with StoreView.open(ref.path) as view:
        works = list(_works(view, ref, options, chosen))
    try:
        for work in works:
            found = do(work)
            task = work.tasks[0]
            yield from _cells(ref, task, found.minutes, "minute")
            yield from _cells(ref, task, found.tags, "tags_code")
    finally:
        forget()


def _works(
    view: StoreView, ref: StoreRef, options: Options, chosen: Selection
) -> Iterator[CountTask]:
    cuts: dict[tuple[str, int], set[int]] = defaultdict(set)
    ends: dict[tuple[str, int], int] = {}
    for _, topic, queue_id, what in group_lags(view, options, chosen):
        first = what.first_unread
        if first is not None:
            cuts[topic, queue_id].add(first)
            ends[topic, queue_id] = max(what.max_offset, ends.get((topic, queue_id), 0))
    job = str(uuid4())
    for (topic, queue_id), firsts in cuts.items():
        first, end = min(firsts), ends[topic, queue_id]
        times = [view.store_timestamp(topic, queue_id, at) for at in (first, end - 1)]
        known = [time // MINUTE_MS for time in times if time is not None]
        minutes = (min(known), max(known)) if known else (0, 0)
        task = QueueTask(0, topic, queue_id, tuple(sorted(firsts)), first, end)
        yield CountTask(job, ref.path, (task,), minutes, each_time=len(known) < len(times))


def _cells(ref: StoreRef, task: QueueTask, cells: PartialCounts, key: str) -> Iterator[Row]:
    columns = (cells.segment, cells.key, cells.messages, cells.bytes)
    for segment, value, messages, size in zip(*(c.tolist() for c in columns), strict=True):
        row: Row = {
            "broker": ref.broker,
            "topic": task.topic,
            "queue_id": task.queue_id,
            "from_offset": task.cuts[segment],
            "minute": None,
            "tags_code": None,
            "messages": messages,
            "bytes": size,
        }
        if key == "tags_code":
            row[key] = value
        elif value != UNKNOWN_MINUTE:
            row[key] = value * MINUTE_MS * _US_PER_MS
        yield row


def _place(ref: StoreRef, group_lag: GroupPosition) -> Row:
    group, topic, queue_id, what = group_lag
    return {
        "broker": ref.broker,
        "group": group,
        "topic": topic,
        "queue_id": queue_id,
        "committed_offset": what.committed_offset,
        "min_offset": what.min_offset,
        "max_offset": what.max_offset,
    }
