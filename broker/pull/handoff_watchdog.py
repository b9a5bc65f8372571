"""Seeing to it that nobody waits for long behind what a thread does for another one."""

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
    """Looks every 10 ms at what is being done, and tells once of what it sees twice.

    So that lasts for 10 to 20 ms then. To be woken costs whoever begins something, so the one
    thread goes on looking for a second while there is nothing, and only then sleeps until it is
    woken. It starts with the first piece of work.
    """

    def __init__(self, name: str, late: Callable[[Handoff], object]) -> None:
        """Call ``late`` with what lasts for too long, in a thread of that name."""
        self._name = name
        self._late = late
        self._work: Handoff | None = None
        self._thread: threading.Thread | None = None
        self._sleeps = False
        self._woken = threading.Event()
        self._closed = threading.Event()

    @property
    def work(self) -> Handoff | None:
        """What is being done."""
        return self._work

    def begin(self, work: Handoff) -> None:
        """Note that ``work`` is begun. Not to be called by two threads at a time.

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
        """Note that ``work`` is done, or told of; nothing if it is another one by now."""
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
                    logger.exception("what lasts for too long can not be told of")
            before = work
            for_nothing = 0 if work is not None else for_nothing + 1
            if for_nothing == _LOOKS_FOR_NOTHING:
                self._sleep()
                for_nothing = 0

    def _sleep(self) -> None:
        self._woken.clear()
        self._sleeps = True  # before the look: whoever begins does so in the other order
        if self._work is None and not self._closed.is_set():
            self._woken.wait()
        self._sleeps = False
