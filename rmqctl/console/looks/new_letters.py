"""How many dead letters each group got of late, counted in the queues by their store times."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from storage.format.message import DLQ_GROUP_TOPIC_PREFIX
from storage.read.by_time import Boundary
from storage.read.replaced import places_without_message

from .look import Look, Place, Source

if TYPE_CHECKING:
    from storage.readonly import StoreView

NEW_MS: Final = 600_000
"""Dead letters of the last ten minutes are new."""


class NewLettersRow(NamedTuple):
    """New dead letters of a group."""

    group: Annotated[str, "the consumer group"]
    new: Annotated[int | None, "dead letters of the last ten minutes; null: unknown"]


def _new(source: Source, place: Place) -> Iterable[Any]:
    """The groups with new ones. Of a queue without any only its newest message is read."""
    since = source.now_ms - NEW_MS
    found: dict[str, int | None] = {}
    for topic, queue_id in source.view.queues():
        if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            group = topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
            count, before = _stored_since(source.view, topic, queue_id, since), found.get(group, 0)
            found[group] = None if count is None or before is None else before + count
    return [NewLettersRow(group, new) for group, new in found.items() if new != 0]


def _stored_since(view: "StoreView", topic: str, queue_id: int, since: int) -> int | None:
    low, high = view.queue_bounds(topic, queue_id)
    while low < high and places_without_message(view, topic, queue_id, high - 1, high):
        high -= 1  # a repair has emptied it
    if low == high:
        return 0
    newest = view.store_timestamp(topic, queue_id, high - 1)
    if newest is None:
        return None
    if newest < since:
        return 0
    first = view.offset_in_queue_by_time(topic, queue_id, since, Boundary.LOWER)
    if first == low > 0:
        return None  # those before it were deleted, and may have been new
    return high - first - places_without_message(view, topic, queue_id, first, high)


NEW: Final = Look("new letters", NewLettersRow, _new, lambda place: ("dlq", "list"), ("group",))
