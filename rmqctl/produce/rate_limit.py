"""Rate limit: at most a number of messages per second, spread evenly to the millisecond."""

import time
from collections.abc import Callable
from typing import Final

_TICK_S: Final = 0.001
"""Messages that are due within a tick go out together: a wait for each one would cost more than
its send."""
_MOST_LATE_S: Final = 0.05
"""Delays up to this are made up: a process may lose the processor for some milliseconds."""
_LONGEST_S: Final = 1e9
"""The longest sleep at once: the system takes no more than 292 years."""


def sleep_until(due: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    """Sleep up to a time of the clock, however far away it is."""
    while (left := due - clock()) > _LONGEST_S:
        sleep(_LONGEST_S)
    if left > 0:
        sleep(left)


class Pace:
    """Returns how many messages may be sent now, and waits in between; None is no limit.

    Message ``n`` is due at ``start + n / rate``, so the errors of single waits do not add up. At
    most a twentieth of a second's messages are sent at once: longer delays, such as those of a slow
    input, are not made up by a burst.
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
        """When the next message is due."""
        self._tick = self._due
        """The earliest time of the next portion."""

    def portion(self, wanted: int) -> int:
        """Number of the ``wanted`` messages that may be sent in one step; waits until then."""
        if self._rate is None or wanted == 0:
            return wanted
        now = self._clock()
        begin = max(self._due, self._tick)
        if begin > now:
            sleep_until(begin, self._clock, self._sleep)
            now = max(self._clock(), begin)
        due = max(self._due, now - _MOST_LATE_S)
        allowed = min(wanted, 1 + int((now - due) * self._rate))
        self._due = due + allowed / self._rate
        # With messages left that are due, the caller's batches are smaller than a tick's messages.
        self._tick = now + _TICK_S if self._due > now else now
        return allowed
