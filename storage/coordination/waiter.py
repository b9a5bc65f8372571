"""Waiting for the log to grow: one waker, made at the first wait."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.files.fs import FileSystem

from .shared_state import Word
from .wakeup import LONGEST_SLEEP_MS, Waker

if TYPE_CHECKING:
    from .shared_state import SharedState

_WITHOUT_WAKER_MS: Final = 20


class Waiter:
    """What one opening uses for its waiting thread, and for threads that wake it."""

    def __init__(self, shared: SharedState, root: Path) -> None:
        self._shared = shared
        self._root = root
        self._waker: Waker | None = None
        self._woken = False

    def wait(self, known_log_end: int, timeout_ms: int, topics: Collection[str] | None) -> int:
        """Wait as ``MessageStore.wait``; raises OSError if no waker can be made."""
        words = self._shared.words
        if words[Word.LOG_END] != known_log_end or timeout_ms <= 0:
            return int(words[Word.LOG_END])
        if self._waker is None:
            self._waker = Waker.take(FileSystem(), self._shared, self._root)
        if self._waker is None:  # 256 others wait already
            time.sleep(min(timeout_ms, _WITHOUT_WAKER_MS) / 1000)
            return int(words[Word.LOG_END])
        self._waker.arm(topics)
        try:
            if words[Word.LOG_END] == known_log_end and not self._woken:
                self._waker.sleep(min(timeout_ms, LONGEST_SLEEP_MS))
        finally:
            self._waker.disarm()
            self._woken = False
        return int(words[Word.LOG_END])

    def wake(self) -> None:
        """End the wait of another thread, or its next one."""
        self._woken = True  # before the waker is read: a waiter makes it, then reads this
        waker = self._waker
        if waker is not None:
            waker.wake()

    def close(self) -> None:
        """Give the waker back. Closing twice is fine, also after an interrupted first time."""
        if self._waker is not None:
            self._waker.close()
