"""Creating files: never through a symbolic link, never half there, and as the store's owner needs.

A file that replaces another is written under an unpredictable name, in the same folder, synced, and
renamed. Its writer keeps it locked (flock), so an unlocked one was left by a killed process. The
next first writer removes it (:func:`remove_left`).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from storage.platform.file_locks import close_unlocked
from storage.platform.syncing import sync_whole

from . import ownership

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN_FILE: Final = 0o666
_LONGEST: Final = 200
"""Bytes of a name, of 255 that a folder can hold."""
_TEMPORARY: Final = r"\..*\.[0-9a-f]{16}\.tmp"
TEMPORARY_SUFFIX: Final = ".tmp"


def is_temporary(name: str) -> bool:
    """Whether a file of that name is one that :func:`create_beside` has made."""
    return re.fullmatch(_TEMPORARY, name) is not None


def open_to_write(path: Path) -> int:
    """Open a file that is there, for reading and writing. Raises OSError, for a symbolic link
    too."""
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            error.strerror = "it is a symbolic link, and nothing is written through one"
        raise


def open_or_create(path: Path) -> int:
    """Open a file for reading and writing; an empty one is made if there is none, which others see
    once it is the store owner's. Raises OSError."""
    while True:
        try:
            return open_to_write(path)
        except FileNotFoundError:
            pass
        fd, made = create_beside(path)
        try:
            with suppress(FileExistsError):  # made by another process meanwhile
                _give_name(made, path)
        finally:
            close_unlocked(fd)  # it is opened again, by its name
            with suppress(FileNotFoundError):
                made.unlink()


def create(path: Path, like: Path | None = None) -> int:
    """Create a file that must not exist, for reading and writing; its owner, group and mode are
    those of ``like``, if that is an existing file, else follow the store. Raises OSError."""
    folder_owner = ownership.owner_of(path.parent)
    before = None if like is None else _file_before(like, folder_owner)
    wanted = folder_owner
    fd = os.open(path, _NEW, 0o600 if before else _PLAIN_FILE)
    try:
        if before is not None:
            mode = before.mode & 0o777
            try:
                ownership.give(fd, before, mode, str(path), str(like))
            except ownership.OwnerLockedOutError:
                if folder_owner is not None:
                    ownership.give(
                        fd, folder_owner, folder_owner.file_mode, str(path), str(path.parent)
                    )
                else:  # the process that may replace it owns it now
                    os.fchmod(fd, mode)
        elif wanted is not None:
            ownership.give(fd, wanted, wanted.file_mode, str(path), str(path.parent))
    except BaseException:
        os.close(fd)
        path.unlink()
        raise
    return fd


def cut_name(name: str) -> str:
    """A name, or so much of a long one that some more characters fit into a folder's entry."""
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    return name


def name_beside(name: str, suffix: str) -> str:
    """The name of what becomes ``name`` when it is whole: ``.NAME`` and a suffix, always the same;
    a long name is cut and has its sum."""
    cut = cut_name(name)
    return f".{name}{suffix}" if cut == name else f".{cut}.{crc32(os.fsencode(name)):08x}{suffix}"


def create_beside(
    path: Path, folder: Path | None = None, *, replaces: bool = False
) -> tuple[int, Path]:
    """Make a file that is to become ``path``, under an unpredictable name, in the same folder or in
    ``folder``; gives its descriptor and its path. With ``replaces`` its owner and mode are those of
    the file that ``path`` is now.

    Raises OSError.
    """
    while True:
        name = f".{cut_name(path.name)}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        made = (folder or path.parent) / name
        fd = create(made, path if replaces else None)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:  # else another process removed it as left over
                return fd, made
        except BaseException:
            os.close(fd)
            with suppress(FileNotFoundError):
                made.unlink()
            raise
        os.close(fd)


def put_whole(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` in one step, not synced: for content that a power loss
    invalidates."""
    fd, made = create_beside(path, replaces=True)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        made.rename(path)
    except BaseException:
        with suppress(FileNotFoundError):
            made.unlink()
        raise


def remove_left(folder: Path, name: str | None = None) -> None:
    """Remove files that killed processes have left in a folder, of the file ``name`` or of all."""
    try:
        found = [entry for entry in os.scandir(folder) if is_temporary(entry.name)]
    except OSError:
        return
    for entry in found:
        if name is not None and not entry.name.startswith(f".{cut_name(name)}."):
            continue
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            fd = os.open(entry.path, flags)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)  # noqa: PTH108
            finally:
                os.close(fd)


def make_folders(path: Path, *, follow_folder: bool = False) -> None:
    """Make a folder and those above it; in a store they are the store owner's, elsewhere as
    :func:`replacing` says. Raises OSError."""
    try:
        try:
            _make_folder(path, follow_folder=follow_folder)
        except FileNotFoundError:
            if path.parent == path:
                raise
            make_folders(path.parent, follow_folder=follow_folder)
            _make_folder(path, follow_folder=follow_folder)
    except FileExistsError:
        if not path.is_dir():
            raise


def adopt(path: Path) -> None:
    """Make a socket that this process has just bound in a store the store owner's."""
    wanted = ownership.owner_of(path.parent)
    if wanted is None:
        return
    info = path.lstat()
    with suppress(OSError):  # a process that cannot be woken checks once a second
        if (info.st_uid, info.st_gid) != (wanted.uid, wanted.gid):
            os.chown(path, wanted.uid, wanted.gid, follow_symlinks=False)
    with suppress(OSError):
        path.chmod(wanted.file_mode)


@contextmanager
def replacing(path: Path, *, follow_folder: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of ``path``, on the device, once the block ends without an error;
    not before. The file that was there gives it owner, group and mode.

    A new one is the store owner's in a store. Elsewhere it belongs to the user who runs this, and
    with ``follow_folder`` to the folder's owner if that user is root, by sudo say. After an OSError
    ``path`` is unchanged.
    """
    remove_left(path.parent, path.name)
    fd, made = create_beside(path, replaces=True)
    try:
        with os.fdopen(fd, "wb") as file:
            if follow_folder and not path.exists():
                _give_to_folder_owner(fd, path.parent)
            yield file
            file.flush()
            sync_whole(fd)
            made.rename(path)
        sync_folder(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            made.unlink()
        raise


def sync_folder(path: Path) -> None:
    """Sync the folder's entries to the device."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_whole(fd)
    finally:
        os.close(fd)


def _file_before(path: Path, store: ownership.Owner | None) -> ownership.Owner | None:
    """The owner of the file that is to be replaced; None if it shuts the store's owner out."""
    try:
        info = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(info.st_mode):
        return None
    if store is not None and ownership.shut_out(store, info):
        return None
    return ownership.owner(info)


def _give_name(made: Path, path: Path) -> None:
    try:
        os.link(made, path, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without kept links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        made.rename(path)


def _make_folder(path: Path, *, follow_folder: bool) -> None:
    wanted = ownership.owner_of(path.parent)
    path.mkdir(0o777 if wanted is None else 0o700)
    if wanted is None and not follow_folder:
        return
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if wanted is None:
                _give_to_folder_owner(fd, path.parent)
                return
            ownership.give(fd, wanted, wanted.folder_mode, str(path), str(path.parent))
        finally:
            os.close(fd)
    except BaseException:
        path.rmdir()
        raise


def _give_to_folder_owner(fd: int, folder: Path) -> None:
    info = folder.stat()
    if os.geteuid() == 0 and info.st_uid and not info.st_mode & stat.S_ISVTX:
        with suppress(OSError):
            os.fchown(fd, info.st_uid, info.st_gid)
