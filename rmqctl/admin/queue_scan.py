"""Reading the queues of a retry or dead letter topic, with the filters of a call."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rmqctl.admin.left_out import MOST_NAMED
from rmqctl.admin.scan_progress import OnProgress, no_progress
from storage.format.errors import BodyError
from storage.log.record_reader import offset_in_queue
from storage.read.by_time import Boundary
from storage.read.replaced import places_without_message

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .message_filter import MessageFilter

_BATCH: Final = 32


class QueueScan:
    """The messages of one topic that a filter selects, queue by queue, oldest first.

    ``begins`` are the start offsets by queue. ``unreadable`` counts messages that were left out as
    their record is damaged or gone, or as the filter needs a body that cannot be unpacked: of a
    reading that ends before, those that come before its last message.
    ``on_progress`` takes how many messages were looked at, and how many there are.
    """

    def __init__(
        self,
        view: "StoreView",
        topic: str,
        wanted: "MessageFilter | None" = None,
        begins: Mapping[int, int] | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self._view = view
        self._topic = topic
        self._wanted = wanted
        self._begins = begins or {}
        self._on_progress = on_progress
        self._looked_at = self._total = 0
        self.unreadable = 0
        self.bodies: list[str] = []
        """Some messages whose bodies cannot be unpacked, with the reason."""

    def messages(self) -> Iterator["MessageExt"]:
        """Yield the messages."""
        predicate = self._wanted.predicate if self._wanted else None
        spans = [(queue_id, *self._span(queue_id)) for queue_id in self.queue_ids()]
        self._looked_at, self._total = 0, sum(max(0, high - low) for _, low, high in spans)
        for queue_id, low, high in spans:
            for message in self._read(queue_id, low, high):
                try:
                    if predicate is not None and not predicate(message):
                        continue
                except BodyError as error:
                    self.unreadable += 1
                    if len(self.bodies) < MOST_NAMED:
                        self.bodies.append(str(error))
                    continue
                yield message

    def queue_ids(self) -> list[int]:
        """The selected queues that have or had messages."""
        wanted = self._wanted.queues if self._wanted else None
        known = [queue_id for topic, queue_id in self._view.queues() if topic == self._topic]
        return known if wanted is None else [queue_id for queue_id in known if queue_id in wanted]

    def _span(self, queue_id: int) -> tuple[int, int]:
        low, high = self._view.queue_bounds(self._topic, queue_id)
        low = max(low, self._begins.get(queue_id, 0))
        if self._wanted is not None:
            if self._wanted.from_timestamp is not None:
                low = max(low, self._by_time(queue_id, self._wanted.from_timestamp))
            if self._wanted.to_timestamp is not None:
                high = min(high, self._by_time(queue_id, self._wanted.to_timestamp))
        return low, high

    def _by_time(self, queue_id: int, timestamp: int) -> int:
        return self._view.offset_in_queue_by_time(self._topic, queue_id, timestamp, Boundary.LOWER)

    def _read(self, queue_id: int, low: int, high: int) -> Iterator["MessageExt"]:
        at = low
        while at < high:
            self._on_progress(self._looked_at, self._total)
            result = self._view.get_message(self._topic, queue_id, at, min(_BATCH, high - at))
            passed = at
            for message in result.messages:
                offset = offset_in_queue(message, self._topic)
                if offset >= high:  # after damage it may go on beyond the end
                    break
                if offset > passed:
                    self.unreadable += self._left_out(queue_id, passed, offset)
                passed = offset + 1
                yield message
            following = min(result.next_begin_offset, high)
            if following <= at:
                self.unreadable += high - at
                self._looked_at += high - at
                break
            if following > passed:
                self.unreadable += self._left_out(queue_id, passed, following)
            self._looked_at += following - at
            at = following
        self._on_progress(self._looked_at, self._total)

    def _left_out(self, queue_id: int, start: int, end: int) -> int:
        """How many unread places of a queue have a message; a place of a repair has none."""
        settled = places_without_message(self._view, self._topic, queue_id, start, end)
        return max(0, end - start - settled)
