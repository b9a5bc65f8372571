"""Other processes: which of them has a lock, is stopped, or uses the processor.

Nothing is decided by it but what a message says, and how long to wait for a process. Whether a
process lives is known by its locks alone, and no pid is ever taken for a process that had it
before: so there is no need of start times.

Linux: /proc. Any POSIX system: the lock names its process, and ``ps`` tells the rest.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from . import form, process_locks
from .process_locks import close_locked, open_locked

_SECONDS: Final = 5
_TIME: Final = re.compile(r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?$")


def _pids_with_locks(path: Path) -> list[int]:
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


def _pid_with_lock(path: Path, byte: int) -> int | None:
    try:
        wanted = path.stat()
        pids = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names only
    except OSError:
        return None
    for pid in pids:
        with suppress(OSError):  # gone meanwhile, or another user's
            if any(_has_byte(pid, fd, wanted, byte) for fd in _descriptors(pid, path.name)):
                return int(pid)
    return None


def _descriptors(pid: str, name: str) -> list[str]:
    """The descriptors of files of this name. A link is read in a tenth of the time that it takes to
    read what the system says about a descriptor, and a hundred waiters may ask at once."""
    folder = f"/proc/{pid}/fd"
    found = []
    for fd in os.listdir(folder):  # noqa: PTH208
        with suppress(OSError):  # closed meanwhile
            if os.readlink(f"{folder}/{fd}").endswith(f"/{name}"):  # noqa: PTH115
                found.append(fd)
    return found


def _has_byte(pid: str, fd: str, wanted: os.stat_result, byte: int) -> bool:
    info = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
    return any(_covers(line, byte) for line in info.splitlines()) and os.path.samestat(
        Path(f"/proc/{pid}/fd/{fd}").stat(), wanted
    )


def _covers(line: str, byte: int) -> bool:
    # lock: 1: OFDLCK  ADVISORY  WRITE -1 fe:00:1234 1 1
    fields = line.split()
    if len(fields) != 9 or fields[2] != "OFDLCK" or fields[4] != "WRITE":
        return False
    return int(fields[7]) <= byte and (fields[8] == "EOF" or byte <= int(fields[8]))


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def _processor_time(pid: int | None) -> int | None:
    if pid is None:
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return None


def _is_at_work(group: int) -> bool:
    if not _has_members(group):
        return False
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, of_group, *_ = path.read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False


def _hides_locks(pid: int) -> bool:
    try:
        os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _hides_nothing(_pid: int) -> bool:
    return False  # a lock names its process to all


def _name_process(name: str) -> None:
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name, "ascii")


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user's: the number has been given out again
        return False
    return True


# -- any POSIX system -----------------------------------------------------------------------------


@contextmanager
def _open_to_ask(path: Path) -> Iterator[tuple[int, object]]:
    owner = object()
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    fd = open_locked(str(path), owner, lambda: os.open(path, flags), writable=False)
    try:
        yield fd, owner
    finally:
        close_locked(fd, owner)


def _pids_by_marks(path: Path) -> list[int]:
    try:
        with _open_to_ask(path) as (fd, owner):
            return [pid for pid in process_locks.pids_with_locks(fd, owner) if pid > 0]
    except OSError:
        return []


def _pid_named_by_lock(path: Path, byte: int) -> int | None:
    try:
        with _open_to_ask(path) as (fd, owner):
            pid = process_locks.pid_with_lock(fd, owner, fcntl.F_RDLCK, byte, 1)
    except OSError:
        return None
    return pid if pid is not None and pid > 0 else None


def _ps(*arguments: str) -> str:
    """What ``ps`` prints, "" if it cannot be run."""
    try:
        done = subprocess.run(
            ["ps", *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _is_stopped_by_program(pid: int) -> bool:
    return _ps("-o", "stat=", "-p", str(pid)).strip().startswith("T")


def _time_by_program(pid: int | None) -> int | None:
    found = None if pid is None else _TIME.match(_ps("-o", "time=", "-p", str(pid)).strip())
    return None if found is None else hundredths_of(found)


def hundredths_of(found: re.Match[str]) -> int:
    """Hundredths of seconds in a time that ``ps`` prints."""
    days, hours, minutes, seconds = (int(text or 0) for text in found.groups()[:4])
    hundredths = int(((found[5] or "") + "00")[:2])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 100 + hundredths


def _is_at_work_by_program(group: int) -> bool:
    if not _has_members(group):
        return False
    rows = [line.split() for line in _ps("-A", "-o", "pgid=", "-o", "stat=").splitlines()]
    states = [row[1] for row in rows if len(row) == 2 and row[0] == str(group)]
    return not rows or any(state[0] not in "ZX" for state in states)


def _leave_name(_name: str) -> None:
    return


pids_with_locks: Final = form(_pids_with_locks, _pids_by_marks)
"""The processes that have a lock on a file, as far as this user may see them."""
pid_with_lock: Final = form(_pid_with_lock, _pid_named_by_lock)
"""Pid of the process with an exclusive lock on a byte of a file, None if it cannot be determined.
Takes about 10 ms on a machine with some hundred processes."""
hides_locks: Final = form(_hides_locks, _hides_nothing)
"""Whether there is such a process, of which this user may not see what it has open."""
is_stopped: Final = form(_is_stopped, _is_stopped_by_program)
"""Whether a process has been stopped (Ctrl-Z)."""
processor_time: Final = form(_processor_time, _time_by_program)
"""A number that grows while a process uses the processor; None where that cannot be read."""
is_at_work: Final = form(_is_at_work, _is_at_work_by_program)
"""Whether a process group has a process that has not ended; it may be a zombie."""
name_process: Final = form(_name_process, _leave_name)
"""Give this process the name that ``ps`` shows, of 15 bytes at most, where that is possible."""
