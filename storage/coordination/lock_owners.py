"""The processes that have a store open or hold a lock, found without touching any of its locks.

Nothing is decided by it but what a message says, and which processes to wait for. The kernel does
not report the owner of an OFD lock (F_OFD_GETLK gives -1). But /proc shows the locks of each
descriptor of the processes that this user may inspect: the same user's, in the same pid namespace.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from storage.format.names import LOCK

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

    The kernel gives the pid of a POSIX lock (Java's) and none for rmqctl's locks, whose owners are
    found in ``/proc``.
    """
    holder = _holder(root)
    if holder is None:
        return LockOwners((), java_locked=False)
    if holder.pid is not None:
        return LockOwners((), java_locked=True)
    return LockOwners(tuple(_processes_with_lock(root / LOCK)), java_locked=False)


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


def _processes_with_lock(path: Path) -> list[int]:
    try:
        wanted = path.stat()
        pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []
    return sorted(pid for pid in pids if _has_lock(pid, wanted))


def _has_lock(pid: int, wanted: os.stat_result) -> bool:
    folder = Path(f"/proc/{pid}/fd")
    try:
        descriptors = [path.name for path in folder.iterdir()]
    except OSError:  # gone, or another user's
        return False
    for name in descriptors:
        try:
            found = (folder / name).stat()
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                info = Path(f"/proc/{pid}/fdinfo/{name}").read_text()
                if any(line.startswith("lock:") for line in info.splitlines()):
                    return True
        except OSError:
            continue
    return False


def find_holder(path: Path, byte: int) -> int | None:
    """Pid of the process with an exclusive OFD lock on the byte, None if it cannot be determined.

    Takes about 10 ms on a machine with some hundred processes.
    """
    try:
        wanted = path.stat()
        pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return None
    mark = f":{wanted.st_ino} "
    for pid in pids:
        with suppress(OSError):  # gone meanwhile, or another user's
            for info in Path(f"/proc/{pid}/fdinfo").iterdir():
                text = info.read_text()
                if (
                    mark in text
                    and any(_covers(line, byte) for line in text.splitlines())
                    and os.path.samestat(Path(f"/proc/{pid}/fd/{info.name}").stat(), wanted)
                ):
                    return int(pid)
    return None


def describe_holder(path: Path, byte: int, known: int = 0) -> str:
    """Name the holder for people; ``known`` is its pid where it cannot be determined."""
    pid = find_holder(path, byte) or known
    if not pid:
        return "another rmqctl process"
    return f"process {pid}" + (" (stopped)" if is_stopped(pid) else "")


def is_stopped(pid: int) -> bool:
    """Whether the process has been stopped (Ctrl-Z)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def _covers(line: str, byte: int) -> bool:
    # lock: 1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 1 1
    fields = line.split()
    if len(fields) != 9 or fields[2] != "OFDLCK" or fields[4] != "WRITE":
        return False
    return int(fields[7]) <= byte and (fields[8] == "EOF" or byte <= int(fields[8]))
