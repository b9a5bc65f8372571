"""Files by their descriptor: the name of an open one, files without a name, files that are only
looked at.

Any POSIX system has none of the three: an error names no file, a file gets its name when it is
made, and a file is looked up by its name each time.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from . import form


def _name_of(fd: int) -> str | None:
    try:
        name = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - may be no path
    except OSError:  # the descriptor is closed, or there is no /proc
        return None
    if name.endswith(" (deleted)"):
        name = name.rpartition("/")[0]
    return name if name.startswith("/") else None


def _unknown_name(_fd: int) -> str | None:
    return None


def _open_nameless(folder: Path, mode: int) -> int:
    return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode)


def _refuse_nameless(folder: Path, _mode: int) -> int:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(folder))


def _give_name(fd: int, path: Path) -> None:
    opened = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(str(fd), path, src_dir_fd=opened, follow_symlinks=True)
    finally:
        os.close(opened)


def _refuse_name(_fd: int, path: Path) -> None:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(path))


def _open_to_look(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _no_look(_path: str) -> int:
    return -1


name_of: Final = form(_name_of, _unknown_name)
"""The path of an open file, of its folder if it has no name; None where that is unknown."""
open_nameless: Final = form(_open_nameless, _refuse_nameless)
"""Make a file without a name, of a mode, on the file system of a folder. Raises OSError where that
is impossible."""
give_name: Final = form(_give_name, _refuse_name)
"""Give a file without a name its name in one step. Raises FileExistsError, and OSError where that
is impossible."""
open_to_look: Final = form(_open_to_look, _no_look)
"""Open a file for its status only: closing that releases no lock. -1 where that is impossible."""
