"""Users who have no number in this container."""

from __future__ import annotations

import os
from pathlib import Path


def may_be_unmapped(uid: int) -> bool:
    """Whether the number is the one that stands for all users without a number in this
    container."""
    try:
        if uid != int(Path("/proc/sys/kernel/overflowuid").read_bytes()):
            return False
        parts = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return parts != ["0", "0", "4294967295"]


def has_power_over(path: str) -> bool:
    """Whether this process may act as the owner of a file, or of a folder."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
