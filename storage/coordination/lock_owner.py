"""Finding the process that holds a lock, for messages only; nothing is decided by it.

The kernel does not report the owner of an OFD lock (F_OFD_GETLK gives -1). But /proc shows the
locks of each descriptor of the processes that this user may inspect: the same user's, in the same
pid namespace.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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
