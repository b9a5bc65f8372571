"""Syncing to the device. All functions block, and raise OSError.

Any POSIX system: ``msync``, then ``fsync``, or ``F_FULLFSYNC`` where there is one. POSIX does not
say that ``fsync`` writes what was stored to a map. macOS's ``fsync`` leaves the data in the memory
of the device.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from . import form

_FULL: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_MS_SYNC: Final = {"darwin": 0x10, "freebsd": 0, "openbsd": 2}
"""Of <sys/mman.h>, by system; the others have 4."""
_NOT_THERE: Final = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL)


def _sync_data(fd: int) -> None:
    os.fdatasync(fd)


def _sync_whole(fd: int) -> None:
    os.fsync(fd)


def _sync_by_posix(fd: int) -> None:
    info = os.fstat(fd)
    if info.st_size and stat.S_ISREG(info.st_mode):
        _sync_maps(fd, info.st_size)
    if _FULL is not None:
        try:
            fcntl.fcntl(fd, _FULL)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
        else:
            return
    os.fsync(fd)


@cache
def _libc() -> Any:
    import ctypes  # a store that only appends does not need it

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    return libc


def _sync_maps(fd: int, size: int) -> None:
    """Hand what any process has stored to a map of the file to the file system.

    Python's maps sync only themselves, and only if they are writable.
    """
    import ctypes

    libc = _libc()
    length = ctypes.c_size_t(size)
    at = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_longlong(0))
    if at == ctypes.c_void_p(-1).value:
        number = ctypes.get_errno()
        if number == errno.EACCES:  # it is open for writing only: nothing is stored to its maps
            return
        raise OSError(number, os.strerror(number))
    flag = next((_MS_SYNC[name] for name in _MS_SYNC if sys.platform.startswith(name)), 4)
    failed = libc.msync(ctypes.c_void_p(at), length, flag)
    number = ctypes.get_errno()
    libc.munmap(ctypes.c_void_p(at), length)
    if failed:
        raise OSError(number, os.strerror(number))


def _sync_file_system(top: Path) -> None:
    import ctypes

    fd = os.open(top, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc().syncfs(fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(top))
    finally:
        os.close(fd)


def _sync_one_by_one(top: Path) -> None:
    for folder, _, names in os.walk(top, topdown=False):
        for path in (*(Path(folder, name) for name in names), Path(folder)):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                continue
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _sync_by_posix(fd)
            finally:
                os.close(fd)


sync_data: Final = form(_sync_data, _sync_by_posix)
"""Sync an open file's bytes and length."""
sync_whole: Final = form(_sync_whole, _sync_by_posix)
"""Sync an open file with all that is known of it, or the names in an open folder."""
sync_all_below: Final = form(_sync_file_system, _sync_one_by_one)
"""Sync all files and folders below a folder, and perhaps more of its file system."""
