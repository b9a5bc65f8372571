"""One moment of a store that others write to: an offset of its log, and the queues up to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.queue.reader import QueueBounds

if TYPE_CHECKING:
    from storage.readonly import StoreView

_MOST_UNITS: Final = 512
"""Units that are read at once."""


class LogCut:
    """The queues of a store as they are when this is made, whenever their bounds are read.

    Every message within the bounds lies in the log before every message past them. Bounds that are
    read one queue after the other do not have this: a queue that is read later may have a message
    that is newer than one past the bounds of an earlier queue. Messages acknowledged before are
    within the bounds. Make it before the queues are listed, and after the progress of groups is
    read.

    Attributes:
        log_end: the log's end then.
        is_whole: whether no batch was being written then, so that nothing past it was readable.
    """

    def __init__(self, view: StoreView, log_end: int | None = None) -> None:
        """``log_end``: that of an earlier moment, which is the moment then."""
        self._view = view
        # A writer publishes units before the log's end, so those of all records before it exist.
        now = view.log_max_offset()
        self.log_end: Final = now if log_end is None else min(log_end, now)
        self.is_whole: Final = view.has_shared_state and (view.bounds.finished_to() <= self.log_end)

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Min and max offset of a queue.

        Damaged units at the end are within them, unless they follow a unit that was written later.
        """
        view = self._view
        low, high = view.queue_bounds(topic, queue_id)
        # Units past the cut name records before this end: that of the batch that is being written.
        written = view.bounds.finished_to()
        if low == high or written <= self.log_end:
            return QueueBounds(low, high)
        return QueueBounds(low, self._end(topic, queue_id, low, high, written))

    def each_queue_bounds(
        self,
        queues: Sequence[tuple[str, int]],
        ends: Sequence[int] | None = None,
        *,
        first: Sequence[int] = (),
    ) -> list[tuple[int, int]]:
        """The same of many queues. ``ends`` are those of an earlier cut: a queue that ends there
        has got nothing since. ``first``: see StoreView.each_queue_bounds."""
        view = self._view
        found: list[tuple[int, int]] = list(view.each_queue_bounds(queues, first))
        written = view.bounds.finished_to()
        if written > self.log_end:
            for number, (low, high) in enumerate(found):
                if (ends is None or high != ends[number]) and low != high:
                    topic, queue_id = queues[number]
                    end = self._end(topic, queue_id, low, high, written)
                    found[number] = QueueBounds(low, end)
        return found

    def _end(self, topic: str, queue_id: int, low: int, high: int, written: int) -> int:
        """The first unit of a record past the cut; found from the end, as they are few."""
        cut, view = self.log_end, self._view
        per_file = view.config.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
        end = at = high
        count = 1
        while at > low:
            start = max(low, at - count, (at - 1) // per_file * per_file)
            units = view.units(topic, queue_id, start, at - start)
            for offset in range(start + len(units) - 1, start - 1, -1):
                place, size, _ = units[offset - start]
                if not 0 < size < PRE_BLANK_SIZE:
                    continue  # a filler, or damaged
                if cut <= place <= written - size:
                    end = offset
                elif 0 <= place < cut:
                    return end
            at = start
            count = min(8 * count, _MOST_UNITS)
        return end
