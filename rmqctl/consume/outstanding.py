"""Messages that a listener has done with while their outcome is still under way.

A call of the listener is over before the client has sent back what failed in it, and before it has
noted what succeeded. Whoever gives a queue up in between would have those come again.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from client.listener.process_queue import ProcessQueue
    from storage.format.message import MessageExt, MessageQueue

_LONGEST_S: Final = 3.0
"""What no broker takes back stays with the client, which tries again after 5 s."""
_LOOK_EACH_S: Final = 0.001
_PRUNE_AT: Final = 4_096


class Outstanding:
    """Offsets of messages that were consumed, until their process queue is rid of them.

    Safe for threads.
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
        """Note that messages are being consumed."""
        with self._lock:
            offsets = self._offsets.setdefault(queue, set())
            if len(offsets) >= _PRUNE_AT and process_queue is not None:
                offsets &= process_queue.held(offsets)
            offsets.update(message.queue_offset for message in messages)

    def take_back(self, queue: "MessageQueue", messages: "Sequence[MessageExt]") -> None:
        """Note that messages were not consumed after all."""
        with self._lock:
            self._offsets[queue].difference_update(message.queue_offset for message in messages)

    def wait(
        self, queue: "MessageQueue", process_queue: "ProcessQueue", settle: Callable[[], None]
    ) -> None:
        """Wait until the outcome of all of them is noted, or the queue is somebody else's.

        ``settle`` notes what has ended. Looks each millisecond: the client tells nobody.
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
