"""Electing the one process that does a kind of work, and its successor when it dies.

Each kind of work has a byte of ``<store>/rmqctl/services.lock``. A candidate waits in the kernel
for the lock of that byte, so the next one takes over at once and no process polls.

    byte 0    the store's own services (services.py), tried at each sync of a writer
    byte 1    the broker's delivery of delayed messages
    byte 2    the broker's questions about half messages
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from storage.format.names import OURS

from .locks import LockFile

SERVICES_LOCK: Final = "services.lock"
STORE_SERVICES: Final = 0
BROKER_SERVICES: Final = 1
TRANSACTION_CHECKS: Final = 2


class Leadership:
    """One thread's claim to one kind of work."""

    def __init__(self, root: Path, place: int) -> None:
        self._place = place
        self._lock = threading.Lock()  # guards the two flags below
        self._file = LockFile(root / OURS / SERVICES_LOCK)
        self._elected = False
        self._closed = False

    @property
    def elected(self) -> bool:
        """Whether this process is the one now."""
        return self._elected

    def wait(self) -> bool:
        """Wait until this process is the one; False if :meth:`close` came first.

        Cannot be interrupted: after ``close`` it may stay in the kernel until the other process
        releases the lock, and then releases it at once.
        """
        try:
            self._file.lock(self._place)
        except (OSError, ValueError):  # closed before it began
            return False
        with self._lock:
            self._elected = not self._closed
            return self._elected

    def close(self) -> None:
        """Let another process take over. Twice is fine."""
        with self._lock:
            self._closed = True
            self._elected = False
            # A wait that is still in the kernel keeps the file, and drops it when it comes back.
            self._file.close()
