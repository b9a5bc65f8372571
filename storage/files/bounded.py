"""Reading a whole file into memory: only a file, and only up to a size.

A path that is not a file (a folder, a pipe that no process writes to, a device without an end), and
a file that is larger than any such file can be, count as damage at once; nothing waits, and no
memory is taken for it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage.errors import CorruptFileError
from storage.platform.file_locks import close_unlocked

MAX_OWN_SIZE: Final = 128 << 20
"""Bytes; a larger file of rmqctl's own, or of settings, is taken for damage."""
_PIECE: Final = 1 << 20
NO_FILE: Final = (errno.ELOOP, errno.ENXIO)
"""Errors of opening circular links, and a socket."""


def read_bounded(path: Path, max_size: int = MAX_OWN_SIZE) -> bytes:
    """Read all of a file.

    Raises CorruptFileError for a path that is not a file or a file of more than ``max_size`` bytes;
    FileNotFoundError and every other OSError as they come.
    """
    return read_with_status(path, max_size)[0]


def read_with_status(path: Path, max_size: int = MAX_OWN_SIZE) -> tuple[bytes, os.stat_result]:
    """Read all of a file, with the status of the file that was read.

    Raises CorruptFileError and OSError as ``read_bounded`` does.
    """
    # A pipe would have the opening wait for a writer.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NO_FILE:
            raise CorruptFileError(path, 0, "it is no file") from error
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptFileError(path, 0, "it is no file")
        if status.st_size > max_size:
            what = f"it has {status.st_size} bytes, more than any such file"
            raise CorruptFileError(path, max_size, what)
        pieces: list[bytes] = []
        left = max_size + 1  # it may grow while it is read
        while left > 0 and (piece := os.read(fd, min(left, max(_PIECE, status.st_size + 1)))):
            pieces.append(piece)
            left -= len(piece)
        if left <= 0:
            raise CorruptFileError(path, max_size, "it is larger than any such file")
    finally:
        close_unlocked(fd)
    return (pieces[0] if len(pieces) == 1 else b"".join(pieces)), status


def read_first(path: Path, size: int) -> bytes:
    """Read the first bytes of a file whose other bytes do not count. Raises OSError;
    FileNotFoundError also for a path that is not a file."""
    return _read_part(path, lambda _: 0, size)


def read_last(path: Path, size: int) -> bytes:
    """Read the last bytes of a file. Raises as :func:`read_first`."""
    return _read_part(path, lambda length: max(0, length - size), size)


def read_at(path: Path, position: int, size: int) -> bytes:
    """Read up to ``size`` bytes of a file from ``position``, fewer at its end. Raises as
    :func:`read_first`."""
    return _read_part(path, lambda _: position, size)


def _read_part(path: Path, start: Callable[[int], int], size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NO_FILE:
            raise FileNotFoundError(errno.ENOENT, "it is no file", str(path)) from error
        raise
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, "it is no file", str(path))
        return os.pread(fd, size, start(status.st_size))
    finally:
        close_unlocked(fd)
