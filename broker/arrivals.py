"""Waiting for messages, for any number of threads over a store that one thread may wait on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

WaitOnStore = Callable[[int, int, str | None], int]
"""MessageStore.wait: known log end, longest wait in ms, topic or None; gives the log's end."""

POLL_FILES_MS: Final = 100
"""How often a store that is open for reading only is looked at if its end is found in its files."""
POLL_PAGE_MS: Final = 5
"""The same if rmqctl processes write it: one look at a mapped word, 0.2 % of a core."""


class Arrivals:
    """Tells threads that the log has grown.

    One of the waiting threads sleeps on the store, the others on it. While all of them want one
    topic the store wakes us for that topic only.
    """

    def __init__(self, wait_on_store: WaitOnStore, log_end: Callable[[], int]) -> None:
        self._wait_on_store = wait_on_store
        self._log_end = log_end
        self._changed = threading.Condition()  # guards the three fields below
        self._sleeping = False
        self._topics: set[str | None] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether nobody may wait any more."""
        return self._closed

    def now(self) -> int:
        """Give the log's end, to be handed to :meth:`wait` later."""
        return self._log_end()

    def wait(self, known: int, timeout_ms: int, topic: str | None = None) -> int:
        """Wait until the log's end is not ``known`` or the time is over; gives the log's end.

        Comes back at once when closed.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            end = self._log_end()
            left = deadline - time.monotonic()
            if end != known or left <= 0 or self._closed:
                return end
            with self._changed:
                self._topics.add(topic)
                if self._sleeping:
                    self._changed.wait(left)
                    continue
                self._sleeping = True
                only = topic if len(self._topics) == 1 else None
            try:
                self._wait_on_store(known, max(1, int(left * 1000)), only)
            finally:
                with self._changed:
                    self._sleeping = False
                    self._changed.notify_all()

    def close(self) -> None:
        """Have everybody who waits come back; blocks until nobody sleeps on the store, a second."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._sleeping)


def polling(log_end: Callable[[], int], interval_ms: Callable[[], int]) -> WaitOnStore:
    """Make a wait for a store that can only be looked at, every ``interval_ms``.

    Readers are not rung: asking for that would be a write.
    """

    def wait(known: int, timeout_ms: int, _topic: str | None) -> int:
        deadline = time.monotonic() + timeout_ms / 1000
        while (end := log_end()) == known and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, interval_ms() / 1000))
        return end

    return wait
