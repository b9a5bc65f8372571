"""A folder that gets its name when it is complete: made beside the target, locked, renamed at the
end.

``<parent>/.NAME.partial`` belongs to the holder of its lock (flock, which the kernel releases when
the process dies). The next process removes what a killed one left in it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.errors import StoreInUseError
from storage.files.creating import name_beside
from storage.files.ownership import Owner, give, note_store

if TYPE_CHECKING:
    from storage.files.fs import FileSystem

PARTIAL: Final = ".partial"
_MANY: Final = 100


def staging_path(target: Path) -> Path:
    """Where ``target`` is made."""
    return target.parent / name_beside(target.name, PARTIAL)


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """An empty folder for a block, on the file system of ``target``; removed after the block.

    Raises StoreInUseError while another process makes the same thing, and OSError.
    """
    folder = staging_path(target)
    fd = _lock(folder, target)
    try:
        _empty(folder)
        try:
            yield folder
        finally:
            # A failed removal must not hide why the block ended; the next process removes it.
            with suppress(OSError):
                _empty(folder)
                folder.rmdir()
    finally:
        os.close(fd)


def begin_store(folder: Path, wanted: Owner) -> None:
    """Make the folder of a store that is not in its place yet. Its files belong to ``wanted`` and
    get the modes of the store; the folder itself is private until then."""
    folder.mkdir(0o700, parents=True)
    note_store(folder, wanted)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        give(fd, wanted, stat.S_IRWXU, str(folder), str(folder))
    finally:
        os.close(fd)


def own(mode: int) -> Owner:
    """This process's user, for objects without an owner yet."""
    return Owner(os.geteuid(), os.getegid(), mode)


def sync_tree(fs: FileSystem, top: Path) -> None:
    """Sync a file, or all of a folder: one by one, which disturbs others on the disk little, or all
    at once if there are many."""
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
    """The mode of a folder, or the folder mode that matches a file's."""
    mode = path.stat().st_mode & 0o777
    return mode if path.is_dir() else mode | (mode & 0o444) >> 2


def _lock(folder: Path, target: Path) -> int:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its last owner has just removed it
        if os.fstat(fd).st_uid != os.geteuid():  # its owner could change its content
            os.close(fd)
            reason = "another user has made it; remove it first"
            raise PermissionError(errno.EPERM, reason, str(folder))
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


def make_ready(fs: FileSystem, made: Path, mode: int) -> None:
    """Sync the result and give it the access of ``mode``; before put_in_place.

    Moving a folder to another parent needs the right to write it, so its owner has all rights until
    then.
    """
    made.chmod(mode | stat.S_IRWXU if made.is_dir() else mode)
    sync_tree(fs, made)


def put_in_place(fs: FileSystem, made: Path, target: Path, mode: int) -> None:
    """Rename the result to ``target``, then set ``mode``; its parent must still be synced."""
    fs.rename(made, target)
    if stat.S_IMODE(target.stat().st_mode) != mode:
        target.chmod(mode)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it: a copy may have a store's own modes."""
    _let_owner_in(folder)
    shutil.rmtree(folder)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink()


def _let_owner_in(top: Path) -> None:
    """Give the owner all rights in the folders of a tree."""
    folders = [top]
    while folders:
        folder = folders.pop()
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            folder.chmod(mode | stat.S_IRWXU)
        with os.scandir(folder) as entries:
            folders += [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
