"""The processors that this process may use; any POSIX system: those of the machine."""

from __future__ import annotations

import os
from typing import Final

from . import form


def _allowed() -> int:
    return len(os.sched_getaffinity(0))


def _all() -> int:
    return os.cpu_count() or 1


usable_processors: Final = form(_allowed, _all)
"""Number of processors that this process may use."""
