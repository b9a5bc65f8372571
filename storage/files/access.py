"""Whether this user may write the files that a writer of a store has to write; checked first.

A writer that finds out in the middle leaves half of its work: a record in the log that no queue
names, for example. The check takes some microseconds once an opening.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from storage.errors import StoreError, StoreNotWritableError
from storage.format.names import (
    ABORT,
    CHECKPOINT,
    COMMITLOG,
    CONFIG,
    CONSUMEQUEUE,
    INDEX,
    LOCK,
    OURS,
)

from .ownership import Owner, OwnerLockedOutError, owner, shut_out

_FOLDERS = ("", COMMITLOG, CONSUMEQUEUE, INDEX, CONFIG, OURS)
_FILES = (LOCK, ABORT, CHECKPOINT, f"{OURS}/shared", f"{OURS}/queues")
_OF_NAMES = (COMMITLOG, INDEX)
"""Folders whose last file is written."""


def refuse_unwritable(root: Path) -> None:
    """Raise StoreNotWritableError for the first folder or file of a store that every writer needs
    and this user may not write."""
    for name in _FOLDERS:
        _refuse(root, f"{root}/{name}" if name else str(root), os.W_OK | os.X_OK)
    for name in _FILES:
        _refuse(root, f"{root}/{name}", os.W_OK)
    for name in _OF_NAMES:
        last = max((found for found in _names(f"{root}/{name}") if found.isdigit()), default=None)
        if last is not None:
            _refuse(root, f"{root}/{name}/{last}", os.W_OK)


def refuse_unwritable_folders(*folders: Path) -> None:
    """Raise StoreNotWritableError if no file can be made in one of the folders; for a missing
    folder the one above it is checked."""
    for folder in folders:
        while not folder.exists() and folder.parent != folder:
            folder = folder.parent
        _refuse(folder, str(folder), os.W_OK | os.X_OK)


def refuse_other_file_system(folder: Path, staging: Path) -> None:
    """Raise StoreNotWritableError if a file that is made in ``staging`` cannot be renamed into
    ``folder``; for a missing folder the one above it is checked."""
    while not os.path.lexists(folder) and folder.parent != folder:
        folder = folder.parent
    if not folder.is_dir():
        raise StoreNotWritableError(folder, "it is no folder, or a link to none")
    if folder.stat().st_dev != staging.stat().st_dev:
        raise StoreNotWritableError(
            folder,
            f"it is on another file system than {staging.name}/, where new files are made; move "
            "the whole store to one file system (reading works as it is)",
        )


def _refuse(root: Path, name: str, wanted: int) -> None:
    if not wanted & os.X_OK and os.path.islink(name):  # noqa: PTH114 - once an opening
        raise StoreNotWritableError(
            root, f"{name} is a symbolic link; nothing is written through a link"
        )
    if _has_access(name, wanted) is not False:
        return
    if os.path.islink(name) and not os.path.exists(name):  # noqa: PTH110, PTH114 - see above
        raise StoreNotWritableError(
            root,
            f"{name} is a symbolic link to {os.readlink(name)}, which is not there (a disk that is "  # noqa: PTH115
            "not mounted?)",
        )
    reason = "no permission"
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        reason = "the file system is mounted read-only"
    raise StoreNotWritableError(root, reason if name == str(root) else f"{reason} ({name})")


def _has_access(name: str, wanted: int) -> bool | None:
    """Whether this user has the rights ``wanted`` (``os.W_OK`` ...) to a file; None if there is
    none.

    ``os.access`` says False for a missing file, too. Other writers make and delete files meanwhile
    (``abort``), so a refusal counts only for a file that was there before and after it.
    """
    if os.access(name, wanted, effective_ids=True):
        return True
    before = _identity(name)
    while before is not None:
        if os.access(name, wanted, effective_ids=True):
            return True
        after = _identity(name)
        if after == before:
            return False
        before = after
    return None


def _identity(name: str) -> tuple[int, int, int] | None:
    """What tells a file from a later one of the same name; None if there is none."""
    try:
        info = os.lstat(name)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_ctime_ns


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - once an opening
    except OSError:
        return []


def not_writable(root: Path, error: OSError) -> StoreError:
    """The error for a folder that the system does not let this process write."""
    reasons = {
        errno.EROFS: "the file system is mounted read-only",
        errno.EACCES: "no permission",
        errno.EPERM: "no permission",
        errno.ENOSPC: "no space is left on the device",
        errno.EDQUOT: "the disk quota is used up",
    }
    what = reasons.get(error.errno or 0, os.strerror(error.errno) if error.errno else str(error))
    if isinstance(error, OwnerLockedOutError):
        return StoreNotWritableError(root, error.strerror or "")
    if error.filename:
        what = f"{what} ({error.filename})"
    return StoreNotWritableError(root, what)


def refuse_without_descriptors() -> None:
    """Raise OSError (EMFILE, ENFILE) if this process cannot make and map a file now."""
    for descriptor in os.pipe():
        os.close(descriptor)


def is_descriptor_missing(error: BaseException) -> bool:
    """Whether a file could not be opened because this process, or the system, has too many open."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


class UnwritableFile(NamedTuple):
    """A file or folder of a store that its owner, or this user, cannot write."""

    path: Path
    owner: Owner
    mode: int
    by_owner: bool
    """The owner of the store cannot; else this user."""

    def what(self, store: Owner) -> str:
        """A sentence about the problem."""
        kind = "the folder" if stat.S_ISDIR(self.mode) else "the file"
        who = (
            f"the store's owner (user id {store.uid})"
            if self.by_owner
            else f"this user (user id {os.geteuid()})"
        )
        mode = f"{stat.S_IMODE(self.mode):04o}"
        return f"{kind} of user id {self.owner.uid}, mode {mode}, cannot be written by {who}"


def unwritable(root: Path) -> Iterator[UnwritableFile]:
    """Each file and folder of a store that its owner cannot write, or this user cannot although the
    store's folder is open to them: sends to them are refused. Unreadable folders are left out.

    Another user's program has left them without changing their owner: a broker that root has
    started once, a copy without ``--preserve``.
    """
    wanted = owner(root.stat())
    is_writer = os.access(root, os.W_OK | os.X_OK, effective_ids=True)
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(info.st_mode):
                continue
            is_folder = stat.S_ISDIR(info.st_mode)
            if is_folder:
                folders.append(Path(entry.path))
            right = os.W_OK | os.X_OK if is_folder else os.W_OK
            by_owner = shut_out(wanted, info)
            if by_owner or (is_writer and _has_access(entry.path, right) is False):
                yield UnwritableFile(Path(entry.path), owner(info), info.st_mode, by_owner)
