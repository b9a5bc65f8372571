"""Limits of a member of a group; shared by the threads of its listener."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from storage.read.message_rows import MessageRows, offset_at

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

_queue_offset = attrgetter("queue_offset")


class Quota:
    """A number of messages, and an end for each queue.

    ``most`` None is no limit; messages for which ``wants`` is true count, None is all messages.
    ``ends`` are the ends of the queues, exclusive: None is no end, and a queue that is missing
    there ends before its first message.
    """

    def __init__(
        self,
        most: int | None,
        ends: "Mapping[MessageQueue, int] | None",
        wants: "Callable[[MessageExt], bool] | None" = None,
    ) -> None:
        self.ends = ends
        self._wants = wants
        self._left = most
        self._stopped = False
        self._changed = threading.Condition()  # guards the fields above and below
        self._busy: Counter[MessageQueue] = Counter()
        self._consumed = 0
        self._begun: dict[MessageQueue, int] = {}  # the last message of each, where some count

    @property
    def limited(self) -> bool:
        """Whether there is a number or an end."""
        return self._left is not None or self.ends is not None

    @property
    def used_up(self) -> bool:
        """Whether the number is reached and the listener has finished all messages."""
        with self._changed:
            return self._left == 0 and not self._busy.total()

    @property
    def consumed(self) -> int:
        """Number of consumed messages, whatever their outcome."""
        with self._changed:
            return self._consumed

    def stop(self) -> None:
        """Start no further message."""
        with self._changed:
            self._stopped = True

    def enter(self, queue: "MessageQueue", messages: "Sequence[MessageExt]") -> int:
        """Number of the messages that may be consumed now; call ``leave`` afterwards.

        If the number is reached, they end with the last message that counts.
        """
        count = len(messages)
        if self.ends is not None:
            count = _before(messages, self.ends.get(queue, 0))
        # Outside of the lock: a filter may be slow. Meanwhile the remainder can only shrink.
        wanted = self._wanted(messages[:count], self._left) if self._left else ()
        with self._changed:
            self._busy[queue] += 1
            if self._stopped:
                return 0
            if self._left is None:
                return count
            if self._left <= len(wanted):
                count = wanted[self._left - 1] + 1 if self._left else 0
                self._left = 0
            else:
                self._left -= len(wanted)
            if count:
                last = offset_at(messages, count - 1)
                self._begun[queue] = max(last, self._begun.get(queue, 0))
            return count

    def _wanted(self, messages: "Sequence[MessageExt]", most: int) -> Sequence[int]:
        """Indexes of the first messages that count."""
        wants = self._wants
        if wants is None:
            return range(min(most, len(messages)))
        return list(islice((i for i, one in enumerate(messages) if _holds(wants, one)), most))

    def leave(self, queue: "MessageQueue", count: int) -> None:
        """Record that ``count`` of the messages that ``enter`` allowed are finished."""
        with self._changed:
            self._consumed += count
            self._busy[queue] -= 1
            self._changed.notify_all()

    def wait_for_others(self, queue: "MessageQueue") -> None:
        """Wait until no thread is busy with a queue."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy[queue])

    def ends_with(self, queue: "MessageQueue", last: int) -> bool:
        """Whether no message after this offset may be consumed."""
        with self._changed:
            at_end = self.ends is not None and last + 1 >= self.ends.get(queue, 0)
            return at_end or self._left == 0

    def bound(self, queue: "MessageQueue", offset: int) -> int | None:
        """The offset that may be committed instead of ``offset``; None for none.

        At most the end of the queue. If the number is reached, at most the offset after the last
        started message, as messages that were left out after it are not passed.
        """
        with self._changed:
            if self.ends is not None:
                if queue not in self.ends:
                    return None
                offset = min(offset, self.ends[queue])
            if self._left != 0:
                return offset
            begun = self._begun.get(queue)
            return None if begun is None else min(offset, begun + 1)


def _before(messages: "Sequence[MessageExt]", end: int) -> int:
    """How many of the messages lie before an offset."""
    if isinstance(messages, MessageRows):
        return bisect_left(messages.offsets, end)
    return bisect_left(messages, end, key=_queue_offset)


def _holds(wants: "Callable[[MessageExt], bool]", message: "MessageExt") -> bool:
    try:
        return wants(message)
    except Exception:  # noqa: BLE001 - such as an unreadable body: the handler reports it
        return True
