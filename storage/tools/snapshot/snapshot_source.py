"""Reading a snapshot, a folder or an archive, file by file, with its check sums."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from storage.errors import CorruptFileError, DamagedSnapshotError, NoSnapshotError
from storage.files.bounded import read_bounded
from storage.files.checksum import Checksum, Tick, no_tick
from storage.files.fs import FileSystem
from storage.format.names import SNAPSHOT_MANIFEST

from .archive import SnapshotArchive
from .manifest import MAX_MANIFEST, Manifest, SnapshotFile

_CHUNK: Final = 1 << 20

Parts = Iterator[bytes | int]
"""A file from beginning to end: bytes, and the lengths of holes."""


class SnapshotSource(Protocol):
    """A snapshot that can be read from beginning to end."""

    path: Path
    manifest: Manifest

    def files(self) -> Iterator[tuple[SnapshotFile, Parts]]:
        """All files, each to be read before the next one. Raises DamagedSnapshotError."""
        ...

    def stored_bytes(self) -> int:
        """Bytes of all files, without the holes that a store's files have. Raises
        DamagedSnapshotError."""
        ...

    def check(self, file: SnapshotFile, found: Checksum) -> None:
        """Raise DamagedSnapshotError if a file differs from the manifest."""
        ...


class SnapshotFolder:
    """A snapshot that is a folder. Implements :class:`SnapshotSource`."""

    def __init__(self, path: Path, fs: FileSystem | None = None) -> None:
        """Read the manifest. Raises NoSnapshotError, DamagedSnapshotError, StoreVersionError."""
        self.path = path
        self._fs = fs or FileSystem()
        try:
            data = read_bounded(path / SNAPSHOT_MANIFEST, MAX_MANIFEST)
        except CorruptFileError as error:
            raise DamagedSnapshotError(error.path, 0, error.reason) from None
        except (FileNotFoundError, NotADirectoryError):
            if not path.exists():
                raise NoSnapshotError(path) from None
            raise NoSnapshotError(path, f"it has no {SNAPSHOT_MANIFEST}") from None
        self.manifest = Manifest.unpack(data, path / SNAPSHOT_MANIFEST)

    def files(self) -> Iterator[tuple[SnapshotFile, Parts]]:
        """All files in the manifest's order."""
        for file in self.manifest.files:
            yield file, self._parts(file)

    def check(self, file: SnapshotFile, found: Checksum) -> None:
        """Raise DamagedSnapshotError if a file differs from the manifest."""
        check(self.path / file.path, file, found)

    def stored_bytes(self) -> int:
        """Bytes of all files, without holes. Raises DamagedSnapshotError."""
        longest = self.manifest.longest_file
        total = 0
        for file in self.manifest.files:
            used = self._look_at(file).st_blocks * 512
            total += min(used, file.length) if file.length <= longest else file.length
        return total

    def _look_at(self, file: SnapshotFile) -> os.stat_result:
        """Raise DamagedSnapshotError unless a regular file is in this place."""
        path = self.path / file.path
        try:
            info = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise DamagedSnapshotError(path, 0, "the file is missing") from None
        if not stat.S_ISREG(info.st_mode):
            raise DamagedSnapshotError(path, 0, "it is no file")
        return info

    def _parts(self, file: SnapshotFile) -> Parts:
        fs, path = self._fs, self.path / file.path
        self._look_at(file)
        try:
            fd = fs.open(path, writable=False)
        except (FileNotFoundError, NotADirectoryError):
            raise DamagedSnapshotError(path, 0, "the file is missing") from None
        try:
            size, done = fs.size(fd), 0
            if size != file.length:
                reason = f"it has {size} bytes, the manifest says {file.length}"
                raise DamagedSnapshotError(path, min(size, file.length), reason)
            for start, end in fs.data_ranges(fd, 0, size):
                if start > done:
                    yield start - done
                for at in range(start, end, _CHUNK):
                    yield fs.read(fd, min(_CHUNK, end - at), at)
                done = end
            if size > done:
                yield size - done
        finally:
            fs.close(fd)


def open_snapshot(path: Path) -> SnapshotSource:
    """Open a snapshot. Raises NoSnapshotError, DamagedSnapshotError and StoreVersionError."""
    if path.is_file():
        return SnapshotArchive(path)
    return SnapshotFolder(path)


def check(path: Path, file: SnapshotFile, found: Checksum) -> None:
    """Raise DamagedSnapshotError if the content read differs from the manifest."""
    if found.length != file.length:
        reason = f"it has {found.length} bytes, the manifest says {file.length}"
        raise DamagedSnapshotError(path, min(found.length, file.length), reason)
    if found.value != file.crc32:
        raise DamagedSnapshotError(path, 0, "its check sum is not that of the manifest")


def verify(source: SnapshotSource, tick: Tick = no_tick) -> list[DamagedSnapshotError]:
    """Read the whole snapshot; gives an error for each file that differs from the manifest."""
    damage = []
    for file, parts in source.files():
        found = Checksum()
        try:
            for data in parts:
                if isinstance(data, int):
                    found.add_zeros(data)
                    tick(data)
                else:
                    found.add(data)
                    tick(len(data))
            source.check(file, found)
        except DamagedSnapshotError as error:
            damage.append(error)
    return damage
