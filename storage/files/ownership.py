"""The owner, group and mode of a file that is made in a store: they follow the store folder.

As SQLite does for the files beside a database: whatever user writes, and whatever the umask is, the
store's owner can go on. Root changes the owner of its files; a member of the folder's group shares
them by the mode. Where the owner cannot be changed and the file would shut the owner out, it is not
made.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from storage.format.names import COMMITLOG, OURS
from storage.platform.open_files import open_nameless
from storage.platform.users import has_power_over, may_be_unmapped

_MOST_KNOWN: Final = 4096
_DEEPEST: Final = 6
"""Levels below the store folder in which files are made, at most."""
_NOT_PERMITTED: Final = frozenset({errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS})


class Owner(NamedTuple):
    """Owner, group and permission bits of a folder or a file, as the system reports them."""

    uid: int
    gid: int
    mode: int

    @property
    def file_mode(self) -> int:
        """The mode of a file in a folder of this mode; its owner may always write it."""
        return self.mode & 0o666 | 0o600

    @property
    def folder_mode(self) -> int:
        """The mode of a folder in a folder of this mode; its owner may always write it."""
        return self.mode & 0o2777 | 0o700


_stores: dict[str, str] = {}
"""By folder: the store that contains it."""
_known: dict[str, Owner] = {}
"""By store: what its files follow, where that is not the folder as it is."""


class OwnerLockedOutError(PermissionError):
    """The store's owner could not write a file that this process makes."""

    def __init__(self, owner: Owner, path: str, what: str) -> None:
        super().__init__(
            errno.EPERM,
            f"the owner of {what} (user id {owner.uid}) could not write what this user "
            f"(user id {os.geteuid()}) makes there, and this process may not give files away; "
            "run it as the owner",
            path,
        )


def note_store(root: Path, wanted: Owner | None = None) -> None:
    """Register a folder as a store, before its files show it; and what its files follow, until
    :func:`forget_store`, where that is not the folder as it is."""
    name = str(root)
    _stores[name] = name
    if wanted is not None:
        _known[name] = wanted


def forget_store(root: Path) -> None:
    """Forget the registration of a folder."""
    gone = str(root)
    _known.pop(gone, None)
    for name in [name for name, store in _stores.items() if store == gone]:
        del _stores[name]


def owner_of(folder: Path) -> Owner | None:
    """What files in ``folder`` follow: the folder of the store that contains it; None outside of
    stores. Raises OSError."""
    name = str(folder)
    store = _stores.get(name)
    if store is None:
        store = _store_of(folder)
        if store is None:
            return None
        if len(_stores) >= _MOST_KNOWN:
            _stores.clear()
        _stores[name] = store
    known = _known.get(store)
    if known is not None:
        return known
    try:
        return owner(os.stat(store))  # noqa: PTH116 - for each file that is made
    except FileNotFoundError:
        forget_store(Path(store))
        return None


def owner(info: os.stat_result) -> Owner:
    """Owner, group and mode in the status of a file."""
    return Owner(info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode))


def give(fd: int, wanted: Owner, mode: int, path: str, what: str) -> None:
    """Give an open file, or folder, that this process has just made to the ``wanted`` owner.

    ``what`` is what the owner owns, for the error sentence. Raises OwnerLockedOutError where that
    is not permitted and the owner could not write it, and OSError.
    """
    info = os.fstat(fd)
    uid, gid = info.st_uid, info.st_gid
    if (uid, gid) != (wanted.uid, wanted.gid):
        uid, gid = _give_away(fd, info, wanted, what)
    if gid != wanted.gid:  # another group gets no more than all others get
        mode = mode & ~0o070 | (mode & 0o007) << 3
    if uid != wanted.uid and _shut_out(wanted, gid, mode, what):
        raise OwnerLockedOutError(wanted, path, what)
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)


def refuse_to_shut_out(root: Path) -> None:
    """Raise OwnerLockedOutError if files that this process makes in a store would shut its owner
    out; leaves no file. Raises OSError where nothing can be made."""
    wanted = owner(root.stat())
    if wanted.uid == os.geteuid():
        return
    fd = _nameless(root)
    try:
        give(fd, wanted, wanted.file_mode, str(root), str(root))
    finally:
        os.close(fd)


def shut_out(wanted: Owner, info: os.stat_result) -> bool:
    """Whether the owner ``wanted`` of a store cannot write a file or a folder of it."""
    if wanted.uid == 0:
        return False
    needed = 0o3 if stat.S_ISDIR(info.st_mode) else 0o2
    mode = stat.S_IMODE(info.st_mode)
    if info.st_uid == wanted.uid:
        return mode >> 6 & needed != needed
    if _is_in_group(wanted, info.st_gid):
        return mode >> 3 & needed != needed
    return mode & needed != needed


def _give_away(fd: int, info: os.stat_result, wanted: Owner, what: str) -> tuple[int, int]:
    """Change owner and group as far as is permitted; gives the result."""
    uid, gid = info.st_uid, info.st_gid
    if uid != wanted.uid and not _is_unmapped(wanted, what):
        try:
            os.fchown(fd, wanted.uid, wanted.gid)
        except OSError as error:
            if error.errno not in _NOT_PERMITTED:
                raise
        else:
            return wanted.uid, wanted.gid
    if gid != wanted.gid:
        with suppress(OSError):
            os.fchown(fd, -1, wanted.gid)
            gid = wanted.gid
    return uid, gid


def _shut_out(wanted: Owner, gid: int, mode: int, what: str) -> bool:
    if wanted.uid == 0 and not _is_unmapped(wanted, what):
        return False
    if mode & 0o002:
        return False
    return not (mode & 0o020 and gid == wanted.gid and _may_be_in_group(wanted, gid))


def _may_be_in_group(wanted: Owner, gid: int) -> bool:
    """Whether the owner is in a group, as far as is known: an owner that gave the folder to the
    group, and lets it write, is."""
    import pwd  # a process that writes its own store does not need it

    try:
        known = pwd.getpwuid(wanted.uid)
    except KeyError:
        return True
    return gid in os.getgrouplist(known.pw_name, known.pw_gid)


def _is_in_group(wanted: Owner, gid: int) -> bool:
    import pwd

    if wanted.uid == os.geteuid() and gid in {os.getegid(), *os.getgroups()}:
        return True
    try:
        known = pwd.getpwuid(wanted.uid)
    except KeyError:
        return gid == wanted.gid
    return gid in os.getgrouplist(known.pw_name, known.pw_gid)


def _is_unmapped(wanted: Owner, what: str) -> bool:
    """Whether the owner has no user id in this container: the shown id stands for all such
    users."""
    return may_be_unmapped(wanted.uid) and not has_power_over(what)


def _nameless(folder: Path) -> int:
    """A file without a name or, where that is impossible, one whose name was removed."""
    with suppress(OSError):
        return open_nameless(folder, 0o600)
    path = folder / f".{os.urandom(8).hex()}.tmp"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600)
    path.unlink()
    return fd


def _store_of(folder: Path) -> str | None:
    for place in (folder, *folder.parents[:_DEEPEST]):
        name = str(place)
        if _stores.get(name) == name or any(
            os.path.isdir(f"{name}/{part}")  # noqa: PTH112 - for each new folder
            for part in (OURS, COMMITLOG)
        ):
            return name
    return None
