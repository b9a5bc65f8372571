"""Blocks of the log's file ahead of its end, and where records come quickly pages, too.

A store to a page that was never written waits for the system to make it: two thirds of the time of
a batch of 100 messages of 1 KiB. So while records come quickly another thread makes the pages of a
window before they are needed (native/writing/pages_ahead.c); its processor would be idle. Where a
window takes a while, nobody waits for its pages, and the zeros in them would be synced in vain.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.files.mapped_file import MappedFile

LOG_WINDOW: Final = 16 << 20
"""Bytes of blocks reserved ahead in a commit log file."""
_QUICK_S: Final = 0.4
"""A window that is full sooner is followed by one with pages: from some 40 MB/s on."""


class LogWindows:
    """What the one log file that records go to has ahead of them; needs the gate."""

    def __init__(self, *, makes_pages: bool, seconds: Callable[[], float] = time.monotonic) -> None:
        """``makes_pages`` False: never, because each put is synced, or nothing is compiled."""
        self._makes_pages = makes_pages
        self._seconds = seconds
        self._began = float("-inf")
        self._file: MappedFile | None = None  # the one whose pages are made

    def reserve(self, file: MappedFile, position: int, size: int) -> None:
        """Have blocks for so many bytes from ``position``, where the log ends.

        Raises OSError (ENOSPC) on a full disk; nothing is changed then.
        """
        end = position + size
        if end <= self.room(file):
            return
        file.reserve(position, end, LOG_WINDOW)
        now = self._seconds()
        is_quick, self._began = now - self._began < _QUICK_S, now
        self._file = file if is_quick and self._makes_pages else None
        if self._file is not None:
            # A full disk is no error yet: what was asked for is there.
            with suppress(OSError):
                file.reserve(position, min(file.size, file.reserved_to + 1), LOG_WINDOW)
            file.make_pages(end, file.reserved_to)

    def room(self, file: MappedFile) -> int:
        """Position in the file up to which nothing has to be asked for: while pages are made, a
        window before the blocks end, so that the thread has that far to go."""
        if file is self._file and file.reserved_to < file.size:
            return file.reserved_to - LOG_WINDOW
        return file.reserved_to
