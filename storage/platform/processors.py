"""The processors that this process may use."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
