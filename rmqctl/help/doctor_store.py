"""Checks of ``rmqctl doctor``: the store and its file system.

The file system is tested with an unnamed file (O_TMPFILE), so the folder is not changed.
"""

import errno
import fcntl
import mmap
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from rmqctl.cli.context import Cli
from storage.platform.file_locks import set_lock
from storage.platform.mounts import NETWORK, file_system_of
from storage.platform.open_files import open_nameless
from storage.platform.space import reserve
from storage.platform.syncing import sync_data

from .doctor import ERROR, NOTE, OK, WARNING
from .rows import CheckRow

_LEAST_FREE: Final = 256 << 20
"""Free bytes below which a store takes no messages."""
_REMOTE: Final = (
    "fuse",
    "ceph",
    "lustre",
    "gluster",
    "afs",
    "beegfs",
    "gpfs",
    "virtiofs",
    "vboxsf",
)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_TRIED: Final = 1 << 20
_MOST_NAMED: Final = 20
"""Number of files that are named one by one."""


def store_checks(cli: Cli) -> Iterator[CheckRow]:
    """The store of the call, its writers, and the abilities of its file system."""
    path, _, origin = cli.store
    there = f"{path} ({origin})"
    if not path.exists():
        yield CheckRow("store", NOTE, f"{there} does not exist", "'rmqctl store init' creates one")
        yield from file_system(_existing_parent(path))
        return
    yield from _store(path, there)
    yield from file_system(path)


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.exists())


def _store(path: Path, there: str) -> Iterator[CheckRow]:
    from storage.coordination.lock_owners import find_holders
    from storage.detect import check_is_store
    from storage.errors import StoreError

    if not os.access(path, os.R_OK | os.X_OK):
        yield CheckRow("store", ERROR, f"{there} cannot be read", "check its permissions")
        return
    try:
        check_is_store(path)
    except StoreError as error:
        yield CheckRow("store", ERROR, str(error), "name a store with --store, or create one")
        return
    if os.access(path, os.W_OK):
        yield CheckRow("store", OK, there, "")
    else:
        yield CheckRow("store", NOTE, f"{there} is read-only", "it can be read, but not changed")
    yield from _permissions(path)
    holders = find_holders(path)
    who = holders.describe()
    if holders.java_locked:
        advice = "the store can be read; writing is refused until that broker ends"
        yield CheckRow("writers", NOTE, who, advice)
    elif not who and (path / "abort").exists():
        advice = "the next writer recovers it; 'rmqctl store fsck' shows whether anything is lost"
        yield CheckRow("writers", WARNING, "none, but it was not closed cleanly", advice)
    else:
        yield CheckRow("writers", OK, who or "none", "")


def _permissions(path: Path) -> Iterator[CheckRow]:
    """Files of the store that its owner, or this user, cannot write."""
    from storage.files.access import unwritable
    from storage.files.ownership import owner

    store = owner(path.stat())
    found = unwritable(path)
    named = [f"{one.path}: {one.what(store)}" for one in islice(found, _MOST_NAMED)]
    more = sum(1 for _ in found)
    advice = f"give them to the store's owner: chown -R --reference={path} {path}"
    for text in named:
        yield CheckRow("permissions", ERROR, text, advice)
    if more:
        text = f"and {more} more; 'rmqctl store fsck' names all"
        yield CheckRow("permissions", ERROR, text, advice)
    if not named:
        yield CheckRow("permissions", OK, "the owner can write all files", "")


def file_system(path: Path) -> Iterator[CheckRow]:
    """Type and free space of the file system, and the abilities that stores need."""
    kind = file_system_of(path) or "unknown"
    if kind in NETWORK:
        advice = (
            "nothing is written there: locks between machines cannot be trusted; use a local one"
        )
        yield CheckRow("file system", ERROR, f"{kind}: a network file system", advice)
    elif kind == "overlay":
        advice = "a layer of a container: put stores on a volume, which outlives it"
        yield CheckRow("file system", NOTE, kind, advice)
    elif kind.startswith(_REMOTE):
        advice = "use a local file system, and share a store only between processes of one machine"
        yield CheckRow(
            "file system", WARNING, f"{kind}: a network or user-space file system", advice
        )
    else:
        yield CheckRow("file system", OK, kind, "")
    free = shutil.disk_usage(path).free
    if free < _LEAST_FREE:
        yield CheckRow(
            "room", WARNING, f"{free >> 20} MiB free", "below 256 MiB no message is stored"
        )
    else:
        yield CheckRow("room", OK, f"{free >> 20} MiB free", "")
    yield from _abilities(path)


def _abilities(path: Path) -> Iterator[CheckRow]:
    try:
        fd = open_nameless(path, 0o600)
    except (OSError, AttributeError) as error:
        number = getattr(error, "errno", None) or errno.ENOTSUP
        yield _not_tried("abilities", number, path)
        return
    try:
        yield _tried("locks", lambda: _lock(fd), ERROR, path)
        yield _tried("mapping", lambda: _map(fd), ERROR, path)
        yield _tried("reserving", lambda: _reserve(fd), NOTE, path)
        yield _tried("sync", lambda: _sync(fd), ERROR, path)
    finally:
        os.close(fd)


def _not_tried(check: str, number: int, path: Path) -> CheckRow:
    """A full disk is in the row ``room``; a quota, or inodes that are used up, are in none."""
    found = f"not tried: {os.strerror(number)}"
    if number in _FULL and shutil.disk_usage(path).free >= _LEAST_FREE:
        advice = "no message is stored: a quota or inodes are used up"
        return CheckRow(check, WARNING, found, advice)
    return CheckRow(check, NOTE, found, "")


def _tried(check: str, attempt: Callable[[], str], status: str, path: Path) -> CheckRow:
    try:
        found = attempt()
    except OSError as error:
        if error.errno in _FULL:
            return _not_tried(check, error.errno, path)
        advice = "use another file system" if status == ERROR else "stores work, but slower"
        return CheckRow(check, status, f"{error.strerror}", advice)
    return CheckRow(check, OK, found, "")


def _lock(fd: int) -> str:
    if hasattr(os, "fork"):
        set_lock(fd, None, fcntl.F_WRLCK, 0, 1)
    return "locks of open files work"


def _map(fd: int) -> str:
    os.ftruncate(fd, _TRIED)
    reserve(fd, 0, mmap.PAGESIZE)  # a store to a hole of a full disk is a signal, not an error
    with mmap.mmap(fd, _TRIED) as mapped:
        mapped[:5] = b"there"
        if os.pread(fd, 5, 0) != b"there":
            raise OSError(errno.EIO, "data written to a mapped file is not read back")
    return "files can be mapped and shared"


def _reserve(fd: int) -> str:
    reserve(fd, 0, _TRIED)
    return "space can be preallocated"


def _sync(fd: int) -> str:
    """Time to sync 4 KiB: the least cost of --sync per message."""
    begun = time.perf_counter()
    os.pwrite(fd, bytes(4096), 0)
    sync_data(fd)
    took = (time.perf_counter() - begun) * 1000
    return f"a sync of 4 KiB takes {took:.1f} ms"
