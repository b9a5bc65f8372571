"""Messages that a listener has finished but whose outcome is not recorded yet.

A listener call returns before the client sends failed messages back and records successes. A queue
that is given up in between would deliver those messages again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from storage.format.message import MessageExt, MessageQueue

_LONGEST_S: Final = 3.0
"""The client keeps a message that no broker takes back, and tries again after 5 s."""
_LOOK_EACH_S: Final = 0.001
_PRUNE_AT: Final = 4_096


class Outstanding:
    """Offsets of consumed messages that are still in their process queue.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._offsets: dict[MessageQueue, set[int]] = {}

    def add(
        self,
        queue: "MessageQueue",
        messages: "Sequence[MessageExt]",
        process_queue: "ProcessQueue | None",
    ) -> None:
        """Record that messages are being consumed."""
        with self._lock:
            offsets = self._offsets.setdefault(queue, set())
            if len(offsets) >= _PRUNE_AT and process_queue is not None:
                offsets &= process_queue.held(offsets)
            offsets.update(message.queue_offset for message in messages)

    def take_back(self, queue: "MessageQueue", messages: "Sequence[MessageExt]") -> None:
        """Record that messages were not consumed after all."""
        with self._lock:
            self._offsets[queue].difference_update(message.queue_offset for message in messages)

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
                offsets = self._offsets.get(queue, set())
                offsets &= process_queue.held(offsets)
            if not offsets or process_queue.dropped or time.monotonic() > end:
                return
            time.sleep(_LOOK_EACH_S)
