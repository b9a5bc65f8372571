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
from typing import Final

from storage.errors import StoreInUseError
from storage.files.fs import FileSystem

PARTIAL: Final = ".partial"


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


def sync_tree(fs: FileSystem, folder: Path) -> None:
    """Have the device hold the entries of a folder and of all below it."""
    for path, _, _ in os.walk(folder):
        fs.sync_dir(Path(path))


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
