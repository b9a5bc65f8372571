"""Blocks of the log's file ahead of its end, and where records come quickly pages, too.

A store to a page that was never written waits for the system to make it: a third of the time of a
batch of 100 messages of 1 KiB. So while records come quickly another thread makes blocks and pages
of a window before they are needed (native/writing/pages_ahead.c); its processor would be idle.
Where a window takes a while, nobody waits for its pages, and the zeros in them would be synced in
vain.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.files.mapped_file import MappedFile

LOG_WINDOW: Final = 16 << 20
"""Bytes of blocks reserved ahead in a commit log file."""
_QUICK_S: Final = 0.4
"""A window that is full sooner is followed by one with pages: from some 40 MB/s on."""


class LogWindows:
    """What the log has ahead of its end; needs the gate."""

    def __init__(self, *, makes_pages: bool, seconds: Callable[[], float] = time.monotonic) -> None:
        """``makes_pages`` False: never, as where each put is synced."""
        self._makes_pages = makes_pages
        self._seconds = seconds
        self._began = float("-inf")

    def reserve(self, file: MappedFile, position: int, size: int) -> None:
        """Have blocks for so many bytes from ``position``, where the log ends.

        Raises OSError (ENOSPC) on a full disk; nothing is changed then.
        """
        end = position + size
        if end <= file.reserved_to:
            return
        file.reserve(position, end, LOG_WINDOW)
        now = self._seconds()
        is_quick, self._began = now - self._began < _QUICK_S, now
        if is_quick and self._makes_pages:
            file.make_pages(end, min(file.size, file.reserved_to + LOG_WINDOW))
