"""Orderly queues that wait at a message that fails."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_AGAIN_S: Final = 10.0


class HeldUp:
    """Names the message that an orderly queue waits at: at its first failure, then every 10 s at
    most. Thread-safe."""

    def __init__(
        self, tell: Callable[[str], object], clock: Callable[[], float] = monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()  # guards the field below
        self._told: dict[tuple[str, int], tuple[int, float]] = {}

    def note(self, message: "MessageExt", error: BaseException) -> None:
        """One more failure of a message, which the queue will try again."""
        queue = message.topic, message.queue_id
        with self._lock:
            now = self._clock()
            offset, at = self._told.get(queue, (-1, 0.0))
            if offset == message.queue_offset and now - at < _AGAIN_S:
                return
            self._told[queue] = message.queue_offset, now
        times = message.reconsume_times + 1
        reason = str(error).partition("\n")[0] or type(error).__name__
        self._tell(
            f"{message.topic} {message.queue_id}:{message.queue_offset} failed "
            f"{'once' if times == 1 else f'{times} times'}: {reason}"
        )
