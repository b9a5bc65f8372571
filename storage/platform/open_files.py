"""Files by their descriptor: the name of an open one, and files without a name."""

from __future__ import annotations

import os
from pathlib import Path


def name_of(fd: int) -> str | None:
    """The path of an open file, of its folder if it has no name; None where that is unknown."""
    try:
        name = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - may be no path
    except OSError:  # the descriptor is closed, or there is no /proc
        return None
    if name.endswith(" (deleted)"):
        name = name.rpartition("/")[0]
    return name if name.startswith("/") else None


def open_nameless(folder: Path, mode: int) -> int:
    """Make a file without a name on the file system of ``folder``. Raises OSError where that is
    impossible."""
    return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode)


def give_name(fd: int, path: Path) -> None:
    """Give a file without a name its name in one step. Raises FileExistsError, and OSError where
    that is impossible."""
    opened = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(str(fd), path, src_dir_fd=opened, follow_symlinks=True)
    finally:
        os.close(opened)
