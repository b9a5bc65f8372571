"""CRC-32 of files, without reading their holes: a damaged length can make a file of gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from storage.files.fs import FileSystem
from storage.format.crc import bulk_crc32_from, crc_after_zeros

CHUNK: Final = 1 << 20
"""Bytes that are read at once."""
_ZEROS: Final = bytes(CHUNK)

Tick = Callable[[int], None]
"""Called with the number of bytes done since the last call."""


def no_tick(_: int) -> None:
    """Ignore progress."""


class Checksum:
    """CRC-32 (zlib's polynomial, by isal where available) of a file in parts."""

    def __init__(self) -> None:
        self._crc32 = bulk_crc32_from()
        self.value = 0
        self.length = 0

    def add(self, data: bytes | memoryview) -> None:
        """Add the next bytes."""
        self.value = self._crc32(data, self.value)
        self.length += len(data)

    def add_zeros(self, count: int) -> None:
        """Add a hole of any size."""
        if count <= CHUNK:
            self.add(_ZEROS[:count])
            return
        self.value = crc_after_zeros(self.value, count)
        self.length += count


def data_of(fs: FileSystem, fd: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Give the blocks of a part of a file, each with its place; holes are left out."""
    for first, data_end in fs.data_ranges(fd, start, end):
        for at in range(first, data_end, CHUNK):
            yield at, fs.read(fd, min(CHUNK, data_end - at), at)


def checksum_of(
    fs: FileSystem, path: Path, tick: Tick = no_tick, *, end: int | None = None
) -> Checksum:
    """Read a file, up to ``end``; holes are not read. Raises OSError. Memory: a MiB."""
    found = Checksum()
    fd = fs.open(path, writable=False)
    try:
        size = fs.size(fd) if end is None else min(end, fs.size(fd))
        for at, data in data_of(fs, fd, 0, size):
            tick(at + len(data) - found.length)
            found.add_zeros(at - found.length)
            found.add(data)
        tick(size - found.length)
        found.add_zeros(size - found.length)
    finally:
        fs.close(fd)
    return found


def crc_of(path: Path) -> int | None:
    """The CRC-32 of a whole file. None for a missing one, and for an object that is no file, which
    is not opened: a pipe would block. Raises OSError."""
    if path.is_file():
        with suppress(FileNotFoundError):
            return checksum_of(FileSystem(), path).value
    return None
