"""Bounded waits: closing waits for other threads, where a user's code may block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

MAX_CLOSE_S: Final = 2.5
"""How long closing waits for other threads and processes, all its steps together: it returns within
3 s, its own work included."""


class Deadline:
    """So many seconds from now, shared by all steps that must end within them."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self, reserve: float = 0.0) -> float:
        """Give the seconds that are left, without those that later steps need; 0 or more."""
        return max(0.0, self._end - time.monotonic() - reserve)


def waitable(seconds: float) -> float:
    """Give the seconds that a wait of ``threading`` takes: it refuses those beyond TIMEOUT_MAX,
    some 292 years. For each wait whose length a program or a user chooses."""
    return min(seconds, threading.TIMEOUT_MAX)


@contextmanager
def held_within(lock: threading.Lock | threading.RLock, seconds: float) -> Iterator[bool]:
    """Hold a lock for a block; after so many seconds go on without it, and give False."""
    held = lock.acquire(timeout=waitable(seconds))
    try:
        yield held
    finally:
        if held:
            lock.release()


def ends_within(seconds: float, action: Callable[[], object], name: str) -> bool:
    """Call ``action`` in a thread of its own, because it may block; False if it still runs then.

    It goes on in its thread, a daemon. Where the system gives no thread it is called in this one.
    Its exception is raised here, unless it comes too late.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            raised.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        action()
        return True
    thread.join(waitable(seconds))
    if raised:
        raise raised[0]
    return not thread.is_alive()
