"""Reading one queue: fetched messages, and the position in them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.api.pull import PullRequest
from storage.format.errors import BodyError
from storage.log.record_reader import offset_in_queue
from storage.read.tag_filter import TagFilter

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.embedded.broker import EmbeddedBroker
    from storage.format.message import MessageExt

COLUMN: Final = 4096
"""Most messages per fetch by columns."""
COLUMN_BYTES: Final = 2 << 20
_INFLATED_BYTES: Final = 8 << 20
"""Most bytes of inflated bodies in a column."""
OBJECTS: Final = 512
"""Most messages per fetch as objects."""


class Fetched(NamedTuple):
    """Messages of one queue in order; item i of each list belongs to the same message."""

    queue_offsets: Sequence[int]
    commitlog_offsets: Sequence[int]
    items: Sequence[Any]
    next_offset: int
    more: bool
    """Whether the queue had more messages at the time of the read."""
    unreadable: int = 0
    """Messages before the end of the range that could not be read; counted of ``gaps``."""
    gaps: Sequence[range] = ()
    """Stretches of the queue that gave fewer messages than they have places. They may reach beyond
    the end of the range: after damage a read goes on until it has enough messages."""
    tags: TagFilter | None = None
    """Which messages were asked for; None: all."""


class Fetcher(Protocol):
    """Reads some messages of a queue."""

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """Up to ``count`` messages from ``offset`` on; never blocks for new ones."""
        ...


class ColumnFetcher:
    """Fetches bodies alone, without an object per message."""

    def __init__(
        self, broker: "Broker", topic: str, inflated_limit: int, objects: "ObjectFetcher"
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._limit = inflated_limit
        self._objects = objects

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """See :class:`Fetcher`."""
        batch = self._broker.pull_column(
            self._topic, queue_id, offset, min(count, COLUMN), COLUMN_BYTES
        )
        following = batch.next_begin_offset
        more = following < batch.max_offset
        gaps: tuple[range, ...] = ()
        if following - offset > len(batch) and offset >= batch.min_offset:
            gaps = (range(offset, following),)
        if not len(batch):
            end = max(following, offset)
            return Fetched((), (), (), end, more and following > offset, gaps=gaps)
        try:
            bodies = batch.bodies_within(self._limit, _INFLATED_BYTES)
        except BodyError:
            bodies = None
        if bodies is None:
            # As messages: so the messages before the bad one are printed, in all queues, and large
            # bodies are inflated one at a time.
            return self._objects(queue_id, offset, count)
        return Fetched(
            batch.queue_offsets,
            batch.commitlog_offsets,
            bodies,
            following,
            more,
            gaps=gaps,
        )


class ObjectFetcher:
    """Fetches messages with all fields, only those of a subscription."""

    def __init__(
        self, broker: "EmbeddedBroker", topic: str, group: str, expression: str | None
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._group = group
        self._expression = expression or "*"
        self._tags = TagFilter.parse(expression)

    def __call__(self, queue_id: int, offset: int, count: int) -> Fetched:
        """See :class:`Fetcher`."""
        messages: list[MessageExt] = []
        at, more = offset, True
        gaps: list[range] = []
        while more and len(messages) < min(count, OBJECTS):
            wanted = min(count, OBJECTS) - len(messages)
            result = self._broker.pull(
                PullRequest(self._group, self._topic, queue_id, at, wanted, self._expression)
            )
            if result.next_begin_offset <= at:
                more = False
                break
            passed = range(at, result.next_begin_offset)
            if len(passed) > len(result.messages) and at >= result.min_offset:
                gaps.append(passed)
            messages += result.messages
            at = result.next_begin_offset
            more = at < result.max_offset
        return Fetched(
            [offset_in_queue(message, self._topic) for message in messages],
            [message.commitlog_offset for message in messages],
            messages,
            at,
            more,
            gaps=gaps,
            tags=self._tags,
        )


class Cursor:
    """Walks one queue; keeps messages that were fetched and not yet taken."""

    def __init__(
        self,
        queue_id: int,
        start: int,
        end: int | None,
        fetch: Fetcher,
        end_now: Callable[[], int],
    ) -> None:
        """``end_now`` gives the queue offset after the last message that is readable now."""
        self.queue_id = queue_id
        self.end = end
        """Offset of the end, exclusive; None for no end."""
        self.passed = start
        """All messages before this queue offset were taken."""
        self.unreadable = 0
        """Messages that were left out because their records contradict their units."""
        self._fetch = fetch
        self._end_now = end_now
        self._next = start
        self._more = True
        self._seen: int | None = None
        """All messages before this log offset were looked at, unless ``_more``; None: no limit."""
        self._buffer = Fetched((), (), (), start, more=True)
        self._at = 0

    @property
    def waiting(self) -> int:
        """Number of fetched messages that are not taken yet."""
        return len(self._buffer.items) - self._at

    @property
    def done(self) -> bool:
        """Whether the end is reached and everything was taken."""
        return self.end is not None and self.passed >= self.end and not self.waiting

    @property
    def bound(self) -> int | None:
        """Commit log offset up to which this queue has no message but the fetched ones; None: no
        limit."""
        if not self.waiting:
            return None
        if self._more:
            return self.last
        return None if self._seen is None else max(self.last, self._seen - 1)

    @property
    def last(self) -> int:
        """Commit log offset of the last fetched message; only while some wait."""
        return int(self._buffer.commitlog_offsets[-1])

    def fill(self, count: int, log_end: int | None = None) -> None:
        """Fetch if no message is left; blocks for the disk only.

        ``log_end``: all messages before this log offset are readable; others are left for later.
        """
        while not self.waiting:
            room = count if self.end is None else min(count, self.end - self._next)
            if room <= 0:
                self.passed = max(self.passed, self.end or 0)
                self._more = False
                return
            fetched = self._fetch(self.queue_id, self._next, room)
            self.unreadable += fetched.unreadable
            kept = len(fetched.items)
            if self.end is not None:
                kept = bisect_right(fetched.queue_offsets, self.end - 1)
            self._next = fetched.next_offset
            if self.end is not None:
                self._next = min(self._next, self.end)
            self._more = fetched.more and self._next != self.end
            self._seen = log_end
            if log_end is not None and not fetched.unreadable:  # else what is left counts twice
                before = bisect_left(fetched.commitlog_offsets, log_end)
                if before < kept:
                    kept = before
                    self._next, self._more = int(fetched.queue_offsets[kept]), False
            self._buffer = fetched._replace(
                queue_offsets=fetched.queue_offsets[:kept],
                commitlog_offsets=fetched.commitlog_offsets[:kept],
                items=fetched.items[:kept],
            )
            self._at = 0
            if not kept:
                self.passed = self._next
            if not self._more:
                return

    def look_for_more(self, log_end: int) -> None:
        """See whether messages before a log offset came after those that are fetched and wait."""
        if not self.waiting or self._more:
            return
        self._seen = log_end
        if self._end_now() > self._next:
            following = self._fetch(self.queue_id, self._next, 1)
            places = following.commitlog_offsets
            self._more = bool(places[0] < log_end) if len(places) else following.more

    def upto(self, commitlog_offset: int | None) -> int:
        """Number of fetched messages at or before a commit log offset; None: all."""
        if commitlog_offset is None:
            return self.waiting
        offsets = self._buffer.commitlog_offsets
        return bisect_right(offsets, commitlog_offset, self._at) - self._at

    def peek(self, count: int) -> tuple[Sequence[int], Sequence[Any]]:
        """Log offsets and items of the next ``count`` messages, without taking them."""
        part = slice(self._at, self._at + count)
        return self._buffer.commitlog_offsets[part], self._buffer.items[part]

    def take(self, count: int) -> None:
        """Take ``count`` of the fetched messages."""
        if count:
            self._at += count
            self.passed = (
                self._buffer.queue_offsets[self._at - 1] + 1 if self.waiting else self._next
            )
