"""Byte-range locks on any POSIX system: those of processes, and a table of what each owner has.

A POSIX lock belongs to its process. Three things are missing, and made here:

* Owners in one process exclude one another: by the table.
* Closing any descriptor of a file releases all locks of the process on it. So all owners in a
  process share the descriptors of a file, which are closed with its last owner, as SQLite does it.
* A process of rmqctl differs from a Java broker by the lock that it has on one more byte, whose
  number is its pid.

The kernel releases all of them when the process dies, in one step. A forked child has none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

OURS: Final = -1
"""In place of a pid: the lock is one of rmqctl."""
LOOKS: Final = 5
"""How often a conflict is looked at before it counts as Java's: its owner may come and go."""
_MARKS: Final = 1 << 62
"""The first of the bytes that tell rmqctl; no owner locks a later one."""
_LAYOUTS: Final = {
    "linux": "hhqqi4x",
    "darwin": "qqihh",
    "freebsd": "qqihhi4x",
    "openbsd": "qqihh",
    "netbsd": "qqihh",
}
"""``struct flock`` by system. The fields begin with the kind where it comes first."""
_BUSY: Final = (errno.EAGAIN, errno.EACCES)
_FIRST_PAUSE: Final = 1e-3
_LONGEST_PAUSE: Final = 20e-3
_KINDS: Final = {False: fcntl.LOCK_SH, True: fcntl.LOCK_EX}


def mark_of(pid: int) -> int:
    """The byte that a process with locks of this form locks on each of its files."""
    return _MARKS + pid


class _Held:
    """A range of bytes that an owner has locked; ``end`` is exclusive."""

    __slots__ = ("end", "exclusive", "owner", "start")

    def __init__(self, owner: int, start: int, end: int, *, exclusive: bool) -> None:
        self.owner = owner
        self.start = start
        self.end = end
        self.exclusive = exclusive

    def overlaps(self, start: int, end: int) -> bool:
        return self.start < end and start < self.end


class _File:
    """A file with owners in this process."""

    __slots__ = ("descriptors", "held", "is_marked", "owners", "parked")

    def __init__(self) -> None:
        self.descriptors: dict[bool, int] = {}
        """By whether it is writable."""
        self.parked: list[int] = []
        """Descriptors that would take the locks with them if they were closed."""
        self.held: list[_Held] = []
        self.owners: dict[int, object] = {}
        """By id, which no other object gets while it is here."""
        self.is_marked = False

    def any_descriptor(self) -> int:
        return next(iter(self.descriptors.values()))

    def lock(self, kind: int, start: int, length: int) -> None:
        """Lock or unlock bytes for the whole process."""
        descriptor = self.descriptors.get(True, self.descriptors.get(False, -1))
        wait = fcntl.LOCK_NB if kind != fcntl.LOCK_UN else 0
        fcntl.lockf(descriptor, kind | wait, length, start, os.SEEK_SET)

    def forget(self, owner: int, start: int, end: int) -> None:
        """Forget what an owner has in a range."""
        kept = []
        for one in self.held:
            if one.owner != owner or not one.overlaps(start, end):
                kept.append(one)
                continue
            for first, last in ((one.start, min(one.end, start)), (max(one.start, end), one.end)):
                if first < last:
                    kept.append(_Held(owner, first, last, exclusive=one.exclusive))
        self.held = kept

    def settle(self, start: int, end: int) -> None:
        """Have the process keep in a range what its owners have, and no more."""
        for first, last in self._pieces(start, end):
            kinds = [one.exclusive for one in self.held if one.overlaps(first, last)]
            self.lock(_KINDS[any(kinds)] if kinds else fcntl.LOCK_UN, first, last - first)

    def _pieces(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        edges = {start, end}
        for one in self.held:
            edges.update(edge for edge in (one.start, one.end) if start < edge < end)
        yield from pairwise(sorted(edges))


_mutex = threading.RLock()  # guards the tables; a signal handler may come in between
_files: dict[tuple[int, int], _File] = {}
"""By device and inode."""
_by_fd: dict[int, _File] = {}


def open_locked(path: str, owner: object, opener: Callable[[], int], *, writable: bool) -> int:
    """See file_locks."""
    with _mutex:
        try:
            known = _files.get(_key(os.lstat(path)))
        except OSError:
            known = None
        if known is not None:
            fd = known.descriptors.get(True) if writable else known.any_descriptor()
            if fd is not None:
                known.owners[id(owner)] = owner
                return fd
        fd = opener()
        key = _key(os.fstat(fd))
        file = _files.setdefault(key, _File())
        if writable in file.descriptors:
            file.parked.append(fd)
            fd = file.descriptors[writable]
        else:
            file.descriptors[writable] = fd
            _by_fd[fd] = file
        file.owners[id(owner)] = owner
        return fd


def close_locked(fd: int, owner: object) -> None:
    """See file_locks."""
    with _mutex:
        file = _by_fd.get(fd)
        if file is None or id(owner) not in file.owners:
            return
        if len(file.owners) > 1:
            for one in [one for one in file.held if one.owner == id(owner)]:
                file.forget(id(owner), one.start, one.end)
                file.settle(one.start, one.end)
            del file.owners[id(owner)]
            return
        _files.pop(_key(os.fstat(fd)), None)
        descriptors = [*file.descriptors.values(), *file.parked]
        for descriptor in descriptors:
            _by_fd.pop(descriptor, None)
        for descriptor in descriptors:  # the first one releases all locks
            os.close(descriptor)


def close_unlocked(fd: int) -> None:
    """See file_locks."""
    with _mutex:
        file = _files.get(_key(os.fstat(fd))) if _files else None
        if file is None:
            os.close(fd)
        else:
            file.parked.append(fd)


def set_lock(fd: int, owner: object, kind: int, start: int, length: int) -> None:
    """See file_locks. Raises BlockingIOError at a conflicting lock of this process."""
    end = start + length
    exclusive = kind == fcntl.F_WRLCK
    with _mutex:
        file = _file_of(fd, owner)
        if kind == fcntl.F_UNLCK:
            file.forget(id(owner), start, end)
            file.settle(start, end)
            return
        if _rival(file, owner, start, end, exclusive=exclusive):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        if not file.is_marked:
            file.lock(fcntl.LOCK_SH, mark_of(os.getpid()), 1)
            file.is_marked = True
        file.lock(_KINDS[exclusive], start, length)
        file.forget(id(owner), start, end)
        file.held.append(_Held(id(owner), start, end, exclusive=exclusive))


def wait_lock(fd: int, owner: object, kind: int, start: int, length: int) -> None:
    """See file_locks. Waits by trying again, at least fifty times a second; ends with OSError
    (EBADF) when another thread closes the owner."""
    pause = _FIRST_PAUSE
    while True:
        try:
            set_lock(fd, owner, kind, start, length)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
        else:
            return
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)


def conflicting(fd: int, owner: object, kind: int, start: int, length: int) -> int | None:
    """See file_locks."""
    pid = None
    for _ in range(LOOKS):
        pid = pid_with_lock(fd, owner, kind, start, length)
        if pid is None or pid == 0:
            return pid
        if pid < 0 or pid == os.getpid() or _has_mark(fd, pid):
            return OURS
    return pid


def pid_with_lock(fd: int, owner: object, kind: int, start: int, length: int) -> int | None:
    """The pid of a process whose lock conflicts, this one's if it is of another owner; None if
    there is none."""
    with _mutex:
        file = _file_of(fd, owner)
        if _rival(file, owner, start, start + length, exclusive=kind == fcntl.F_WRLCK):
            return os.getpid()
        found = _query(fd, kind, start, length)
    return None if found is None else found[2]


def pids_with_locks(fd: int, owner: object) -> list[int]:
    """The processes that have locks of this form on a file, by their marks; 0 across namespaces."""
    found = set()
    ranges = [(_MARKS, 0)]
    while ranges:
        start, length = ranges.pop()
        lock = _query(fd, fcntl.F_WRLCK, start, length)
        if lock is None:
            continue
        at, size, pid = lock
        if (at, size) == (mark_of(pid), 1):
            found.add(pid)
        if at > start:
            ranges.append((start, at - start))
        if size and (not length or at + size < start + length):
            ranges.append((at + size, length and start + length - at - size))
    with _mutex:
        if any(one.owner != id(owner) for one in _file_of(fd, owner).held):
            found.add(os.getpid())
    return sorted(found)


def _has_mark(fd: int, pid: int) -> bool:
    return _query(fd, fcntl.F_WRLCK, mark_of(pid), 1) == (mark_of(pid), 1, pid)


def _query(fd: int, kind: int, start: int, length: int) -> tuple[int, int, int] | None:
    """Start, length and pid of a conflicting lock of another process."""
    layout = next((_LAYOUTS[name] for name in _LAYOUTS if sys.platform.startswith(name)), None)
    if layout is None:
        reason = f"how {sys.platform} describes the owner of a lock is not known to rmqctl"
        raise OSError(errno.ENOTSUP, reason)
    packed = struct.Struct(layout)
    kind_first = layout.startswith("h")
    rest = (0,) * (layout.count("i") - 1)
    if kind_first:
        request = packed.pack(kind, os.SEEK_SET, start, length, 0, *rest)
        found, _, at, size, pid, *_ = packed.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, request))
    else:
        request = packed.pack(start, length, 0, kind, os.SEEK_SET, *rest)
        at, size, pid, found, *_ = packed.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, request))
    return None if found == fcntl.F_UNLCK else (at, size, pid)


def _rival(file: _File, owner: object, start: int, end: int, *, exclusive: bool) -> bool:
    """Whether another owner in this process has a conflicting lock."""
    return any(
        one.owner != id(owner) and one.overlaps(start, end) and (exclusive or one.exclusive)
        for one in file.held
    )


def _file_of(fd: int, owner: object) -> _File:
    file = _by_fd.get(fd)
    if file is None or id(owner) not in file.owners:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return file


def _key(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _in_child() -> None:
    """A forked child has none of the locks, and none of the owners."""
    global _mutex
    _mutex = threading.RLock()
    descriptors = [
        fd for file in _files.values() for fd in (*file.descriptors.values(), *file.parked)
    ]
    _files.clear()
    _by_fd.clear()
    for fd in descriptors:
        os.close(fd)


os.register_at_fork(after_in_child=_in_child)
