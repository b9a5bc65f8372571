"""Cutting stores into ranges of queues: the work of one task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.lag.log_offsets import first_at
from storage.readonly import StoreView

from .selection import Selection

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef

    from .topics import TopicChoice

_LEAST: Final = 20_000
"""Messages that justify a task of their own."""


class Range(NamedTuple):
    """The messages [first, end) of a queue."""

    broker: str
    path: str
    topic: str
    queue_id: int
    first: int
    end: int

    @property
    def messages(self) -> int:
        """How many messages."""
        return self.end - self.first


def queue_ranges(
    stores: Sequence[StoreRef], topics: TopicChoice, chosen: Selection
) -> Iterator[Range]:
    """The selected range of each queue, whole; queues without messages are left out.

    RocketMQ's own topics are read only if ``topics`` selects them, whatever the filters select.
    """
    for ref in stores:
        if not chosen.wants("broker", ref.broker):
            continue
        with StoreView.open(ref.path) as view:
            for topic, queue_id in view.queues():
                if not (chosen.wants("topic", topic) and chosen.wants("queue_id", queue_id)):
                    continue
                if not topics.wants(ref.broker, topic, queue_id):
                    continue
                first, end = _bounds(view, topic, queue_id, chosen)
                if first < end:
                    yield Range(ref.broker, ref.path, topic, queue_id, first, end)


def tasks_of(ranges: Sequence[Range], wanted: int) -> list[list[Range]]:
    """Pack ranges into about ``wanted`` tasks of about the same size, cutting long ones."""
    total = sum(part.messages for part in ranges)
    each = max(_LEAST, -(-total // wanted))
    tasks: list[list[Range]] = []
    room = 0
    for whole in ranges:
        first = whole.first
        while first < whole.end:
            if not room:
                tasks.append([])
                room = each
            end = min(whole.end, first + room)
            tasks[-1].append(whole._replace(first=first, end=end))
            room -= end - first
            first = end
    return tasks


def _bounds(view: StoreView, topic: str, queue_id: int, chosen: Selection) -> tuple[int, int]:
    """Positions limit the range; times do not: a broker whose clock went back stored messages out
    of the order of time, and a sample of records does not show that."""
    low, high = view.queue_bounds(topic, queue_id)
    first, limit = max(low, chosen.queue_offset[0]), min(high, chosen.queue_offset[1])
    whole = Selection()
    if chosen.commitlog_offset != whole.commitlog_offset:
        start, end = chosen.commitlog_offset
        first = max(first, first_at(view, topic, queue_id, start, low, high))
        limit = min(limit, first_at(view, topic, queue_id, end, low, high))
    return first, limit
