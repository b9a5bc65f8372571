"""Syncing to the device. All functions block, and raise OSError."""

from __future__ import annotations

import os


def sync_data(fd: int) -> None:
    """Sync a file's bytes and length."""
    os.fdatasync(fd)


def sync_whole(fd: int) -> None:
    """Sync a file with all that is known of it, or the names in a folder."""
    os.fsync(fd)


def sync_file_system(fd: int) -> None:
    """Sync all that was written to the file system of an open file or folder."""
    import ctypes  # a store that only appends does not need it

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
