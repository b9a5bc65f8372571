"""Users who have no number in this container; only Linux has such containers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from . import form


def _may_be_unmapped(uid: int) -> bool:
    try:
        if uid != int(Path("/proc/sys/kernel/overflowuid").read_bytes()):
            return False
        parts = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return parts != ["0", "0", "4294967295"]


def _is_mapped(_uid: int) -> bool:
    return False


def _has_power_over(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _has_power_by_id(path: str) -> bool:
    return os.geteuid() in (0, os.lstat(path).st_uid)


may_be_unmapped: Final = form(_may_be_unmapped, _is_mapped)
"""Whether a number is the one that stands for all users without a number in this container."""
has_power_over: Final = form(_has_power_over, _has_power_by_id)
"""Whether this process may act as the owner of a file, or of a folder."""
