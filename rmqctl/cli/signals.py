"""Ending the program early: SIGTERM, Ctrl-C, a time limit, a closed pipe.

Each becomes an exception in the main thread, so that ``with`` blocks close the store; the
application turns it into the exit code. They derive from BaseException, so code that catches errors
does not catch them.
"""

import os
import signal
import sys
from types import FrameType
from typing import Any, Final, NoReturn, TextIO

from rmqctl import exit_codes


class Terminated(BaseException):
    """SIGTERM arrived: close cleanly, exit 143."""


class TimeLimit(BaseException):
    """``--timeout`` ran out: close cleanly, exit 124."""


_LONGEST_S: Final = 9e9
"""The system's timer takes no more, some 292 years."""
_handlers_before: list[Any] = []
"""What SIGALRM and errors that Python ignores did before a time limit was set."""


def install() -> None:
    """Make SIGTERM and the first Ctrl-C raise; a second Ctrl-C ends the process at once.

    One that is ignored stays ignored: nohup and a shell's ``&`` ignore it for a reason. The ends of
    child processes are seen, though the caller may ignore them: else the system keeps no exit code,
    and a program of ``--exec`` that failed would count as one that succeeded.
    """
    for number, handler in ((signal.SIGTERM, _terminate), (signal.SIGINT, _interrupt)):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # closing is under way
    raise Terminated


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGINT, _end_at_once)
    raise KeyboardInterrupt


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(exit_codes.INTERRUPTED)


def end_with(code: int) -> None:
    """The work is done: a signal only ends the process sooner, with its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os._exit(code))


def limit_time(milliseconds: int) -> None:
    """Raise :class:`TimeLimit` in the main thread after ``milliseconds``."""

    def expire(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeLimit

    hook = sys.unraisablehook

    def ignored(unraisable: "sys.UnraisableHookArgs") -> None:
        # Python ignores what is raised in a finalizer or in the callback of a weak reference.
        if unraisable.exc_type is TimeLimit:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            hook(unraisable)

    sys.unraisablehook = ignored
    _handlers_before.append((signal.signal(signal.SIGALRM, expire), hook))
    signal.setitimer(signal.ITIMER_REAL, min(max(milliseconds, 1) / 1000, _LONGEST_S))


def end_time_limit() -> None:
    """Cancel the limit, if there is one, so that it does not interrupt closing.

    A timer of another owner, such as a test runner, continues.
    """
    while _handlers_before:
        signal.setitimer(signal.ITIMER_REAL, 0)
        handler, sys.unraisablehook = _handlers_before.pop()
        signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)


def silence_stdout() -> None:
    """Discard what stdout still buffers; see :func:`silence`."""
    silence(sys.stdout)


def silence(stream: TextIO) -> None:
    """Point a stream at the null device: the interpreter flushes it once more at exit."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
