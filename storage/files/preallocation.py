"""Blocks of a file ahead of the stores to it and, where stores come quickly, pages as well.

A store to a page that was never written waits for the system to make it: a third of the time of a
batch of 100 messages of 1 KiB. So while records come quickly another thread makes blocks and pages
of a window before they are needed (native/writing/pages_ahead.c), on a processor that would be
idle. Where a window takes a while, no thread waits for its pages, and a sync would write their
zeros in vain.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.config import FlushDiskType
from storage.platform.processors import usable_processors

from .prefault_size import LARGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.config import StoreConfig

    from .mapped_file import MappedFile


class WindowSize(NamedTuple):
    """How far ahead files of a kind have blocks and pages."""

    size: int
    """Bytes of blocks that are reserved at once."""
    quick_s: float
    """If a window is full sooner than this, pages are made for the next one."""
    ahead: int
    """Bytes of pages that are made after the blocks then."""
    piece: int
    """Bytes of pages that are made at once."""
    lead: int
    """Bytes after the end of the stored bytes from which on pages are made."""


LOG_WINDOW: Final = 16 << 20
"""Bytes of blocks reserved ahead in a commit log file."""
QUEUE_WINDOW: Final = 64 << 10
"""Bytes of blocks reserved ahead in a queue file: 3,276 units."""
INDEX_WINDOW: Final = 1 << 20
"""Bytes of blocks reserved ahead among the entries of an index file."""
OF_LOG: Final = WindowSize(LOG_WINDOW, 0.4, LOG_WINDOW, LARGE, LARGE // 2)
"""From some 40 MB/s on there are pages."""
OF_QUEUE: Final = WindowSize(QUEUE_WINDOW, 0.1, 4 * QUEUE_WINDOW, 2 * QUEUE_WINDOW, QUEUE_WINDOW)
"""From some 30,000 messages a second on."""
OF_INDEX: Final = WindowSize(INDEX_WINDOW, 0.1, 4 * INDEX_WINDOW, LARGE, INDEX_WINDOW // 4)
"""From some 500,000 keys a second on."""


class Preallocation:
    """What one log, queue or index has ahead of where it is stored to; needs the write lock."""

    __slots__ = ("_began", "_first", "_makes_pages", "_seconds", "_window")

    def __init__(
        self,
        window: WindowSize,
        *,
        makes_pages: bool,
        first: int = 0,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """``makes_pages`` False: never; see :func:`has_pages_made`. ``first``: bytes at the
        beginning of a file that are stored to all the time, anywhere."""
        self._window = window
        self._makes_pages = makes_pages
        self._first = first
        self._seconds = seconds
        self._began = float("-inf")

    def reserve(self, file: MappedFile, position: int, size: int) -> None:
        """Reserve blocks for so many bytes from ``position``, where stores go on.

        Pages are made only for a run of this process: those for one put among many of others would
        be made in vain.

        Raises OSError (ENOSPC) on a full disk; nothing is changed then.
        """
        end = position + size
        if end <= file.reserved_to:
            return
        window = self._window
        is_own_run = position <= file.reserved_to  # else other processes have filled the last one
        file.reserve(position, end, window.size)
        now = self._seconds()
        is_quick, self._began = now - self._began < window.quick_s, now
        # One write of many bytes makes large pages itself, without zeros in them.
        if is_quick and is_own_run and self._makes_pages and size < LARGE:
            until = min(file.size, file.reserved_to + window.ahead)
            file.make_pages(end, until, window.piece, window.lead, self._first)


def has_pages_made(config: StoreConfig) -> bool:
    """Tell whether pages of a store are made ahead.

    That is where a thread has a processor of its own, and no put is synced: a sync scans all of a
    page that a put has touched.
    """
    synced = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
    return usable_processors() > 1 and not synced
