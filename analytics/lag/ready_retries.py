"""Retries that are ready: messages of a retry topic that its group has not consumed."""

from __future__ import annotations

from collections.abc import Mapping
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
        if at > end:
            # It may have been committed right before the log's end was moved past it.
            end = view.max_offset_in_queue(topic, queue_id)
            if at > end:
                return None
        total += end - max(low, at)
    return total
