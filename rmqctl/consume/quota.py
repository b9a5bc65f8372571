"""How much a member of a group may still consume; shared by the threads of its listener."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

_queue_offset = attrgetter("queue_offset")


class Quota:
    """A number of messages, and an end for each queue.

    ``most`` None is no limit; it counts those messages for which ``wants`` holds, None is all.
    ``ends`` are the offsets before which queues stop: None is no end, and a queue that is not
    among them ends before its first message.
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
        """Whether the number is reached, and all of it is out of the listener's hands."""
        with self._changed:
            return self._left == 0 and not self._busy.total()

    @property
    def consumed(self) -> int:
        """Messages that were consumed, with whatever outcome."""
        with self._changed:
            return self._consumed

    def stop(self) -> None:
        """Let nothing be begun any more."""
        with self._changed:
            self._stopped = True

    def enter(self, queue: "MessageQueue", messages: "Sequence[MessageExt]") -> int:
        """How many of the messages may be consumed now; ``leave`` has to follow.

        They end with the last one that counts, when the number is reached with it.
        """
        count = len(messages)
        if self.ends is not None:
            count = bisect_left(messages, self.ends.get(queue, 0), key=_queue_offset)
        # Outside of the lock: a filter may take long. What is left can only become less meanwhile.
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
                last = messages[count - 1].queue_offset
                self._begun[queue] = max(last, self._begun.get(queue, 0))
            return count

    def _wanted(self, messages: "Sequence[MessageExt]", most: int) -> Sequence[int]:
        """Where the first messages that count are."""
        wants = self._wants
        if wants is None:
            return range(min(most, len(messages)))
        return list(islice((i for i, one in enumerate(messages) if _holds(wants, one)), most))

    def leave(self, queue: "MessageQueue", count: int) -> None:
        """Tell that ``count`` of what ``enter`` allowed are done."""
        with self._changed:
            self._consumed += count
            self._busy[queue] -= 1
            self._changed.notify_all()

    def wait_for_others(self, queue: "MessageQueue") -> None:
        """Wait until nobody is busy with a queue."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy[queue])

    def ends_with(self, queue: "MessageQueue", last: "MessageExt") -> bool:
        """Whether nothing behind a message may be consumed."""
        with self._changed:
            at_end = self.ends is not None and last.queue_offset + 1 >= self.ends.get(queue, 0)
            return at_end or self._left == 0

    def bound(self, queue: "MessageQueue", offset: int) -> int | None:
        """How far progress up to ``offset`` may be noted; None if none may be.

        Up to the queue's end; and where the number is reached, up to the last message that was
        begun, as what was left out behind it is not passed.
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


def _holds(wants: "Callable[[MessageExt], bool]", message: "MessageExt") -> bool:
    try:
        return wants(message)
    except Exception:  # noqa: BLE001 - a body that can not be read, say: the handler tells of it
        return True
