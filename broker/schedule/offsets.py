"""Offsets of delayed delivery, in config/delayOffset.json, and what it is about to do.

The offsets are written with each batch, so that a Java broker that opens the store after a kill
delivers one batch again at most. The notes are written before each batch
(storage.configs.delivery_notes), so that rmqctl delivers none again. Neither waits for the device:
another thread syncs every 10 s while something is delivered, and at the end, because the delivering
thread would be late. Only the process that is elected to deliver writes the files.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from storage.configs.delay_offsets import DelayOffsetFile
from storage.configs.delivery_notes import DeliveryNote, DeliveryNotes

logger = logging.getLogger("rmqctl.broker")


class DelayOffsets:
    """The files and their timer. ``delivered`` gives the levels with deliveries, or loaded ones.

    Safe for threads.
    """

    def __init__(
        self, root: Path, interval_ms: int, delivered: Callable[[], Mapping[int, int]]
    ) -> None:
        self._file = DelayOffsetFile(root)
        self._notes = DeliveryNotes(root)
        self._interval_ms = interval_ms
        self._delivered = delivered
        self._lock = threading.Lock()  # one writer; guards the fields below
        self._saved: dict[int, int] = {}
        self._due: int | None = None
        self._cannot_note = False

    def load(self) -> Mapping[int, int]:
        """Read the offsets. Raises CorruptFileError."""
        with self._lock:
            self._saved = self._file.load()
            return self._saved

    def notes(self) -> Mapping[int, DeliveryNote]:
        """Read what the previous process was about to do."""
        try:
            return self._notes.read()
        except OSError:
            logger.exception("what was delivered last is looked for in more of the log")
            return {}

    def intend(self, level: int, offset: int, log_offset: int) -> None:
        """Note what a level is about to deliver."""
        try:
            self._notes.write(level, DeliveryNote(offset, log_offset))
        except OSError:  # the previous note is valid, too
            if not self._cannot_note:
                self._cannot_note = True
                logger.exception("delivery goes on without notes: after a kill it takes longer")

    def write(self) -> None:
        """Write the delivery offsets, without waiting for the device where that is possible."""
        with self._lock:
            offsets = {**self._saved, **self._delivered()}
            if offsets != self._saved:
                self._file.write(offsets)
                self._saved = offsets

    def tick(self, now_ms: int) -> int:
        """Sync the file if it is time; gives when to call again, ms."""
        latest = now_ms + self._interval_ms
        if self._due is None or self._due > latest:  # the start; or the clock was moved back
            self._due = latest
        if self._due <= now_ms:
            self._due = latest
            self.persist()
        return self._due

    def persist(self) -> None:
        """Write the file unless it is up to date, and sync it. Raises StoreNotWritableError."""
        self.write()
        self._file.sync()

    def close(self) -> None:
        """Release the files."""
        self._notes.close()
        self._file.close()
