"""The seam to the operating system: every call of the writing store that touches files.

It exists for one reason: a test can make the disk fail, be full, or forget data that was not
synced, and can stop a writer at any write. Mapped files are written by slice assignment only
(``map[a:b] = bytes``), and words of the shared state by item assignment, so that a wrapper that
:meth:`FileSystem.map` returns sees each store.
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any, Final

from storage.platform.file_locks import close_unlocked
from storage.platform.open_files import give_name, name_of, open_nameless
from storage.platform.space import next_data, next_hole, reserve
from storage.platform.syncing import sync_all_below, sync_data, sync_whole

from . import creating, ownership

WORD: Final = 8
"""Bytes of a word of the shared state."""


def name_file(error: OSError, fd: int, doing: str) -> None:
    """Note in an error of an open file which file it is, and what was done to it.

    The system names files only in errors of calls that take a path.
    """
    error.add_note(doing)
    name = name_of(fd)
    if name is not None:
        error.filename = name


class NotOpenedError(OSError):
    """A folder could not be opened, so it was not synced: no sync of it has failed."""


class FileSystem:
    """The real file system; tests derive from it. All paths are absolute; errors are OSError."""

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        """Open a file and give its descriptor (close-on-exec); with ``create`` it is made if there
        is none, as the store's owner needs it. Nothing is written through symbolic links."""
        if create:
            return creating.open_or_create(path)
        if writable:
            return creating.open_to_write(path)
        # A pipe in the place of a file does not block; for files it makes no difference.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def create_beside(self, path: Path, folder: Path | None = None) -> tuple[int, Path]:
        """Make a file that is to be renamed to ``path``, under an unpredictable name, there or in
        ``folder``; owner, group and mode are those of the file that is there, else follow the
        store. A caller that gives up removes it (:meth:`unlink`); the next process removes what a
        killed one leaves."""
        return creating.create_beside(path, folder, replaces=True)

    def open_nameless(self, folder: Path) -> int:
        """Make a file without a name on the file system of ``folder``; it is gone when it is
        closed, unless :meth:`give_name` was called. Not every file system can do so."""
        fd = open_nameless(folder, 0o644)
        try:
            wanted = ownership.owner_of(folder)
            if wanted is not None:
                ownership.give(fd, wanted, wanted.file_mode, str(folder), str(folder))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def give_name(self, fd: int, path: Path) -> None:
        """Give a file without a name its name in one step; raises FileExistsError."""
        give_name(fd, path)

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        close_unlocked(fd)

    def size(self, fd: int) -> int:
        """Length of the file in bytes."""
        return os.fstat(fd).st_size

    def links(self, fd: int) -> int:
        """Names that the open file still has: 0 means that it was deleted."""
        return os.fstat(fd).st_nlink

    def set_length(self, fd: int, length: int) -> None:
        """Make the file exactly ``length`` bytes long; new bytes are zero and take no space."""
        try:
            os.ftruncate(fd, length)
        except OSError as error:
            name_file(error, fd, "setting its length")
            raise

    def reserve(self, fd: int, offset: int, length: int) -> None:
        """Give the range blocks on the device; a full disk answers here (ENOSPC), not as SIGBUS."""
        try:
            reserve(fd, offset, length)
        except OSError as error:
            name_file(error, fd, "reserving blocks")
            raise

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        """Write all of ``data`` at ``offset``."""
        view = memoryview(data)
        try:
            while view:
                done = os.pwrite(fd, view, offset)
                if done <= 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                view = view[done:]
                offset += done
        except OSError as error:
            name_file(error, fd, "writing")
            raise

    def read(self, fd: int, length: int, offset: int) -> bytes:
        """Read up to ``length`` bytes at ``offset``."""
        try:
            return os.pread(fd, length, offset)
        except OSError as error:
            name_file(error, fd, "reading")
            raise

    def data_ranges(self, fd: int, start: int, end: int) -> list[tuple[int, int]]:
        """Parts of the file that may hold anything but zeros; holes are left out."""
        ranges = []
        while start < end:
            try:
                first = next_data(fd, start)
            except OSError as error:
                name_file(error, fd, "looking for data")
                raise
            if first is None:
                break
            hole = next_hole(fd, first)
            if first < end:
                ranges.append((first, min(hole, end)))
            start = hole
        return ranges

    def map(self, fd: int, length: int, *, writable: bool) -> mmap.mmap:
        """Map the first ``length`` bytes of a file, shared with all processes."""
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        try:
            return mmap.mmap(fd, length, access=access)
        except OSError as error:
            name_file(error, fd, "mapping")
            raise

    def words(self, mapped: mmap.mmap) -> Any:
        """The mapped bytes as native signed 8-byte words: ``words[i] = v`` is one store."""
        return memoryview(mapped).cast("q")

    def sync(self, fd: int) -> None:
        """Sync the file's bytes and length to the device. Blocks; other threads run on."""
        try:
            sync_data(fd)
        except OSError as error:
            name_file(error, fd, "syncing")
            raise

    def sync_dir(self, path: Path) -> None:
        """Sync the folder's entries to the device. Raises NotOpenedError, FileNotFoundError."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotOpenedError(error.errno, error.strerror, error.filename) from error
        try:
            sync_whole(fd)
        finally:
            os.close(fd)

    def sync_all(self, path: Path) -> None:
        """Sync all files and folders below ``path``, in one call if possible: for thousands of new
        files. Blocks."""
        sync_all_below(path)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file a new name in one step; a file of that name is replaced."""
        source.rename(target)

    def link(self, source: Path, name: Path) -> None:
        """Give a file one more name."""
        name.hardlink_to(source)

    def unlink(self, path: Path) -> None:
        """Remove a name; a missing one is fine."""
        path.unlink(missing_ok=True)

    def make_dirs(self, path: Path) -> None:
        """Create a folder and those above it; in a store they are its owner's."""
        creating.make_folders(path)

    def touch(self, path: Path) -> None:
        """Create an empty file if there is none, as :meth:`open` does."""
        os.close(creating.open_or_create(path))

    def set_modified(self, path: Path, timestamp_ms: int) -> None:
        """Set the file's modification time, which Java's time search reads. A user who may write
        another user's file can only set the present time."""
        try:
            os.utime(path, ns=(timestamp_ms * 1_000_000, timestamp_ms * 1_000_000))
        except PermissionError:
            os.utime(path)

    def free_bytes(self, path: Path) -> int:
        """Bytes that this user may still write on the file system of ``path``."""
        info = os.statvfs(path)
        return info.f_bavail * info.f_frsize
