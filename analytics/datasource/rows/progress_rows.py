"""Rows of the tables about progress: ``offsets``, ``lag`` and ``lag_partials``."""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import uuid4

from analytics.engines.task import CountTask, do, forget
from analytics.kernels.partials import MINUTE_MS, UNKNOWN_MINUTE, PartialCounts, QueueTask
from analytics.lag.lag_snapshot import Readers, look_at
from analytics.lag.selection import Choice
from analytics.report.scan import known_topics, progress_of
from storage.readonly import StoreView

from .arrays import microseconds

if TYPE_CHECKING:
    from analytics.datasource.plan.store_shares import StoreShare
    from analytics.datasource.query.options import Options
    from analytics.datasource.query.selection import Selection
    from analytics.lag.totals import QueueLag
    from analytics.report.stores import StoreRef

logger = logging.getLogger("rmqctl.datasource")
Row = dict[str, object]
_NO_TAG: Final = 0
"""The hash of no tag, and what stands for that of a missing unit."""


class GroupPosition(NamedTuple):
    """A group in a queue."""

    group: str
    topic: str
    queue: QueueLag


def group_positions(
    view: StoreView,
    options: Options,
    chosen: Selection,
    share: StoreShare,
    *,
    sizes: bool = False,
    whole: bool = True,
) -> Iterator[GroupPosition]:
    """All selected groups in the queues of their topics, as a lag report has them: queues in which
    a group has no progress, too. All end at one offset of the log; ``sizes``: ``lag_bytes`` and the
    times of unread messages are needed. ``whole``: of queues that a share has some messages of,
    only its own. Where progress may not be the last one, the first share's log says so."""
    table = progress_of(view)
    topics = known_topics(view)
    choice = Choice(options.groups, options.topics.named)
    choice.add_retry_topics(table, view, topics)
    wanted = {
        (group, topic): table[group, topic]
        for group, topic in sorted(table)
        if choice.takes(group, topic)
        and chosen.wants("group", group)
        and chosen.wants("topic", topic)
    }
    now = time.time_ns() // 1_000_000
    readers = Readers(wanted, {}, table)
    reads = share.has if whole and share.total > 1 else None
    found = look_at(
        view,
        topics,
        readers,
        now,
        sizes=sizes,
        log_end=share.log_end,
        reads=reads,
        heads=sizes,
        trends=False,
    )
    if found.doubt is not None and not share.number:
        logger.warning("%s: %s", share.ref.broker, found.doubt)
    for group_lag in found.group_lags:
        for queue in group_lag.queues:
            if chosen.wants("queue_id", queue.queue_id):
                yield GroupPosition(group_lag.group, group_lag.topic, queue)


def offset_rows(share: StoreShare, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``offsets`` of a share of a store."""
    with StoreView.open(share.ref.path) as view:
        for position in group_positions(view, options, chosen, share):
            yield _place(share.ref, position)


def lag_rows(share: StoreShare, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``lag`` of a share of a store."""
    with StoreView.open(share.ref.path) as view:
        for position in group_positions(view, options, chosen, share, sizes=True):
            queue = position.queue
            yield {
                **_place(share.ref, position),
                "lag": queue.unread.lag,
                "lag_bytes": queue.lag_bytes,
                "oldest_unread_timestamp": microseconds(queue.oldest_unread_timestamp),
            }


def partial_rows(share: StoreShare, options: Options, chosen: Selection) -> Iterator[Row]:
    """The rows of ``lag_partials`` of a share of a store."""
    with StoreView.open(share.ref.path) as view:
        works = list(_works(view, share, options, chosen))
    try:
        for work in works:
            found = do(work)
            task = work.tasks[0]
            gone = _by_segment(found.missing)
            yield from _cells(share.ref, task, found.minutes, "minute", gone)
            yield from _cells(share.ref, task, found.tags, "tags_code", gone)
            for segment, messages in gone.items():
                yield _counts(share.ref, task, segment, messages, None)
    finally:
        forget()


def _works(
    view: StoreView, share: StoreShare, options: Options, chosen: Selection
) -> Iterator[CountTask]:
    cuts: dict[tuple[str, int], set[int]] = defaultdict(set)
    ends: dict[tuple[str, int], int] = {}
    for _, topic, queue in group_positions(view, options, chosen, share, whole=False):
        first = queue.unread.first_unread
        if first is not None:
            place = topic, queue.queue_id
            cuts[place].add(first)
            ends[place] = max(queue.unread.max_offset, ends.get(place, 0))
    job = str(uuid4())
    for (topic, queue_id), firsts in cuts.items():
        for first, end in share.pieces(topic, queue_id, min(firsts), ends[topic, queue_id]):
            times = [view.store_timestamp(topic, queue_id, at) for at in (first, end - 1)]
            known = [time // MINUTE_MS for time in times if time is not None]
            minutes = (min(known), max(known)) if known else (0, 0)
            task = QueueTask(0, topic, queue_id, tuple(sorted(firsts)), first, end)
            path, each_time = share.ref.path, len(known) < len(times)
            yield CountTask(job, path, (task,), minutes, each_time=each_time)


def _by_segment(missing: PartialCounts) -> Counter[int]:
    found: Counter[int] = Counter()
    for segment, messages in zip(missing.segment.tolist(), missing.messages.tolist(), strict=True):
        found[segment] += messages
    return found


def _cells(
    ref: StoreRef, task: QueueTask, cells: PartialCounts, key: str, gone: Mapping[int, int]
) -> Iterator[Row]:
    """Rows by minute or tag, without the messages whose units are missing: ``gone`` by segment."""
    unknown = UNKNOWN_MINUTE if key == "minute" else _NO_TAG
    columns = (cells.segment, cells.key, cells.messages, cells.bytes)
    for segment, value, messages, size in zip(*(c.tolist() for c in columns), strict=True):
        known = messages - gone.get(segment, 0) if value == unknown else messages
        if not known:
            continue
        row = _counts(ref, task, segment, known, size)
        if key == "tags_code":
            row[key] = value
        elif value != UNKNOWN_MINUTE:
            row[key] = microseconds(value * MINUTE_MS)
        yield row


def _counts(ref: StoreRef, task: QueueTask, segment: int, messages: int, size: int | None) -> Row:
    return {
        "broker": ref.broker,
        "topic": task.topic,
        "queue_id": task.queue_id,
        "from_offset": task.cuts[segment],
        "minute": None,
        "tags_code": None,
        "messages": messages,
        "bytes": size,
    }


def _place(ref: StoreRef, position: GroupPosition) -> Row:
    group, topic, queue = position
    what = queue.unread
    return {
        "broker": ref.broker,
        "group": group,
        "topic": topic,
        "queue_id": queue.queue_id,
        "committed_offset": what.committed_offset,
        "min_offset": what.min_offset,
        "max_offset": what.max_offset,
    }
