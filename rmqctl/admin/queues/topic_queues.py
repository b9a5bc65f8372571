"""The queues of one topic that have or had messages."""

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.queue.reader import QueueBounds
    from storage.readonly import StoreView

_ALL: Final = 1 << 31


def bounds_from(view: "StoreView", topic: str, first_queue: int = 0) -> "dict[int, QueueBounds]":
    """The bounds of a topic's queues from a number on, by queue id; lists the store's queues."""
    queues = view.queues()  # sorted
    begin, end = (bisect_left(queues, (topic, number)) for number in (first_queue, _ALL))
    return {queue_id: view.queue_bounds(topic, queue_id) for _, queue_id in queues[begin:end]}
