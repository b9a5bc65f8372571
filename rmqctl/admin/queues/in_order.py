"""The queues of topics, read as one: messages in the order in which they were stored."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .cursor import Cursor, Fetched, Fetcher
from .merge import Round
from .selection import Span

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


class Part(NamedTuple):
    """One topic: the ranges of its queues, and how they are read."""

    topic: str
    spans: Sequence[Span]
    fetch: Fetcher


class QueuesInOrder:
    """Reads the queues of topics."""

    def __init__(self, broker: "EmbeddedBroker", parts: Sequence[Part]) -> None:
        self._broker = broker
        self._parts = parts
        self._cursors: list[Cursor] = []
        self._known: list[set[int]] = []
        """The queues that are read, of each part."""
        for part in parts:
            self._known.append({span.queue_id for span in part.spans})
            self._cursors += [self._cursor(part, span) for span in part.spans]

    @property
    def unreadable(self) -> int:
        """Messages that were left out as their records contradict their units."""
        return sum(cursor.unreadable for cursor in self._cursors)

    @property
    def passed(self) -> int:
        """The sum of the queue offsets before which all messages were taken, or left out."""
        return int(sum(cursor.passed for cursor in self._cursors))

    def ready(self, room: int) -> Round:
        """What can be taken now; fetches up to so many messages of each queue."""
        view, growing = self._broker.view, [one for one in self._cursors if one.end is None]
        # A writer makes the messages of a batch readable queue by queue, and sets the log's end
        # then: those before this end are all readable.
        log_end = view.log_max_offset() if growing and view.has_shared_state else None
        for cursor in self._cursors:
            if not cursor.done:
                cursor.fill(room, log_end if cursor.end is None else None)
        if log_end is None and len(growing) > 1:
            log_end = self._fill_again(growing, room)
        return Round(self._cursors, log_end)

    def _fill_again(self, growing: Sequence[Cursor], room: int) -> int | None:
        """See what came to queues that were looked at first, while the others were.

        A Java broker makes messages readable one by one, in the order of the log: those before one
        that is fetched are readable. Gives the log offset right after the last one that is fetched;
        None without any.
        """
        fetched = [cursor.last for cursor in growing if cursor.waiting]
        if not fetched:
            return None
        log_end = max(fetched) + 1
        for cursor in growing:
            cursor.look_for_more(log_end)
            cursor.fill(room, log_end)
        return log_end

    def add_new_queues(self) -> None:
        """Read queues that topics have got since."""
        for part, known in zip(self._parts, self._known, strict=True):
            config = self._broker.topic(part.topic)
            for queue_id in range(0 if config is None else config.read_queue_nums):
                if queue_id not in known:
                    known.add(queue_id)
                    self._cursors.append(self._cursor(part, Span(queue_id, 0, None)))

    def _cursor(self, part: Part, span: Span) -> Cursor:
        end_now = partial(self._broker.max_offset, part.topic, span.queue_id)
        fetch = partial(self._fetched, part, span.end)
        return Cursor(span.queue_id, span.start, span.end, fetch, end_now)

    def _fetched(
        self, part: Part, end: int | None, queue_id: int, offset: int, count: int
    ) -> Fetched:
        """The fetch, with the number of messages before the end that it left out."""
        fetched = part.fetch(queue_id, offset, count)
        if not fetched.gaps:
            return fetched
        queue = part.topic, queue_id
        passed = (gap if end is None else gap[: max(0, end - gap.start)] for gap in fetched.gaps)
        left_out = sum(self._left_out(queue, fetched, one) for one in passed if one)
        return fetched._replace(unreadable=left_out)

    def _left_out(self, queue: tuple[str, int], fetched: Fetched, passed: range) -> int:
        """How many messages of a stretch of a queue could not be read; places that hold none on
        purpose are not counted."""
        offsets, view = fetched.queue_offsets, self._broker.view
        read = bisect_left(offsets, passed.stop) - bisect_left(offsets, passed.start)
        if fetched.tags is not None:
            from .left_by_tags import left_out  # lazy: for reads with tags only

            return left_out(view, queue, fetched.tags, passed, read)
        from storage.read.replaced import places_without_message

        on_purpose = places_without_message(view, *queue, passed.start, passed.stop)
        return max(0, len(passed) - read - on_purpose)
