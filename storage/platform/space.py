"""Blocks of a file: reserving them, and finding those that there are."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Final

from . import form

_BLOCK: Final = 4096
"""Bytes of the smallest block of a file system that is looked for."""
_PIECE: Final = 64 << 10
_UNIT: Final = 512
"""Bytes of what ``st_blocks`` counts."""
_ZEROS: Final = bytes(_PIECE)


def _reserve(fd: int, offset: int, length: int) -> None:
    os.posix_fallocate(fd, offset, length)


def _write_zeros(fd: int, offset: int, length: int) -> None:
    """Write zeros over zeros, and after the end. What is not zero has blocks; so only a store to a
    page that is all zero, at the same time, could be lost. Callers have the write lock, or a file
    that no process stores to yet."""
    end = offset + length
    at = offset - offset % _BLOCK
    info = os.fstat(fd)
    size = info.st_size
    if end <= size <= _UNIT * info.st_blocks:
        return  # there are no holes
    while at < end:
        wanted = min(_PIECE, end - at)
        there = os.pread(fd, min(wanted, max(0, size - at)), at)
        for first in range(0, wanted, _BLOCK):
            piece = there[first : first + _BLOCK]
            count = min(_BLOCK, wanted - first)
            if len(piece) < count:  # the file ends here: what is there stays
                _write(fd, count - len(piece), at + first + len(piece))
            if piece == _ZEROS[: len(piece)]:
                _write(fd, len(piece), at + first)
        at += wanted


def _write(fd: int, count: int, at: int) -> None:
    while count > 0:
        done = os.pwrite(fd, _ZEROS[:count], at)
        if done <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count -= done
        at += done


def _next_data(fd: int, position: int) -> int | None:
    try:
        return os.lseek(fd, position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return None
        raise


def _next_hole(fd: int, position: int) -> int:
    return os.lseek(fd, position, os.SEEK_HOLE)


def _read_to_data(fd: int, position: int) -> int | None:
    at = position
    while piece := os.pread(fd, _PIECE - at % _PIECE, at):
        if piece != _ZEROS[: len(piece)]:
            return at + next(first for first, end in _blocks(at, piece) if any(piece[first:end]))
        at += len(piece)
    return None


def _read_to_zeros(fd: int, position: int) -> int:
    at = position
    while piece := os.pread(fd, _PIECE - at % _PIECE, at):
        for first, end in _blocks(at, piece):
            if piece[first:end] == _ZEROS[: end - first]:
                return at + first
        at += len(piece)
    return at


def _blocks(at: int, piece: bytes) -> Iterator[tuple[int, int]]:
    """The blocks of a file in a piece of it that was read at a position."""
    first = 0
    while first < len(piece):
        end = min(len(piece), first + _BLOCK - (at + first) % _BLOCK)
        yield first, end
        first = end


reserve: Final = form(_reserve, _write_zeros)
"""Give a range of an open file (offset and length) blocks on the device; the file reaches to its
end then, at least. Its bytes do not change. Raises OSError (ENOSPC) on a full disk."""
next_data: Final = form(_next_data, _read_to_data)
"""Where data begins at or after a position of an open file, None if there is none up to its end.
Raises OSError where the file system does not know."""
next_hole: Final = form(_next_hole, _read_to_zeros)
"""Where a hole begins at or after a position that has data: at the end of the file at the
latest."""
