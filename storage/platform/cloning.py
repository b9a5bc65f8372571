"""Whole files and folders in one step: sharing the blocks of a file, exchanging two names.

Any POSIX system has neither: files are linked or copied, and folders are renamed one after the
other.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from . import form

_FICLONE: Final = 0x40049409
_AT_CWD: Final = -100
_EXCHANGE: Final = 2
_CANNOT_EXCHANGE: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM)


def _clone(fd: int, out: int) -> None:
    fcntl.ioctl(out, _FICLONE, fd)


def _refuse_clone(_fd: int, _out: int) -> None:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def _exchange(one: Path, other: Path) -> bool:
    import ctypes

    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(one))


def _refuse_exchange(_one: Path, _other: Path) -> bool:
    return False


clone: Final = form(_clone, _refuse_clone)
"""Make the second open file share all blocks of the first until one of both is written (btrfs, XFS
and others). Raises OSError where that is impossible."""
exchange: Final = form(_exchange, _refuse_exchange)
"""Exchange two folders in one step; False where the system or the file system cannot. Raises
OSError."""
