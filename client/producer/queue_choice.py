"""Choosing the queue of a plain send: in turn, and away from a broker that has just failed.

ThreadLocalIndex and TopicPublishInfo.selectOneMessageQueue.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.format.message import MessageQueue

_POSITIVE_MASK: Final = 0x7FFFFFFF


class _Turns(threading.local):
    def __init__(self) -> None:
        self.by_topic: dict[str, Iterator[int]] = {}


class ThreadLocalIndex:
    """A counter per thread and topic; each begins anywhere, else all single sends would use queue
    0.

    ``start`` gives the number to begin with, 0 .. 2^31 - 1.
    """

    def __init__(self, start: int | None = None) -> None:
        self._start = start
        self._local = _Turns()

    def turn(self, topic: str) -> Iterator[int]:
        """Give this thread's counter, which counts up with each ``next``: 0 .. 2^31 - 1,
        then from 0 again."""
        turns = self._local.by_topic
        turn = turns.get(topic)
        if turn is None:
            start = random.getrandbits(31) if self._start is None else self._start
            turn = turns[topic] = map(_POSITIVE_MASK.__and__, itertools.count(start + 1))
        return turn

    def increment_and_get(self, topic: str) -> int:
        """Count up and give the number."""
        return next(self.turn(topic))


class QueueChoice:
    """Round robin over the queues of a topic, thread by thread."""

    def __init__(self, index: ThreadLocalIndex | None = None) -> None:
        self.index: Final = index or ThreadLocalIndex()

    def select(
        self, queues: Sequence[MessageQueue], last_broker_name: str | None = None
    ) -> MessageQueue:
        """Give the next queue; after a failure the next one of another broker, if there is one.

        ``queues`` are those of one topic, at least one.
        """
        if last_broker_name is not None:
            for _ in queues:
                queue = self.select(queues)
                if queue.broker_name != last_broker_name:
                    return queue
        return queues[next(self.index.turn(queues[0].topic)) % len(queues)]
