"""Interruptions, as by a signal that raises, or a system that starts no thread.

At every instant, one after the other (``broken_off``); where a thread is started.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType, ModuleType
from typing import Any, Final

import pytest

_LOOKS: Final = {
    dis.opmap[name]
    for name in ("RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD")
    if name in dis.opmap
}
"""After these CPython checks for signals, and nowhere else: not at the end of a ``with``, say."""


class BrokenOff(BaseException):
    """Stands for KeyboardInterrupt, which would end the tests where it got out."""


class _BreaksOff:
    """Traces ``work``, and raises at one instant."""

    def __init__(self, files: set[str | None], number: int) -> None:
        self._files = files
        self._left = number
        self._looks: dict[FrameType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            if self._looks.get(frame):
                self._left -= 1
                if self._left < 0:
                    raise BrokenOff  # which ends the tracing
            self._looks[frame] = frame.f_code.co_code[frame.f_lasti] in _LOOKS
        return self


def broken_off(work: Callable[[], object], *modules: ModuleType) -> Iterator[int]:
    """Call ``work`` again and again, and interrupt it, each time one instant later.

    An instant is a check for signals by CPython in a function of one of the modules. Yields after
    each interruption, so that the caller can check the result and begin again, until ``work``
    comes to its end.
    """
    files = {module.__file__ for module in modules}
    for number in count():
        before = sys.gettrace()
        sys.settrace(_BreaksOff(files, number))
        try:
            with suppress(BrokenOff):
                work()
                return
        finally:
            sys.settrace(before)
        yield number


BROKEN: Final = (RuntimeError, KeyboardInterrupt)
"""What a start raises that is broken off."""


@contextmanager
def starts_broken_off(name: str, *, runs: bool, well: int = 0) -> Iterator[None]:
    """Threads whose names begin so cannot be started, after the first ``well`` of them: the
    system gives none, or, where it ``runs`` already, Ctrl-C comes."""
    real = threading.Thread.start
    left = well

    def start(thread: threading.Thread) -> None:
        nonlocal left
        left -= thread.name.startswith(name)
        is_broken = thread.name.startswith(name) and left < 0
        if runs or not is_broken:
            real(thread)
        if is_broken:
            raise KeyboardInterrupt if runs else RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        yield


def running(name: str) -> int:
    """How many threads there are whose names begin so."""
    return sum(thread.name.startswith(name) for thread in threading.enumerate())
