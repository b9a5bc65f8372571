"""What goes with a gate that its holder does not let go of after each put: asking, and noticing.

Whoever fails to take the gate stores a new value in the page's word GATE_WANTED; the holder
compares it with the last one that it saw. A value that only changes needs nobody to clear it, so
askers lose nothing by storing at the same time.
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

_LOOK_SECONDS: Final = 2e-3
_MAGIC: Final = SHARED_STATE_MAGIC.to_bytes(8, sys.byteorder)


def change_unmapped(root: Path, word: int) -> None:
    """Give GATE_WANTED or CONFIGS another value without having the page mapped, as openers and
    changers of settings do.

    A store without a page of this version has nobody who looks there.
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
    """A daemon thread that notices that a gate is held on to and not used any more.

    It sleeps without waking up while nothing is held on to, and is started with the first time.
    ``look`` is called about each millisecond until it says False: nothing is held on to any more.
    """

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self) -> bool:
        """Look from now on; False if the system gives no thread, as when the interpreter ends.

        Needs the gate's turn.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="gate-idle", daemon=True)
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
                time.sleep(_LOOK_SECONDS)
                if not self._look():
                    break
            if self._stopped:
                return
