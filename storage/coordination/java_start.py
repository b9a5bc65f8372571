"""When a Java broker last started on a store: the time of its lock file, checked at every read.

Java writes the file at each start. A look-up by name takes as long as reading a message, so the
file is kept open for its status only (closing that releases no lock) and its change time is
compared: a write, rename, deletion or replacement changes it. If it is unchanged, what is known of
the file still holds. Only the replacement of a folder above it goes unnoticed; so the name is
looked up every tenth of a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from storage import native
from storage.platform.open_files import open_to_look

_LOOK_SECONDS: Final = 0.1
_HALF: Final = 1 << 63
LockFile = tuple[int, int, int, float]
"""Descriptor (-1: none), its change time (ns), the answer (ns), until when (s) the name is not
looked up again."""
Steady = tuple[Any, LockFile | None, int, int]
"""Words of the shared state, what is known of the lock file (None: it is not compared), when the
shared state was made, the generation of files. Compiled code reads it
(storage/native/reading/steady.c)."""


def lock_mtime(lock_path: str) -> int:
    """When Java last started on the store: the ns time of its lock file, 0 if there is none.

    As a signed word of 64 bits: a time after the year 2262 wraps round, which compares as well.
    """
    try:
        return as_word(os.stat(lock_path).st_mtime_ns)  # noqa: PTH116 - a reader asks at every read
    except OSError:
        return 0


def as_word(number: int) -> int:
    """A number of 64 bits or a time as a signed word: what is too large wraps round."""
    return (number + _HALF) % (2 * _HALF) - _HALF


def _changed_ns(fd: int) -> int:
    return os.fstat(fd).st_ctime_ns


changed_ns: Final = native.form("changed_ns", _changed_ns)


class JavaStart:
    """The time of one store's lock file. Thread-safe."""

    def __init__(self, lock_path: str, clock: Callable[[], float] = monotonic) -> None:
        self._path = lock_path
        self._clock = clock  # seconds
        self._lock = threading.Lock()  # guards _opened
        self._opened: list[int] = []
        self.known: LockFile = (-1, 0, 0, 0.0)
        """The file as it was looked up last."""

    def ns(self) -> int:
        """The same as :func:`lock_mtime`."""
        fd, changed, modified, until = self.known
        if fd >= 0 and self._clock() < until and changed_ns(fd) == changed:
            return modified
        return self._look_up()

    def close(self) -> None:
        """Release the file; :meth:`ns` opens it again."""
        with self._lock:
            self.known = (-1, 0, 0, 0.0)
            opened, self._opened = self._opened, []
        for fd in opened:
            os.close(fd)

    def _look_up(self) -> int:
        """Look the file up by name, and keep it if it is another one than before."""
        with self._lock:
            fd, until = self.known[0], self._clock() + _LOOK_SECONDS
            self.known = (-1, 0, 0, 0.0)
            try:
                info = os.stat(self._path)  # noqa: PTH116 - a reader asks at every read
                if fd < 0 or not os.path.samestat(os.fstat(fd), info):
                    fd = self._open()
                    info = os.fstat(fd) if fd >= 0 else info
            except OSError:
                return 0
            modified = as_word(info.st_mtime_ns)
            self.known = (fd, info.st_ctime_ns, modified, until)
            return modified

    def _open(self) -> int:
        fd = open_to_look(self._path)
        if fd >= 0:
            self._opened.append(fd)
        return fd
