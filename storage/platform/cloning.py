"""Whole files and folders in one step: sharing the blocks of a file, exchanging two names."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

_FICLONE: Final = 0x40049409
_AT_CWD: Final = -100
_EXCHANGE: Final = 2
_CANNOT_EXCHANGE: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM)


def clone(fd: int, out: int) -> None:
    """Make the open file ``out`` share all blocks of ``fd`` until one of both is written (btrfs,
    XFS and others). Raises OSError where that is impossible."""
    fcntl.ioctl(out, _FICLONE, fd)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system or the file system cannot. Raises
    OSError."""
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
