"""How large the pages are that files are got ready with.

The kernel makes one page of what is written at once, up to 2 MiB, and a large one costs less than
as many small ones. But it needs a free block of that size. A virtual machine that gives free memory
back to its host has to ask for each of them, and whoever puts waits for that, many times as long;
small blocks the kernel has at hand. So small pages come first, and as soon as a large one costs
more than they did, all are small for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LARGE: Final = 2 << 20
SMALL: Final = 32 << 10
_PAUSE_S: Final = 10.0


class PageSizes:
    """What is known of the memory of this machine. Safe for threads: one may learn of it late."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._small_until = float("-inf")
        self._small_s: float | None = None  # what as many bytes in small pages take

    @property
    def are_large(self) -> bool:
        """Whether the next page is to be a large one."""
        return self._small_s is not None and self._seconds() >= self._small_until

    def note(self, size: int, took_s: float) -> None:
        """Take notice of what a page of ``LARGE`` or ``SMALL`` bytes took, in seconds of processor
        time: waiting for a turn of the processor tells nothing of memory."""
        if size == SMALL:
            self._small_s = took_s * (LARGE // SMALL)
        elif self._small_s is not None and took_s > self._small_s:
            self._small_until = self._seconds() + _PAUSE_S


PAGE_SIZES: Final = PageSizes()
"""Of this process: whatever its stores are, its memory is one."""
