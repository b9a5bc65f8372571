"""The memory of a process, as Linux counts it in ``/proc/PID/status``."""

from __future__ import annotations

from pathlib import Path

from .run import NotMeasurableError

ANONYMOUS = "RssAnon"
"""Without pages of files."""
MOST = "VmHWM"
"""The most that was resident, pages of files included, since the process began its program.
``ru_maxrss`` begins with that of the process that has started it."""


def require_proc() -> None:
    """Raise NotMeasurableError where the memory of a process cannot be read."""
    if not Path("/proc/self/status").exists():
        raise NotMeasurableError("there is no /proc/self/status here")


def memory_bytes(field: str, pid: int | None = None) -> int:
    """The value of a field in bytes, of this process by default.

    Raises OSError where it is unknown, as of a process that has ended.
    """
    path = Path(f"/proc/{'self' if pid is None else pid}/status")
    for line in path.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    raise OSError(f"{path} has no {field}")
