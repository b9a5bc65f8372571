"""The client's time: a clock and timers, both passed in.

RocketMQ's client has ScheduledExecutorServices of one thread each; :class:`ThreadScheduler` is one.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from storage import native
from storage.clock import now_ms
from storage.deadlines import waitable

from .starting import start_among

logger = logging.getLogger("rmqctl.client")

Action = Callable[[], object]


class Clock(Protocol):
    """Wall-clock time."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    now_ms = staticmethod(native.form("now_ms", now_ms))
    """See Clock.now_ms. Called several times a message, so without a frame of Python's."""


SYSTEM_CLOCK: Final = SystemClock()


def seconds_of(clock: Clock) -> Callable[[], float]:
    """Give a clock's time in seconds as cheaply as possible: for one call a message."""
    return time.time if clock is SYSTEM_CLOCK else lambda: clock.now_ms() / 1000


class Cancellable(Protocol):
    """Something that was scheduled."""

    def cancel(self) -> None:
        """Do not run it any more; what runs right now is not interrupted. Twice is fine."""
        ...


class Scheduler(Protocol):
    """Timers. Actions run one after the other, so a slow one delays the others.

    An action's error is logged; a periodic one goes on. Safe for threads.
    """

    def call_later(self, delay_ms: int, action: Action) -> Cancellable:
        """Run ``action`` once. After ``shutdown`` it is never run, and nothing is raised."""
        ...

    def call_every(self, first_ms: int, period_ms: int, action: Action) -> Cancellable:
        """Run ``action`` after ``first_ms`` and then each ``period_ms``; missed runs are left
        out."""
        ...

    def shutdown(self) -> None:
        """Stop all timers. Waits a moment for an action that is running. Calling twice is fine."""
        ...


class Timer:
    """One scheduled action. ``period_ms`` None: it runs once."""

    __slots__ = ("_cancelled", "action", "period_ms")

    def __init__(self, action: Action, period_ms: int | None = None) -> None:
        if period_ms is not None and period_ms <= 0:
            raise ValueError(f"the period of a timer is {period_ms} ms; it must be 1 or more")
        self.action = action
        self.period_ms = period_ms
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether it runs no more."""
        return self._cancelled

    def cancel(self) -> None:
        """See Cancellable.cancel."""
        self._cancelled = True

    def run(self) -> None:
        """Run the action unless it was cancelled; its error is logged, SystemExit too."""
        if self._cancelled:
            return
        try:
            self.action()
        except (Exception, SystemExit):
            logger.exception("a timer failed: action=%r", self.action)


_SHUTDOWN_WAIT_S: Final = 0.5
_MANY_TIMERS: Final = 1_000


class ThreadScheduler:
    """A Scheduler with one daemon thread, started at first use.

    It sleeps exactly until the next action is due, without limit if there is none. If the system
    gives no thread, raises RuntimeError and schedules nothing; the next use tries again. Cancelled
    timers are dropped before they are due when there are many.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Condition()  # guards all below
        self._heap: list[tuple[float, int, Timer]] = []
        self._most = _MANY_TIMERS
        self._order = itertools.count()
        self._threads: list[threading.Thread] = []  # one at most
        self._stopped = False

    def call_later(self, delay_ms: int, action: Action) -> Cancellable:
        """See Scheduler.call_later."""
        return self._add(delay_ms, Timer(action))

    def call_every(self, first_ms: int, period_ms: int, action: Action) -> Cancellable:
        """See Scheduler.call_every."""
        return self._add(first_ms, Timer(action, period_ms))

    def shutdown(self) -> None:
        """See Scheduler.shutdown."""
        with self._lock:
            self._stopped = True
            self._heap.clear()
            threads = list(self._threads)
            self._lock.notify()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(_SHUTDOWN_WAIT_S)

    def _add(self, delay_ms: int, timer: Timer) -> Timer:
        with self._lock:
            if self._stopped:
                timer.cancel()
                return timer
            if not self._threads:
                start_among(self._threads, self._lock, self._run, self._name)
            if len(self._heap) >= self._most:
                self._drop_cancelled()
            self._push(time.monotonic() + delay_ms / 1000, timer)
            if self._heap[0][2] is timer:
                self._lock.notify()  # the thread sleeps until something later
        return timer

    def _drop_cancelled(self) -> None:
        """Keep the timers that wait; looks again when they are twice as many."""
        self._heap = [entry for entry in self._heap if not entry[2].cancelled]
        heapq.heapify(self._heap)
        self._most = max(_MANY_TIMERS, 2 * len(self._heap))

    def _push(self, due: float, timer: Timer) -> None:
        heapq.heappush(self._heap, (due, next(self._order), timer))

    def _run(self) -> None:
        while (timer := self._next()) is not None:
            timer.run()

    def _next(self) -> Timer | None:
        """Wait for the next action that is due; None after ``shutdown``."""
        with self._lock:
            while not self._stopped:
                if not self._heap:
                    self._lock.wait()
                    continue
                due, _, timer = self._heap[0]
                now = time.monotonic()
                if timer.cancelled:
                    heapq.heappop(self._heap)
                elif due > now:
                    self._lock.wait(waitable(due - now))
                else:
                    heapq.heappop(self._heap)
                    if timer.period_ms is not None:
                        period = timer.period_ms / 1000
                        missed = (now - due) // period
                        self._push(due + (missed + 1) * period, timer)
                    return timer
        return None
