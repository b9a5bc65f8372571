"""Cutting stores into ranges of queues: what one task reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.readonly import Boundary, StoreView

from .selection import Selection

if TYPE_CHECKING:
    from analytics.stores import StoreRef

_LEAST: Final = 20_000
"""Messages that are worth a task of their own."""
_SYSTEM: Final = ("%RETRY%", "%DLQ%", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_")


class Range(NamedTuple):
    """The messages [first, behind) of a queue."""

    broker: str
    path: str
    topic: str
    queue_id: int
    first: int
    behind: int

    @property
    def messages(self) -> int:
        """How many messages."""
        return self.behind - self.first


def queue_ranges(
    stores: Sequence[StoreRef], topics: frozenset[str] | None, chosen: Selection
) -> Iterator[Range]:
    """What is selected of each queue, whole; queues without anything are left out.

    Topics of RocketMQ's own are read only if they are named.
    """
    for ref in stores:
        if not chosen.wants("broker", ref.broker):
            continue
        with StoreView.open(ref.path) as view:
            for topic, queue_id in view.queues():
                if not (chosen.wants("topic", topic) and chosen.wants("queue_id", queue_id)):
                    continue
                if not is_wanted(topic, topics, chosen):
                    continue
                first, behind = _bounds(view, topic, queue_id, chosen)
                if first < behind:
                    yield Range(ref.broker, ref.path, topic, queue_id, first, behind)


def is_wanted(topic: str, topics: frozenset[str] | None, chosen: Selection) -> bool:
    """Whether a topic is read: it is named, or all are meant and it is nobody's business."""
    if topics is not None:
        return topic in topics
    return chosen.topic is not None or not topic.startswith(_SYSTEM)


def tasks_of(ranges: Sequence[Range], wanted: int) -> list[list[Range]]:
    """Pack ranges into about ``wanted`` tasks of about the same size, cutting long ones."""
    total = sum(part.messages for part in ranges)
    each = max(_LEAST, -(-total // wanted))
    tasks: list[list[Range]] = []
    room = 0
    for whole in ranges:
        first = whole.first
        while first < whole.behind:
            if not room:
                tasks.append([])
                room = each
            behind = min(whole.behind, first + room)
            tasks[-1].append(whole._replace(first=first, behind=behind))
            room -= behind - first
            first = behind
    return tasks


def _bounds(view: StoreView, topic: str, queue_id: int, chosen: Selection) -> tuple[int, int]:
    low, high = view.queue_bounds(topic, queue_id)
    first, behind = max(low, chosen.queue_offset[0]), min(high, chosen.queue_offset[1])
    whole = Selection()
    if chosen.commitlog_offset != whole.commitlog_offset:
        start, end = chosen.commitlog_offset
        first = max(first, first_at(view, topic, queue_id, start, low, high))
        behind = min(behind, first_at(view, topic, queue_id, end, low, high))
    if chosen.store_timestamp != whole.store_timestamp:
        begin, end = chosen.store_timestamp
        by_time = view.offset_in_queue_by_time
        if begin > 0:
            first = max(first, by_time(topic, queue_id, begin, Boundary.LOWER))
        if end < whole.store_timestamp[1]:
            behind = min(behind, by_time(topic, queue_id, end, Boundary.LOWER))
    return first, behind


def first_at(view: StoreView, topic: str, queue_id: int, place: int, low: int, high: int) -> int:
    """The first message of [low, high) whose record lies at ``place`` or behind; ``high`` without
    any. A unit that is missing counts as lying before."""
    while low < high:
        middle = (low + high) // 2
        unit = view.unit(topic, queue_id, middle)
        if unit is None or unit[0] < place:
            low = middle + 1
        else:
            high = middle
    return low
