"""The size of the pages that files are prepared with.

The kernel makes one page of what is written at once, up to 2 MiB. A large one costs less than as
many small ones: to make, and to store to. But it needs a free block of that size. A virtual machine
that gives free memory back to its host has to request each of them, and the put waits for that,
many times as long; small blocks the kernel has ready. So small pages come first, and when a large
one was too slow, all are small for a while: for a moment after the first time, for longer after
each repetition. The time of small pages is always known, as queues always use them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LARGE: Final = 2 << 20
SMALL: Final = 32 << 10
LITTLE: Final = 8 * SMALL
"""Up to so many bytes are always prepared in small pages."""
_TOO_DEAR: Final = 2
"""Factor over the time of as many small pages: those cost about as much again when they are stored
to."""
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 10.0


class PrefaultSize:
    """Measurements of the memory of this machine. Safe for threads: a thread may see an update
    late."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._small_until = float("-inf")
        self._pause_s = _SHORTEST_S
        self._small_s: float | None = None  # time of as many bytes in small pages

    @property
    def are_large(self) -> bool:
        """Whether the next page is to be a large one."""
        return self._small_s is not None and self._seconds() >= self._small_until

    def note(self, size: int, took_s: float) -> None:
        """Note what a page of ``LARGE`` or ``SMALL`` bytes took, in seconds of processor time:
        waiting for the processor says nothing about memory."""
        if size == SMALL:
            all_s = took_s * (LARGE // SMALL)
            known = self._small_s
            # An interrupted one is no measure: down at once, and up little by little.
            self._small_s = all_s if known is None else min(all_s, known + (all_s - known) / 64)
        elif self._small_s is not None and took_s > _TOO_DEAR * self._small_s:
            self._small_until = self._seconds() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_S)
        else:
            self._pause_s = max(self._pause_s / 2, _SHORTEST_S)


PAGE_SIZES: Final = PrefaultSize()
"""One for the process: all its stores use the same memory."""
