"""Messages that a listener has finished but whose outcome is not recorded yet.

A listener call returns before the client sends failed messages back and records successes. A queue
that is given up in between would deliver those messages again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from client.listener.process_queue import run_of
from storage.read.message_rows import MessageRows

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from storage.format.message import MessageExt, MessageQueue

Offsets: TypeAlias = "range | list[int]"
_LONGEST_S: Final = 3.0
"""The client keeps a message that no broker takes back, and tries again after 5 s."""
_LOOK_EACH_S: Final = 0.001
_PRUNE_AT: Final = 64
"""Calls whose offsets are kept for a queue before those of finished messages are forgotten."""


class Outstanding:
    """Offsets of consumed messages that are still in their process queue.

    Thread-safe. The process queue is asked for single messages only at the end: it sorts them then,
    and is slow from there on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: dict[MessageQueue, list[Offsets]] = {}
        """Ascending in each call of the listener, or with the largest one last."""

    def add(
        self,
        queue: "MessageQueue",
        messages: "Sequence[MessageExt]",
        process_queue: "ProcessQueue | None",
    ) -> None:
        """Record that messages are being consumed."""
        with self._lock:
            calls = self._calls.setdefault(queue, [])
            if len(calls) >= _PRUNE_AT and process_queue is not None:
                calls[:] = _unfinished(calls, process_queue)
            calls.append(_offsets_of(messages))

    def take_back(self, queue: "MessageQueue", messages: "Sequence[MessageExt]") -> None:
        """Record that messages were not consumed after all."""
        with self._lock:
            gone = {message.queue_offset for message in messages}
            left = ([one for one in each if one not in gone] for each in self._calls[queue])
            self._calls[queue] = list(filter(None, left))

    def wait(
        self, queue: "MessageQueue", process_queue: "ProcessQueue", settle: Callable[[], None]
    ) -> None:
        """Wait until the outcome of all messages is recorded, or the queue has another owner.

        ``settle`` records finished messages. Polls every millisecond: the client sends no
        notification.
        """
        end = time.monotonic() + _LONGEST_S
        while True:
            settle()
            with self._lock:
                begun = _unfinished(self._calls.get(queue, ()), process_queue)
                offsets = process_queue.held(set(chain(*begun))) if begun else set()
                self._calls[queue] = [sorted(offsets)] if offsets else []
            if not offsets or process_queue.dropped or time.monotonic() > end:
                return
            time.sleep(_LOOK_EACH_S)


def _unfinished(calls: "Sequence[Offsets]", process_queue: "ProcessQueue") -> list[Offsets]:
    """The calls that may have unfinished messages: those that end at the first one or later."""
    first = process_queue.first_offset()
    return [] if first is None else [each for each in calls if each[-1] >= first]


def _offsets_of(messages: "Sequence[MessageExt]") -> Offsets:
    if isinstance(messages, MessageRows):
        return messages.offsets
    first = messages[0].queue_offset
    ascending = run_of(messages, first - 1)
    if ascending is not None and ascending[0] - first + 1 == len(messages):
        return range(first, ascending[0] + 1)
    return sorted(message.queue_offset for message in messages)
