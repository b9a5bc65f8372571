"""Files that are asked again and again whether they are still the same.

To look a file up by its name takes as long as to read a message. So it is kept by O_PATH (closing
that lets go of no lock), and asked whether anything at all has happened to it: written, renamed,
deleted, replaced. If not, what is known of it still holds. A folder above it can be exchanged
unseen, and so can the file within the same tick of the file system's clock (4 ms) if it has
another name besides; so the name is looked up every tenth of a second.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from storage import native

_LOOK_SECONDS: Final = 0.1
_PATH_ONLY: Final = getattr(os, "O_PATH", None)


class FileIdent(NamedTuple):
    """What changes when a file is replaced; good for caching, not for deciding what to write."""

    mtime_ns: int
    size: int
    inode: int


def ident_of(path: Path | str) -> FileIdent | None:
    """Tell a file's identity, None if there is none."""
    try:
        return ident_from(os.stat(path))  # noqa: PTH116 - a third of the time, once a message
    except (FileNotFoundError, NotADirectoryError):
        return None


def ident_from(status: os.stat_result) -> FileIdent:
    """Tell a file's identity from what the system says of it."""
    return FileIdent(status.st_mtime_ns, status.st_size, status.st_ino)


class KeptFile:
    """The identity of the file that has a name, asked for often. Thread-safe."""

    def __init__(self, path: str, clock: Callable[[], float] = monotonic) -> None:
        """Keep nothing yet; ``clock`` gives seconds."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()  # guards _opened
        self._opened: list[int] = []
        # descriptor (-1: none), its change time, the answer, until when the name is not asked again
        self._known: tuple[int, int, FileIdent | None, float] = (-1, 0, None, 0.0)

    def ident(self) -> FileIdent | None:
        """The same as :func:`ident_of`: the same object while the file is the same."""
        fd, changed, known, until = self._known
        if fd >= 0 and self._clock() < until:
            compiled = native.compiled
            try:
                now = _changed_ns(fd) if compiled is None else compiled.changed_ns(fd)
            except OSError:  # another thread has found that it was replaced, twice
                now = 0
            if now == changed:
                return known
        return self._look()

    def close(self) -> None:
        """Let go of the file; it can be asked again."""
        with self._lock:
            self._known = (-1, 0, None, 0.0)
            opened, self._opened = self._opened, []
        for fd in opened:
            os.close(fd)

    def __del__(self) -> None:
        self.close()

    def _look(self) -> FileIdent | None:
        """Ask the file of that name, and keep it if it is another one than before."""
        with self._lock:
            fd, _, known, _ = self._known
            until = self._clock() + _LOOK_SECONDS
            self._known = (-1, 0, None, 0.0)
            try:
                info = os.stat(self._path)  # noqa: PTH116 - asked for at every read
                if fd < 0 or not os.path.samestat(os.fstat(fd), info):
                    fd = self._open()
                    info = os.fstat(fd) if fd >= 0 else info
            except (FileNotFoundError, NotADirectoryError):
                return None
            found = ident_from(info)
            if known == found:
                found = known
            self._known = (fd, info.st_ctime_ns, found, until)
            return found

    def _open(self) -> int:
        if _PATH_ONLY is None:
            return -1
        while len(self._opened) > 1:  # another thread may be asking the last one
            os.close(self._opened.pop(0))
        fd = os.open(self._path, _PATH_ONLY | os.O_CLOEXEC)
        self._opened.append(fd)
        return fd


def _changed_ns(fd: int) -> int:
    """The pure form of ``changed_ns`` of storage/native/reading/file_change.c."""
    info = os.fstat(fd)
    return info.st_ctime_ns if info.st_nlink else 0
