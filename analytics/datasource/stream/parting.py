"""Where two logs part that begin with the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.report.copies import mark_at
from storage.read.log_offsets import first_at, place_from
from storage.readonly import StoreView

if TYPE_CHECKING:
    from analytics.datasource.plan.log_now import LogNow


def parts_at(log: LogNow, other: LogNow, most: int) -> int:
    """The log offset of the first message of a log that the other log does not have there; ``most``
    if it has all before. What the other one has deleted counts as the same.

    In each queue the messages before that one are the same in both, and none after it is.
    """
    found = most
    with StoreView.open(log.ref.path) as view, log.opened() as mine, other.opened() as others:
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            high = first_at(view, topic, queue_id, found, low, high)
            probe = high - 1  # the last one: in most queues it is the same, too
            while low < high:
                at, place = place_from(view, topic, queue_id, probe, high)
                if place is None:
                    high = probe
                elif place < other.begin or mark_at(mine, place) == mark_at(others, place):
                    low = at + 1
                else:
                    high, found = probe, min(found, place)
                probe = (low + high) // 2
    return max(found, log.begin)
