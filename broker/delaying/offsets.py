"""How far delayed delivery is, in config/delayOffset.json.

Written every 10 s while something is delivered, and at the end. By another thread than the one that
delivers, because a device takes its time: messages would be late by it. No lock is needed: only the
process that is elected to deliver writes the file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from storage.configs.delay_offsets import load_delay_offsets, save_delay_offsets


class DelayOffsets:
    """The file and its timer. ``delivered`` gives the levels that were delivered from, or loaded.

    Safe for threads.
    """

    def __init__(
        self, root: Path, interval_ms: int, delivered: Callable[[], Mapping[int, int]]
    ) -> None:
        self._root = root
        self._interval_ms = interval_ms
        self._delivered = delivered
        self._lock = threading.Lock()  # one writer; guards the fields below
        self._saved: dict[int, int] = {}
        self._due: int | None = None

    def load(self) -> Mapping[int, int]:
        """Read the file. Raises CorruptFileError."""
        with self._lock:
            self._saved = load_delay_offsets(self._root)
            return self._saved

    def tick(self, now_ms: int) -> int:
        """Write the file if it is time; gives when to call again, ms since the epoch."""
        latest = now_ms + self._interval_ms
        if self._due is None or self._due > latest:  # the start; or the clock was moved back
            self._due = latest
        if self._due <= now_ms:
            self._due = latest
            self.persist()
        return self._due

    def persist(self) -> None:
        """Write the file unless it says so already. Raises StoreNotWritableError."""
        with self._lock:
            offsets = {**self._saved, **self._delivered()}
            if offsets != self._saved:
                save_delay_offsets(self._root, offsets)
                self._saved = offsets
