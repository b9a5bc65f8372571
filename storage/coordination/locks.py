"""Locks that the kernel releases when their process dies (storage/platform/file_locks.py).

Threads that share a descriptor do not exclude one another, so users add a thread lock.

``os.fork`` may share a descriptor and with it the lock: children close theirs (see
:func:`at_fork`), which, unlike an unlock, leaves the parent's lock alone. A fork waits until other
threads have noted what they open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple, Self

from storage.errors import WriteLockTimeoutError
from storage.files.creating import open_or_create, open_to_write
from storage.platform.file_locks import (
    HAS_LOCKS_OF_DESCRIPTORS,
    close_locked,
    conflicting,
    open_locked,
    set_lock,
    wait_lock,
)
from storage.platform.process_locks import OURS

from .forks import Section

_BUSY: Final = (errno.EAGAIN, errno.EACCES)
_FIRST_PAUSE: Final = 50e-6
_LEAST_S: Final = 0.5
_LONGEST_PAUSE: Final = 5e-3
"""Seconds between two attempts of a process that has waited for a while."""


class LockOwner(NamedTuple):
    """The owner of a conflicting lock. ``pid`` is None for a lock of rmqctl, 0 across
    namespaces."""

    pid: int | None


class LockFile:
    """One descriptor of one lock file and the byte-range locks held through it.

    Exclusive locks need ``writable=True``. Closing releases all of them.
    """

    __slots__ = ("__weakref__", "fd", "path")

    def __init__(self, path: Path, *, create: bool = True, writable: bool = True) -> None:
        self.path = path
        if create:
            opener: Callable[[], int] = partial(open_or_create, path)
        elif writable:
            opener = partial(open_to_write, path)
        else:
            # A pipe under this name must not block the open.
            opener = partial(os.open, path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with _noting.lock:
            self.fd = open_locked(str(path), self, opener, writable=create or writable)
            """The descriptor; -1 after :meth:`close`. Not to be set."""
            _open_locks.add(self)

    def try_lock(self, start: int, length: int = 1, *, exclusive: bool = True) -> bool:
        """Lock the bytes, or change the lock held on them; False if another process holds a
        conflicting lock.

        A shared lock stays in place when making it exclusive fails. Never blocks.
        """
        try:
            set_lock(self.fd, self, fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, start, length)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise
        return True

    def lock(self, start: int, length: int = 1, *, exclusive: bool = True) -> None:
        """Lock the bytes, waiting as long as it takes. Not interrupted by signals."""
        wait_lock(self.fd, self, fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK, start, length)

    def unlock(self, start: int, length: int = 1) -> None:
        """Release the bytes; also a full memory barrier (a system call)."""
        set_lock(self.fd, self, fcntl.F_UNLCK, start, length)

    def holder(self, start: int, length: int = 1, *, exclusive: bool = True) -> LockOwner | None:
        """The owner of a lock that conflicts with this one now, or None."""
        wanted = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        pid = conflicting(self.fd, self, wanted, start, length)
        if pid is None:
            return None
        return LockOwner(None if pid == OURS else pid)

    def close(self) -> None:
        """Close the descriptor and with it release all locks. Closing twice is fine."""
        if HAS_LOCKS_OF_DESCRIPTORS:
            with _noting.lock:
                self._close()
        else:  # a child has no locks; the garbage collector may come here inside their mutex
            self._close()

    def _close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            close_locked(fd, self)


_noting: Final = Section()
"""Held while a descriptor is opened or closed: a child knows each one that it has."""
_open_locks: weakref.WeakSet[LockFile | _HeldInside] = weakref.WeakSet()
_fork_callbacks: weakref.WeakSet[ForkAware] = weakref.WeakSet()


class ForkAware:
    """Base of objects that must not be used in a forked child; :meth:`after_fork` runs there."""

    __slots__ = ("__weakref__",)

    def after_fork(self) -> None:
        """Mark this object dead in the child."""


def at_fork(what: ForkAware) -> None:
    """Have ``what.after_fork()`` called in each forked child while it lives."""
    _fork_callbacks.add(what)


def _in_child() -> None:
    locks = list(_open_locks)
    for lock in locks:
        lock.close()
    for lock in locks:
        if isinstance(lock, _HeldInside):
            lock.close_rest()
    for callback in list(_fork_callbacks):
        callback.after_fork()


os.register_at_fork(after_in_child=_in_child)


class ProcessLock:
    """An exclusive lock on byte 0 of a file of its own, for threads and processes alike: each
    holder has its own descriptor. Meant for work of milliseconds."""

    def __init__(self, path: Path, limit_s: float = 10.0) -> None:
        self._path = path
        self._limit_s = limit_s
        self._ends = float("inf")

    def held(self) -> AbstractContextManager[object]:
        """Open the lock file, for ``with``: the lock is held inside, and entering waits for it.

        Raises OSError. Entering raises it too, and WriteLockTimeoutError if the lock is not
        obtained within ``limit_s``: its holder may be stopped.
        """
        if not HAS_LOCKS_OF_DESCRIPTORS:
            return _HeldFile(self, LockFile(self._path))
        with _noting.lock:
            try:
                file = _HeldInside(self._path, "r+")
            except FileNotFoundError:
                os.close(open_or_create(self._path))
                file = _HeldInside(self._path, "r+")
            file.process_lock, file.noted_fd = self, file.fileno()
            _open_locks.add(file)
        return file

    def hurry(self, seconds: float) -> None:
        """Make all waits for the lock, begun or not, end ``seconds`` from now, but not before half
        a second: their owners are being closed."""
        self._ends = time.monotonic() + max(seconds, _LEAST_S)

    def wait(self, fd: int, owner: object) -> None:
        """Lock the file of a descriptor. Raises WriteLockTimeoutError and OSError."""
        start = time.monotonic()
        pause = _FIRST_PAUSE
        while True:
            try:
                set_lock(fd, owner, fcntl.F_WRLCK, 0, 1)
            except OSError as error:
                if error.errno not in _BUSY:
                    raise
            else:
                return
            now = time.monotonic()
            if now >= min(start + self._limit_s, self._ends):
                from .lock_owners import describe_holder

                waited_ms = round((now - start) * 1000)
                raise WriteLockTimeoutError(self._path, waited_ms, describe_holder(self._path, 0))
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


class _HeldInside(FileIO):
    """A file whose byte 0 is locked inside ``with``.

    Ctrl-C may raise at any call of Python code, such as a Python ``__exit__``. That of a file is C,
    so nothing comes in between, and a file without references closes itself.
    """

    process_lock: ProcessLock
    noted_fd: int

    def close_rest(self) -> None:
        """Close the descriptor that a thread of the parent was just closing when it forked.

        It is no longer the file's then, and the child has it, and with it the lock.
        """
        with suppress(OSError):
            if os.path.samestat(os.fstat(self.noted_fd), os.stat(self.name)):  # noqa: PTH116
                os.close(self.noted_fd)

    def __enter__(self) -> Self:
        try:
            self.process_lock.wait(self.fileno(), self)
        except BaseException:
            self.close()  # it may be locked, and __exit__ does not run if __enter__ failed
            raise
        return self


class _HeldFile:
    """The same where a lock belongs to its process: the table of its owners needs Python code, and
    a file that loses its references is closed."""

    def __init__(self, process_lock: ProcessLock, file: LockFile) -> None:
        self._process_lock = process_lock
        self._file = file

    def __enter__(self) -> Self:
        try:
            self._process_lock.wait(self._file.fd, self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __del__(self) -> None:
        self._file.close()
