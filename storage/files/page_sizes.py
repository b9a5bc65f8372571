"""How large the pages are that files are got ready with.

The kernel makes one page of what is written at once, up to 2 MiB, and large ones cost less. But it
needs a free block of that size. A virtual machine that gives free memory back to its host has to
ask for each of them, and whoever puts waits for that, ten or a hundred times as long. Small blocks
the kernel has at hand. So one large page that takes long makes all small for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LARGE: Final = 2 << 20
SMALL: Final = 32 << 10
_SLOW_S: Final = 0.002
"""Of the processor: waiting for a turn of it tells nothing of memory."""
_PAUSE_S: Final = 10.0


class PageSizes:
    """What is known of the memory of this machine. Safe for threads: one may learn of it late."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._small_until = float("-inf")

    @property
    def are_large(self) -> bool:
        """Whether the next page is to be a large one."""
        return self._seconds() >= self._small_until

    def note_large(self, took_s: float) -> None:
        """Take notice of the seconds of processor time that a large page took."""
        if took_s > _SLOW_S:
            self._small_until = self._seconds() + _PAUSE_S


PAGE_SIZES: Final = PageSizes()
"""Of this process: whatever its stores are, its memory is one."""
