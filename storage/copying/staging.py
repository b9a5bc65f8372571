"""A folder that gets its name when it is whole: made beside it, locked, renamed at the end.

``<parent>/.NAME.partial`` belongs to whoever holds its lock (flock, which the kernel drops when
the process dies). What a killed process left in it is removed by the next one.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.errors import StoreInUseError

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

PARTIAL: Final = ".partial"
_MANY: Final = 100


def staging_path(target: Path) -> Path:
    """Where ``target`` is made."""
    return target.parent / f".{target.name}{PARTIAL}"


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """An empty folder for a block, on the file system of ``target``; removed behind it.

    Raises StoreInUseError while another process makes the same thing, and OSError.
    """
    folder = staging_path(target)
    fd = _lock(folder, target)
    try:
        _empty(folder)
        try:
            yield folder
        finally:
            _empty(folder)
            with suppress(OSError):
                folder.rmdir()
    finally:
        os.close(fd)


def sync_tree(fs: FileSystem, top: Path) -> None:
    """Have the device hold a file, or all of a folder: one by one, which others on the disk hardly
    notice, or all at once if there are many."""
    found = [(Path(path), names) for path, _, names in os.walk(top)]
    files = [path / name for path, names in found for name in names] or [top]
    if len(files) > _MANY:
        fs.sync_all(top)
        return
    for path in files:
        if path.is_file():
            fd = fs.open(path, writable=False)
            try:
                fs.sync(fd)
            finally:
                fs.close(fd)
    for path, _ in found:
        fs.sync_dir(path)


def folder_mode(path: Path) -> int:
    """The mode of a folder, or what a folder has that is as open as a file."""
    mode = path.stat().st_mode & 0o777
    return mode if path.is_dir() else mode | (mode & 0o444) >> 2


def _lock(folder: Path, target: Path) -> int:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its last owner has just removed it
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino == folder.stat().st_ino:
                return fd
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(fd)
            raise StoreInUseError(target, "another process that makes it just now") from None
        os.close(fd)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
