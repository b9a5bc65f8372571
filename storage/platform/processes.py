"""Other processes: which of them has a lock, is stopped, or uses the processor.

Nothing is decided by it but what a message says, and how long to wait for a process. Whether a
process lives is told by its locks alone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def pids_with_locks(path: Path) -> list[int]:
    """The processes that have a lock on a file, as far as this user may see them."""
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


def pid_with_lock(path: Path, byte: int) -> int | None:
    """Pid of the process with an exclusive lock on the byte, None if it cannot be determined.

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


def _covers(line: str, byte: int) -> bool:
    # lock: 1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 1 1
    fields = line.split()
    if len(fields) != 9 or fields[2] != "OFDLCK" or fields[4] != "WRITE":
        return False
    return int(fields[7]) <= byte and (fields[8] == "EOF" or byte <= int(fields[8]))


def is_stopped(pid: int) -> bool:
    """Whether the process has been stopped (Ctrl-Z)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def processor_time(pid: int | None) -> int | None:
    """Clock ticks that the process has used; None where that cannot be read."""
    if pid is None:
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return None


def is_at_work(group: int) -> bool:
    """Whether a process group has a process that has not ended; it may be a zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user's: the number has been given out again
        return False
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group, *_ = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False


def name_process(name: str) -> None:
    """Give this process the name that ``ps`` shows, of 15 bytes at most, where that is possible."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name, "ascii")
