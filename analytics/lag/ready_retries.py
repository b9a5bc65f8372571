"""Retries that are ready: messages of a retry topic that its group has not consumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.queue.reader import QueueBounds
    from storage.readonly import StoreView


def ready_retries(
    view: StoreView, topic: str, bounds: Mapping[int, QueueBounds], committed: Mapping[int, int]
) -> int | None:
    """Count the messages of a retry topic from a group's progress on; None if that is unknown:
    progress in one of the queues lies beyond its end.

    A queue without progress is read from its start. ``bounds`` are those of all its queues.
    """
    total = 0
    for queue_id, (low, end) in bounds.items():
        at = committed.get(queue_id, low)
        reached = _reached_end(view, topic, queue_id, at, end)
        if reached is None:
            return None
        total += reached - max(low, at)
    return total


def unknown_retries(
    view: StoreView, topic: str, queue_ids: Iterable[int], committed: Mapping[int, int]
) -> dict[int, str]:
    """The queues of a retry topic of which it is unknown which messages are left, as in
    ready_retries, each with a sentence. ``committed`` is the group's progress, read before."""
    found = {}
    for queue_id in queue_ids:
        end = view.max_offset_in_queue(topic, queue_id)
        at = committed.get(queue_id, 0)
        if _reached_end(view, topic, queue_id, at, end) is None:
            found[queue_id] = (
                f"how many retries wait is unknown: progress {at} in {topic}, queue {queue_id}, "
                f"lies beyond its end {end}"
            )
    return found


def _reached_end(view: StoreView, topic: str, queue_id: int, at: int, end: int) -> int | None:
    """The end of a queue if progress ``at`` lies within, else None."""
    if at > end:
        # It may have been committed right before the log's end was moved past it.
        end = view.max_offset_in_queue(topic, queue_id)
    return None if at > end else end
