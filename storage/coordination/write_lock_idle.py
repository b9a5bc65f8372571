"""Requests for a write lock that its holder keeps between puts, and noticing that it is idle.

A process that fails to take the write lock stores a new value in the shared state's word
LOCK_WANTED; the holder compares it with the last value that it read. A word that only changes needs
no clearing, so processes that ask at the same time lose nothing.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage.format.names import OURS

from .shared_state import SHARED_STATE_MAGIC, SHARED_STATE_NAME

_CHECK_SECONDS: Final = 2e-3
_MAGIC: Final = SHARED_STATE_MAGIC.to_bytes(8, sys.byteorder)


def change_unmapped(root: Path, word: int) -> None:
    """Give LOCK_WANTED or CONFIGS another value without mapping the shared state; used by openers
    and by changes of settings.

    A store without a shared state of this version has no process that reads them.
    """
    try:
        fd = os.open(root / OURS / SHARED_STATE_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.pread(fd, 8, 0) == _MAGIC:
            value = time.monotonic_ns().to_bytes(8, sys.byteorder)
            os.pwrite(fd, value, 8 * word)
    finally:
        os.close(fd)


class IdleWatch:
    """A daemon thread that notices that a write lock is kept and not used any more.

    It is started at the first use, and sleeps without waking up while no lock is kept. ``check`` is
    called about each millisecond until it returns False: no lock is kept any more.
    """

    def __init__(self, check: Callable[[], bool]) -> None:
        self._check = check
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self) -> bool:
        """Check from now on; False if the system gives no thread, as when the interpreter ends.

        Needs the write lock's ``thread_mutex``.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="write-lock-idle", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        self._wake.set()
        return True

    def stop(self) -> None:
        """End the thread and wait for it, some milliseconds at most."""
        self._stopped = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while not self._stopped:
                time.sleep(_CHECK_SECONDS)
                if not self._check():
                    break
            if self._stopped:
                return
