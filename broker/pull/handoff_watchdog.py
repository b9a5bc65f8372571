"""Detecting handoffs that take too long, so that other answers do not wait for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.api.pull import Handoff

logger = logging.getLogger("rmqctl.broker")

LOOK_EVERY_S: Final = 0.01
_LOOKS_FOR_NOTHING: Final = 100


class Watch:
    """Checks every 10 ms what is running, and reports once what it finds twice.

    So a report comes after 10 to 20 ms. Waking the thread costs the caller of ``begin``, so the
    thread goes on checking for a second while nothing runs, and only then sleeps until it is woken.
    It starts with the first piece of work.
    """

    def __init__(self, name: str, late: Callable[[Handoff], object]) -> None:
        """Call ``late`` with work that takes too long, in a thread of that name."""
        self._name = name
        self._late = late
        self._work: Handoff | None = None
        self._thread: threading.Thread | None = None
        self._sleeps = False
        self._woken = threading.Event()
        self._closed = threading.Event()

    @property
    def work(self) -> Handoff | None:
        """The running work."""
        return self._work

    def begin(self, work: Handoff) -> None:
        """Note that ``work`` has begun. Two threads may not call this at a time.

        Raises RuntimeError if the system gives no thread.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        self._work = work
        if self._sleeps:
            self._woken.set()

    def end(self, work: Handoff) -> None:
        """Note that ``work`` is done or reported; does nothing if other work has begun."""
        if self._work is work:
            self._work = None

    def close(self) -> None:
        """End the thread, soon; does not wait for it."""
        self._closed.set()
        self._woken.set()

    def _run(self) -> None:
        before: Handoff | None = None
        for_nothing = 0
        while not self._closed.wait(LOOK_EVERY_S):
            work = self._work
            if work is not None and work is before:
                try:
                    self._late(work)
                except Exception:
                    logger.exception("a handoff that takes too long could not be reported")
            before = work
            for_nothing = 0 if work is not None else for_nothing + 1
            if for_nothing == _LOOKS_FOR_NOTHING:
                self._sleep()
                for_nothing = 0

    def _sleep(self) -> None:
        self._woken.clear()
        self._sleeps = True  # before the check: ``begin`` uses the other order
        if self._work is None and not self._closed.is_set():
            self._woken.wait()
        self._sleeps = False
