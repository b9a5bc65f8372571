"""Where two logs part that begin with the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.report.copies import LooksUp, mark_at
from storage.read.log_offsets import first_at, place_from
from storage.readonly import StoreView

if TYPE_CHECKING:
    from analytics.datasource.plan.log_now import LogNow


def parts_at(log: LogNow, other: LogNow, most: int, least: int = 0) -> int:
    """The log offset of the first message of a log that the other log does not have there.

    It is ``most``, or the end of the log, if the other one has all before. What that one has
    deleted counts as the same, a message that cannot be read as another one. ``least`` is the
    least that is of interest: it is the answer, too, if the message there is another one.

    In each queue the messages before that one are the same in both, and none after it is.
    """
    found = min(most, log.end)  # the queues may go on by now, and no mark is known there
    with log.opened() as mine, other.opened() as others:
        if least > max(log.begin, other.begin) and not _have_the_same(mine, others, least):
            return least
        with StoreView.open(log.ref.path) as view:
            for topic, queue_id in view.queues():
                low, high = view.queue_bounds(topic, queue_id)
                high = first_at(view, topic, queue_id, found, low, high)
                probe = high - 1  # the last one: in most queues it is the same, too
                while low < high:
                    at, place = place_from(view, topic, queue_id, probe, high)
                    if place is None:
                        high = probe
                    elif place < other.begin or _have_the_same(mine, others, place):
                        low = at + 1
                    else:
                        high, found = probe, min(found, place)
                    probe = (low + high) // 2
    return max(found, log.begin)


def _have_the_same(mine: LooksUp, others: LooksUp, place: int) -> bool:
    """Whether two logs have one record at a log offset."""
    mark = mark_at(mine, place)
    return mark is not None and mark == mark_at(others, place)
