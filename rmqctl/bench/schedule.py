"""When each send is due, and waiting for it."""

import math
import time
from collections.abc import Callable
from typing import Final

SPIN_NS: Final = 150_000
"""A sleep may end this much too late; the rest of a wait is a loop."""
_LONGEST_SLEEP_NS: Final = 100_000_000


class Schedule:
    """Tick ``n`` is due at ``start + n / rate``, whatever became of those before it.

    A load that falls behind thus measures from when a message should have been sent: the time that
    it waited for a slow one before it counts, too (no coordinated omission).
    """

    def __init__(
        self,
        start: int,
        ticks_per_second: float | None,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``start`` in ns of the clock; a rate of None makes each tick due when it is asked for."""
        self.start = start
        self._interval = None if ticks_per_second is None else 1e9 / ticks_per_second
        self._clock = clock
        self._sleep = sleep

    def due(self, tick: int) -> int:
        """When a tick is due, in ns of the clock."""
        if self._interval is None:
            return self._clock()
        return self.start + int(tick * self._interval)

    def ticks_before(self, time: int) -> int:
        """How many ticks are due before a time, in ns of the clock; 0 without a rate."""
        if self._interval is None:
            return 0
        ticks = max(0, math.ceil((time - self.start) / self._interval))
        while ticks and self.due(ticks - 1) >= time:
            ticks -= 1
        while self.due(ticks) < time:
            ticks += 1
        return ticks

    def wait(self, due: int, stopped: Callable[[], bool]) -> int:
        """Wait until then, or until ``stopped`` is true; returns the time."""
        while True:
            now = self._clock()
            left = due - now
            if left <= 0:
                return now
            if left <= SPIN_NS:
                self._sleep(0)  # another thread may run
            elif stopped():
                return now
            else:
                self._sleep(min(left - SPIN_NS, _LONGEST_SLEEP_NS) / 1e9)
