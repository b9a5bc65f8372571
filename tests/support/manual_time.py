"""A clock and timers that move only when a test says so."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from client.timing import Timer


class ManualClock:
    """A client.timing.Clock that stands still."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def set(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def advance(self, ms: int) -> None:
        """Move the clock alone; timers read it at their scheduler's next ``advance``."""
        self._now_ms += ms


class ManualScheduler:
    """A client.timing.Scheduler over a ManualClock; ``advance`` runs what is due, in order.

    ``part`` gives schedulers of the same time that can be shut down by themselves.
    """

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.stopped = False
        self._heap: list[tuple[int, int, Timer, ManualScheduler]] = []
        self._order = itertools.count()

    def part(self, name: str) -> ManualScheduler:
        """Make a scheduler that is advanced with this one; for ClientManager(schedulers=...)."""
        del name
        part = ManualScheduler(self.clock)
        part._heap, part._order = self._heap, self._order
        return part

    def call_later(self, delay_ms: int, action: Callable[[], object]) -> Timer:
        return self._add(delay_ms, Timer(action))

    def call_every(self, first_ms: int, period_ms: int, action: Callable[[], object]) -> Timer:
        return self._add(first_ms, Timer(action, period_ms))

    def shutdown(self) -> None:
        self.stopped = True

    def advance(self, ms: int) -> None:
        """Go on for ``ms``: the clock stands at each timer's own time while it runs."""
        end = self.clock.now_ms() + ms
        while self._heap and self._heap[0][0] <= end:
            due, _, timer, owner = heapq.heappop(self._heap)
            if owner.stopped or timer.cancelled:
                continue
            self.clock.set(max(due, self.clock.now_ms()))
            if timer.period_ms is not None:
                owner._push(due + timer.period_ms, timer)
            timer.run()
        self.clock.set(max(end, self.clock.now_ms()))

    @property
    def pending_ms(self) -> list[int]:
        """In how many ms the timers that were not cancelled run, soonest first."""
        now = self.clock.now_ms()
        return sorted(
            due - now
            for due, _, timer, owner in self._heap
            if not timer.cancelled and not owner.stopped
        )

    def _add(self, delay_ms: int, timer: Timer) -> Timer:
        if self.stopped:
            timer.cancel()
        else:
            self._push(self.clock.now_ms() + delay_ms, timer)
        return timer

    def _push(self, due: int, timer: Timer) -> None:
        heapq.heappush(self._heap, (due, next(self._order), timer, self))
