"""Byte-range locks of one open file that the kernel releases when their process dies.

Linux: open-file-description (OFD) locks. Unlike classic POSIX locks they belong to one open
descriptor, so closing another descriptor of the file does not lose them. They conflict with Java's
POSIX locks (``FileChannel.tryLock``) as needed.

Any POSIX system: locks of whole processes, see :mod:`.process_locks`. Locks of both forms exclude
each other, and each form tells the other from Java's. ``owner`` is any object; locks of another
owner conflict, in the same process too. Threads that share an owner do not exclude one another.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from . import LINUX, form, process_locks
from .process_locks import LOOKS, OURS, mark_of

_FLOCK: Final = struct.Struct("hhqqi4x")
# Values of <fcntl.h>; the module has them on Linux only.
_GETLK: Final = getattr(fcntl, "F_OFD_GETLK", 36)
_SETLK: Final = getattr(fcntl, "F_OFD_SETLK", 37)
_SETLKW: Final = getattr(fcntl, "F_OFD_SETLKW", 38)

HAS_LOCKS_OF_DESCRIPTORS: Final = LINUX
"""Whether a lock belongs to its descriptor: compiled code may take it, and any close of that
descriptor releases it."""


def _open(path: str, owner: object, opener: Callable[[], int], *, writable: bool) -> int:
    del path, owner, writable
    return opener()


def _close(fd: int, owner: object) -> None:
    del owner
    os.close(fd)


def _set(fd: int, owner: object, kind: int, start: int, length: int) -> None:
    del owner
    fcntl.fcntl(fd, _SETLK, _request(kind, start, length))


def _wait(fd: int, owner: object, kind: int, start: int, length: int) -> None:
    del owner
    fcntl.fcntl(fd, _SETLKW, _request(kind, start, length))


def _conflicting(fd: int, owner: object, kind: int, start: int, length: int) -> int | None:
    del owner
    pid = None
    for _ in range(LOOKS):
        pid = _pid_of_conflict(fd, kind, start, length)
        if pid is None or pid <= 0:
            return pid
        if _pid_of_conflict(fd, fcntl.F_WRLCK, mark_of(pid), 1) == pid:
            return OURS  # of a process that has locks of the other form
    return pid


def _pid_of_conflict(fd: int, kind: int, start: int, length: int) -> int | None:
    request = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
    found, _, at, size, pid = _FLOCK.unpack(fcntl.fcntl(fd, _GETLK, request))
    if found == fcntl.F_UNLCK or (start == mark_of(pid) and (at, size) != (start, 1)):
        return None
    return int(pid)


@lru_cache(maxsize=256)
def _request(kind: int, start: int, length: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)


open_locked: Final = form(_open, process_locks.open_locked)
"""Open a file that is to be locked, by ``opener``; the descriptor may be one of another owner of
this process. Raises OSError."""
close_locked: Final = form(_close, process_locks.close_locked)
"""Release all locks of the owner in one step, and the descriptor."""
set_lock: Final = form(_set, process_locks.set_lock)
"""Lock or unlock bytes (F_RDLCK, F_WRLCK or F_UNLCK). Raises OSError (EAGAIN, EACCES) at a
conflicting lock, which leaves what the owner has as it is. Never blocks."""
wait_lock: Final = form(_wait, process_locks.wait_lock)
"""The same, waiting as long as it takes."""
conflicting: Final = form(_conflicting, process_locks.conflicting)
"""The pid of the owner of a conflicting lock, 0 across namespaces, OURS for a lock of rmqctl; None
if there is none."""
close_unlocked: Final = form(os.close, process_locks.close_unlocked)
"""Close a descriptor of a file on which this process may have locks by another one."""
