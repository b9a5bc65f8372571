"""Waiting for messages, for any number of threads over a store that one thread may wait on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Final, Protocol

from storage.deadlines import waitable

POLL_FILES_MS: Final = 100
"""How often the end of a store that is open for reading only is computed from its files."""
POLL_PAGE_MS: Final = 5
"""The same if rmqctl processes write it: one read of a mapped word, 0.2 % of a core."""


class Growing(Protocol):
    """A log that one thread may wait on: MessageStore, or :class:`Polled`."""

    def wait(
        self, known_log_end: int, timeout_ms: int, topics: Collection[str] | None = None
    ) -> int:
        """Wait for records of topics; gives the log's end. May return early."""
        ...

    def wake(self) -> None:
        """Make the waiting thread return, or the next one that waits."""
        ...


class MessageArrivals:
    """Notifies threads that the log has grown.

    One of the waiting threads sleeps on the store, for the topics of all; the others sleep on it. A
    thread with another topic wakes it, so that the sleep covers that topic too.
    """

    def __init__(self, store: Growing, log_end: Callable[[], int]) -> None:
        self._store = store
        self._log_end = log_end
        self._lock = threading.RLock()  # guards the four fields below
        self._changed = threading.Condition(self._lock)
        self._waiting: list[frozenset[str] | None] = []
        self._sleeping = False
        self._slept_for: frozenset[str] | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether waiting has ended for all threads."""
        return self._closed

    def now(self) -> int:
        """Give the log's end, for :meth:`wait` later."""
        return self._log_end()

    def wait(
        self,
        known: int,
        timeout_ms: int,
        topics: Collection[str] | None = None,
        until: Callable[[], bool] | None = None,
    ) -> int:
        """Wait until the log's end is not ``known`` or the time is over; gives the log's end.

        Records of other topics than ``topics`` wake no thread. ``until`` ends the wait too; it is
        checked after :meth:`wake`. Returns at once when closed.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        wanted = None if topics is None else frozenset(topics)
        with self._lock:
            self._waiting.append(wanted)
        try:
            while True:
                with self._lock:
                    end = self._log_end()
                    left = deadline - time.monotonic()
                    if end != known or left <= 0 or self._closed or (until and until()):
                        return end
                    if self._sleeping:
                        if not _covers(self._slept_for, wanted):
                            self._store.wake()
                        self._changed.wait(waitable(left))
                        continue
                    self._sleeping = True
                    self._slept_for = _union(self._waiting)
                try:
                    end = self._store.wait(known, max(1, int(left * 1000)), self._slept_for)
                finally:
                    with self._lock:
                        self._sleeping = False
                        if len(self._waiting) > 1 or self._closed:
                            self._changed.notify_all()
                if end != known:
                    return end
        finally:
            with self._lock:
                self._waiting.remove(wanted)

    def wake(self) -> None:
        """Make all waiting threads check again."""
        with self._lock:
            if self._sleeping:
                self._store.wake()
            self._changed.notify_all()

    def close(self) -> None:
        """Make all waiting threads return; blocks until no thread sleeps on the store."""
        with self._lock:
            self._closed = True
            while self._sleeping:
                self._store.wake()
                self._changed.wait(1)
            self._changed.notify_all()


def _union(sets: Collection[frozenset[str] | None]) -> frozenset[str] | None:
    known = [topics for topics in sets if topics is not None]
    return frozenset().union(*known) if len(known) == len(sets) else None


def _covers(slept_for: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    return slept_for is None or (wanted is not None and wanted <= slept_for)


class Polled:
    """A store that can only be polled, every ``interval_ms``.

    Readers are not woken: registering for that would be a write.
    """

    def __init__(self, log_end: Callable[[], int], interval_ms: Callable[[], int]) -> None:
        self._log_end = log_end
        self._interval_ms = interval_ms
        self._woken = threading.Event()

    def wait(
        self, known_log_end: int, timeout_ms: int, topics: Collection[str] | None = None
    ) -> int:
        """See Growing.wait; topics are ignored."""
        del topics
        deadline = time.monotonic() + timeout_ms / 1000
        while (end := self._log_end()) == known_log_end:
            left = deadline - time.monotonic()
            if left <= 0 or self._woken.wait(min(left, self._interval_ms() / 1000)):
                break
        self._woken.clear()
        return end

    def wake(self) -> None:
        """See Growing.wake."""
        self._woken.set()
