"""From a log offset to a queue offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.format.cq_unit import PRE_BLANK_SIZE

from .gaps import after_gap

if TYPE_CHECKING:
    from storage.readonly import StoreView


def first_at(view: StoreView, topic: str, queue_id: int, place: int, low: int, high: int) -> int:
    """The first message of [low, high) whose record lies at log offset ``place`` or after it.

    ``high`` without any. Units that are missing, or name no record of the log, count with those
    after them: where the message follows such units, this is the first one of these.
    """
    while low < high:
        middle = (low + high) // 2
        at, found = place_from(view, topic, queue_id, middle, high)
        if found is None or found >= place:
            high = middle
        else:
            low = at + 1
    return low


def place_from(
    view: StoreView, topic: str, queue_id: int, offset: int, end: int
) -> tuple[int, int | None]:
    """The first message from ``offset`` on whose unit names a record, and its log offset."""
    log_end = view.log_max_offset()
    while offset < end:
        unit = view.unit(topic, queue_id, offset)
        if unit is None:
            offset = after_gap(view, topic, queue_id, offset, end)
        elif 0 < unit[1] < PRE_BLANK_SIZE and 0 <= unit[0] < log_end:
            return offset, unit[0]
        else:
            offset += 1
    return end, None
