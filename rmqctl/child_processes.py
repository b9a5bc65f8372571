"""Child processes: those that were forked, and programs that have the terminal."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_END_S: Final = 5.0
"""How long a program may take to leave the terminal as it was."""


def kill_child(pid: int) -> None:
    """Kill a child process if it still runs, and wait for its end.

    Where the program ignores SIGCHLD, the system has forgotten a child that has ended: its number
    may be that of another process by then, which gets no signal.
    """
    with suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def run_on_terminal(
    words: Sequence[str], *, given: bytes | None = None, stdout: int | None = None
) -> int:
    """Run a program that has the terminal, such as an editor, to its end; gives its exit code.

    ``given`` is its standard input. Ctrl-C is for the program: KeyboardInterrupt only if that ends
    it. What else ends this call ends the program by SIGTERM, so that it restores the terminal.
    """
    import subprocess  # lazy: few commands run a program

    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _pass)  # the program would inherit SIG_IGN
    try:
        stdin = None if given is None else subprocess.PIPE
        with _noted_signals() as noted:  # in its constructor they would leave the program alone
            process = subprocess.Popen(words, stdin=stdin, stdout=stdout)
        with process:
            try:
                for number in noted:
                    signal.raise_signal(number)
                process.communicate(given)
            except BaseException:  # a signal or the time limit: the program must not go on alone
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END_S)
                process.kill()
                raise
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if process.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    return process.returncode


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """The signals that end a call early are only noted."""
    noted: list[int] = []
    own = [n for n in (signal.SIGTERM, signal.SIGALRM) if callable(signal.getsignal(n))]
    before = [signal.signal(n, lambda number, frame: noted.append(number)) for n in own]
    try:
        yield noted
    finally:
        for number, handler in zip(own, before, strict=True):
            signal.signal(number, handler)


def _pass(number: int, frame: FrameType | None) -> None:
    """Ctrl-C is for the program that has the terminal."""
