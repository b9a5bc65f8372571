"""How large the pages are that files are got ready with.

The kernel makes one page of what is written at once, up to 2 MiB, and a large one costs less than
as many small ones: to make, and for those who store to it. But it needs a free block of that size.
A virtual machine that gives free memory back to its host has to ask for each of them, and whoever
puts waits for that, many times as long; small blocks the kernel has at hand. So small pages come
first, and when a large one was too dear, all are small for a while: for a moment if it was the only
one, for longer each time it comes again. What small ones take is known at any time, as queues are
always got ready in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

LARGE: Final = 2 << 20
SMALL: Final = 32 << 10
LITTLE: Final = 8 * SMALL
"""Up to so many bytes are got ready in small pages at any time."""
_TOO_DEAR: Final = 2
"""Times what as many small ones took: they cost about as much once more when they are stored to."""
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 10.0


class PrefaultSize:
    """What is known of the memory of this machine. Safe for threads: one may learn of it late."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._small_until = float("-inf")
        self._pause_s = _SHORTEST_S
        self._small_s: float | None = None  # what as many bytes in small pages take

    @property
    def are_large(self) -> bool:
        """Whether the next page is to be a large one."""
        return self._small_s is not None and self._seconds() >= self._small_until

    def note(self, size: int, took_s: float) -> None:
        """Take notice of what a page of ``LARGE`` or ``SMALL`` bytes took, in seconds of processor
        time: waiting for a turn of the processor tells nothing of memory."""
        if size == SMALL:
            all_s = took_s * (LARGE // SMALL)
            known = self._small_s
            # One that was interrupted is no measure: down at once, and up little by little.
            self._small_s = all_s if known is None else min(all_s, known + (all_s - known) / 64)
        elif self._small_s is not None and took_s > _TOO_DEAR * self._small_s:
            self._small_until = self._seconds() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_S)
        else:
            self._pause_s = max(self._pause_s / 2, _SHORTEST_S)


PAGE_SIZES: Final = PrefaultSize()
"""Of this process: whatever its stores are, its memory is one."""
