"""One pull divided among threads: which thread does which part, and what is finished.

The messages of a pull are cut into *requests*, the calls of the listener. Threads that help take
one after the other. Each notes what it has finished in a :class:`WorkerAcks` of its own, which the
process queue has from before the first of them. So a reader of the progress sees everything that is
finished, and a pull that one thread has finished alone is removed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import length_hint
from typing import TYPE_CHECKING

from storage.read.message_rows import MessageRows

from .unreadable_bodies import apart, packed

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

    from .process_queue import Messages, ProcessQueue


class PullBatch:
    """Messages that were pulled together, as a Job of a WorkerPool."""

    __slots__ = (
        "_left",
        "_work",
        "count",
        "messages",
        "packed",
        "process_queue",
        "queue",
        "requests",
    )

    def __init__(
        self,
        messages: Messages,
        batch_size: int,
        process_queue: ProcessQueue,
        queue: MessageQueue,
        work: Callable[[PullBatch], object],
    ) -> None:
        """Cut messages into requests of ``batch_size``, rows of a table into a single one; ``work``
        takes requests until none is left.

        ``messages`` is the very object that was put into the process queue.
        """
        self.messages = messages
        self.process_queue = process_queue
        self.queue = queue
        self._work = work
        self.packed = not isinstance(messages, MessageRows) and packed(messages)
        """Whether any body is compressed, and may be unreadable."""
        # A step of either is atomic in any thread: nothing of Python's own runs in it.
        self.requests: Iterator[Messages]
        self._left: Iterator[object]
        if isinstance(messages, MessageRows):
            self._left = self.requests = iter((messages,))
            self.count = 1
        elif batch_size == 1:
            self._left = iter(messages)
            self.requests = zip(self._left)  # type: ignore[assignment] # of messages
            self.count = len(messages)
        else:
            cut: list[Messages] = [
                messages[i : i + batch_size] for i in range(0, len(messages), batch_size)
            ]
            if self.packed:
                cut = list(apart(cut))
            self._left = self.requests = iter(cut)
            self.count = len(cut)

    @property
    def size(self) -> int:
        """See Job."""
        return len(self.messages)

    def has_more(self) -> bool:
        """See Job.has_more."""
        return length_hint(self._left) > 1

    def work(self) -> None:
        """See Job.work."""
        self._work(self)


class WorkerAcks:
    """What one thread has finished of a pull, and what was not removed yet.

    ``requests`` succeeded, ``given`` failed and were sent back. That thread appends to both, and
    they are taken from under ``ProcessQueue.ack_collector``. ``ended``: the thread has finished its
    work on the pull.
    """

    __slots__ = ("_pulled", "ended", "given", "requests")

    def __init__(self, pulled: PullBatch) -> None:
        self._pulled = pulled
        self.requests: list[Messages] = []
        self.given: list[Messages] = []
        self.ended = False

    def take(self) -> tuple[Sequence[MessageExt], int, int]:
        """Take what is finished; gives how many requests succeeded, and how many messages those
        had.

        For all of a pull the messages are the object that was put.
        """
        requests, given = self.requests, self.given
        count, failed = len(requests), len(given)
        if failed:
            done = [*requests[:count], *given[:failed]]
            del given[:failed]
        elif count == self._pulled.count:
            requests.clear()
            return self._pulled.messages, count, len(self._pulled.messages)
        else:
            done = requests[:count]
        del requests[:count]
        ok = sum(map(len, done[:count]))
        if len(done) == self._pulled.count:
            return self._pulled.messages, count, ok
        return list(chain.from_iterable(done)), count, ok
