"""Byte-range locks of one open file that the kernel releases when their process dies.

Open-file-description (OFD) locks: unlike classic POSIX locks they belong to one open descriptor, so
closing another descriptor of the file does not lose them. They conflict with Java's POSIX locks
(``FileChannel.tryLock``) as needed.
"""

from __future__ import annotations

import fcntl
import os
import struct
from functools import lru_cache
from typing import Final

_FLOCK: Final = struct.Struct("hhqqi4x")
# Values of <fcntl.h>; the module has them on Linux only.
_GETLK: Final = getattr(fcntl, "F_OFD_GETLK", 36)
_SETLK: Final = getattr(fcntl, "F_OFD_SETLK", 37)
_SETLKW: Final = getattr(fcntl, "F_OFD_SETLKW", 38)


def set_lock(fd: int, kind: int, start: int, length: int) -> None:
    """Lock or unlock bytes (``kind``: F_RDLCK, F_WRLCK or F_UNLCK). Raises OSError (EAGAIN, EACCES)
    at a conflicting lock. Never blocks."""
    fcntl.fcntl(fd, _SETLK, _request(kind, start, length))


def wait_lock(fd: int, kind: int, start: int, length: int) -> None:
    """The same, waiting as long as it takes. Not interrupted by signals."""
    fcntl.fcntl(fd, _SETLKW, _request(kind, start, length))


def conflicting(fd: int, kind: int, start: int, length: int) -> int | None:
    """The pid of the owner of a conflicting lock: -1 for an OFD lock, 0 across namespaces; None if
    there is none."""
    request = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
    found, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, _GETLK, request))
    return None if found == fcntl.F_UNLCK else int(pid)


@lru_cache(maxsize=256)
def _request(kind: int, start: int, length: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
