"""Rate limit: at most a number of messages per second, in small even portions."""

import time
from collections.abc import Callable
from typing import Final

_PORTIONS_A_SECOND: Final = 20


class Pace:
    """Returns how many messages may be sent now, and waits in between; None is no limit.

    A burst is at most a twentieth of a second's messages, and at least one; lost time is not made
    up by a burst.
    """

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    def portion(self, wanted: int) -> int:
        """Number of the ``wanted`` messages that may be sent in one step; waits until then."""
        if self._rate is None or wanted == 0:
            return wanted
        now = self._clock()
        if self._due > now:
            self._sleep(self._due - now)
            now = self._clock()
        allowed = min(wanted, max(1, int(self._rate / _PORTIONS_A_SECOND)))
        self._due = max(self._due, now - 1 / _PORTIONS_A_SECOND) + allowed / self._rate
        return allowed
