"""Forking beside a thread that is held at a chosen call; for slim interpreters only.

The thread is held until the fork begins. From there on it runs only if the fork waits: no thread is
switched to before it has to be.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType

PATIENCE_S = 20


class Held:
    """A thread that is held at the first call of a code until ``go_on`` is set."""

    def __init__(self, work: Callable[[], object], at: Callable[[CodeType], bool]) -> None:
        sys.setswitchinterval(1000)
        self._work = work
        self._at = at
        self._reached, self.go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._reached.wait(PATIENCE_S)

    def _run(self) -> None:
        sys.setprofile(self._hold)
        self._work()

    def _hold(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self._at(frame.f_code):
            sys.setprofile(None)
            self._reached.set()
            assert self.go_on.wait(PATIENCE_S)

    def goes_on_with_a_fork(self) -> None:
        os.register_at_fork(before=self.go_on.set)  # the last one that is registered is the first

    def ends(self) -> bool:
        self.go_on.set()
        self._thread.join(PATIENCE_S)
        return not self._thread.is_alive()


def is_code_of(function: object) -> Callable[[CodeType], bool]:
    return lambda code: code is function.__code__  # type: ignore[attr-defined]


def status_of_child(work: Callable[[], bool]) -> int:
    """Fork, and give the status of a child that does the work: 0, or 2 if that gives False."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE_S)
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]
