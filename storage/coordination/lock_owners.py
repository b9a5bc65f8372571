"""The processes that have a store open or hold a lock, found without touching any of its locks.

Nothing is decided by it but what a message says, and which processes to wait for. The system shows
the locks of the processes that this user may inspect: the same user's, in the same pid namespace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from storage.format.names import LOCK
from storage.platform.processes import (
    hides_locks,
    is_stopped,
    pid_with_lock,
    pids_with_locks,
)

from .locks import LockFile, LockOwner

_JAVA_BYTE: Final = 0


class LockOwners(NamedTuple):
    """``writers`` are the pids of rmqctl processes that have the store open for writing, as far as
    this user may see them; ``java_locked`` is true if a Java broker holds it."""

    writers: tuple[int, ...]
    java_locked: bool

    def describe(self) -> str:
        """Name them in words, "" if there are none."""
        if self.java_locked:
            return "a Java broker"
        return f"rmqctl (pid {', '.join(map(str, self.writers))})" if self.writers else ""


def find_holders(root: Path) -> LockOwners:
    """Find the holders of byte 0 of the store's lock file. Takes some milliseconds if there is one.

    The kernel gives the pid of Java's lock and none for rmqctl's, whose owners are found elsewhere.
    """
    holder = _holder(root)
    if holder is None:
        return LockOwners((), java_locked=False)
    if holder.pid is not None:
        return LockOwners((), java_locked=True)
    return LockOwners(tuple(pids_with_locks(root / LOCK)), java_locked=False)


def is_java_running(root: Path) -> bool:
    """Whether a Java broker has the store: one system call, and no lock is taken."""
    holder = _holder(root)
    return holder is not None and holder.pid is not None


def _holder(root: Path) -> LockOwner | None:
    try:
        file = LockFile(root / LOCK, create=False, writable=False)
    except OSError:
        return None
    try:
        return file.holder(_JAVA_BYTE)
    except OSError:  # a system without these locks
        return None
    finally:
        file.close()


def describe_holder(path: Path, byte: int, known: int = 0) -> str:
    """Name the holder for people; ``known`` is the pid that it noted, or that one before it did.

    That one counts only for a process of another user, whose locks cannot be seen. Across
    namespaces it is the number of another process, or of none.
    """
    pid = pid_with_lock(path, byte) or (known if known and hides_locks(known) else 0)
    if not pid:
        return "another rmqctl process"
    return f"process {pid}" + (" (stopped)" if is_stopped(pid) else "")
