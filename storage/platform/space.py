"""Blocks of a file: reserving them, and finding those that there are."""

from __future__ import annotations

import errno
import os


def reserve(fd: int, offset: int, length: int) -> None:
    """Give the range blocks on the device; the file has that length then. Its bytes do not change.

    Raises OSError (ENOSPC) on a full disk.
    """
    os.posix_fallocate(fd, offset, length)


def next_data(fd: int, position: int) -> int | None:
    """Where data begins at or after a position, None if there is none up to the end of the file.

    Raises OSError where the file system does not know.
    """
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def next_hole(fd: int, position: int) -> int:
    """Where a hole begins at or after a position: at the end of the file at the latest."""
    return os.lseek(fd, position, os.SEEK_HOLE)
