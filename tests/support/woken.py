"""A waiter for a store's end, and whether a put wakes it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from storage.store import MessageStore

PATIENCE_S = 5.0


def is_rung_by(store: MessageStore, put: Callable[[], object]) -> bool:
    """Put while a thread waits for messages of T; returns whether it came back."""
    end = store.log_end
    woken = threading.Event()

    def wait() -> None:
        while store.wait(end, 10_000, {"T"}) <= end:
            pass
        woken.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not store._has_waiters():
        pass
    assert put()
    waiting.join(PATIENCE_S)
    return woken.is_set()
