"""The guard: a small process that restores the terminal if the console dies without doing so.

A signal that cannot be caught, an abort or a crash ends the console at once. The guard is forked
before the console imports anything large. It sleeps in a read of a pipe whose other end only the
console has. The console writes what state the terminal is in; the end of the pipe means that the
console is gone. Nothing restores the terminal if the guard is killed, too: ``reset`` does.

A shell may write its prompt before the guard is awake. As the parent of the console the guard would
always be first; but then a shell, ``timeout`` and supervisors would have the guard's pid. SIGKILL
and SIGSTOP would go to the wrong process, and a signal to the process group would come twice, which
ends the console at once. So the guard has the shell write its prompt again instead.
"""

import contextlib
import os
import signal
import termios
import time
from collections.abc import Iterator
from typing import Any, Final

from storage.platform.processes import name_process

from .terminal import modes_off

_TOO_LATE: Final = (
    b"\r\nrmqctl: the console was killed; Enter shows the prompt if none is below\r\n"
)
"""Written where a shell was quicker than the guard: its prompt was on the screen that is gone."""
_REDRAWS_S: Final = 0.1
"""By then a shell has noticed that the terminal has another size."""
_ON: Final = b"1"
_OFF: Final = b"0"
_BYE: Final = b"q"
_IGNORED: Final = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGWINCH, signal.SIGALRM),
)


class Guard:
    """The console's end of the pipe, and how the terminal was before."""

    def __init__(self, descriptor: int, before: list[Any]) -> None:
        self.descriptor = descriptor
        """The terminal."""
        self.before = before
        """Its attributes, as ``termios`` has them."""
        self._pipe = -1
        self._process = 0

    def start(self) -> None:
        """Fork the guard. Where that fails, the console goes without."""
        reads, writes = os.pipe()
        try:
            self._process = os.fork()
        except OSError:
            os.close(reads)
            os.close(writes)
            return
        if not self._process:
            try:
                _watch(reads, self.descriptor, self.before)
            finally:
                os._exit(0)
        os.close(reads)
        self._pipe = writes

    def entered(self) -> None:
        """The terminal is in the console's modes from now on."""
        self._say(_ON)

    def left(self) -> None:
        """The terminal is as it was before."""
        self._say(_OFF)

    def end(self) -> None:
        """End the guard, and wait for its end."""
        self._say(_BYE)
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._process, 0)

    def _say(self, word: bytes) -> None:
        if self._pipe >= 0:
            with contextlib.suppress(BrokenPipeError):  # the guard was killed
                os.write(self._pipe, word)


@contextlib.contextmanager
def guarded(descriptor: int = 1) -> Iterator[Guard]:
    """A guard over a terminal, from now to the end of the block."""
    guard = Guard(descriptor, termios.tcgetattr(descriptor))
    guard.start()
    try:
        yield guard
    finally:
        guard.end()


def _watch(pipe: int, terminal: int, before: list[Any]) -> None:
    """The guard's whole life, in the forked process."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    null = os.open(os.devnull, os.O_RDWR)
    terminal = os.dup(terminal)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _close_all_but(pipe, terminal)
    name_process("rmqctl-guard")
    modes, ours = False, before
    off = modes_off().encode()
    while word := os.read(pipe, 1):
        if word == _BYE:
            return
        modes = word == _ON
        if modes:
            with contextlib.suppress(termios.error):
                ours = termios.tcgetattr(terminal)
    if modes:
        _restore(terminal, off, before, ours)


def _close_all_but(*kept: int) -> None:
    """Close what was inherited: a file or a lock of the console must not outlive it."""
    first = 3
    for descriptor in sorted(kept):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, max(256, os.sysconf("SC_OPEN_MAX")))


def _restore(terminal: int, off: bytes, before: list[Any], ours: list[Any]) -> None:
    """The modes first: a shell that comes before them writes its prompt to the screen that goes.
    Then the attributes, unless the shell has set its own already."""
    with contextlib.suppress(OSError, termios.error):
        os.write(terminal, off)
        if termios.tcgetattr(terminal) == ours:
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        else:
            os.write(terminal, _TOO_LATE)
            _show_prompt(terminal)


def _show_prompt(terminal: int) -> None:
    """Make the shell write its prompt again, as it does when the terminal gets another size."""
    rows, columns = termios.tcgetwinsize(terminal)
    if columns > 1:
        termios.tcsetwinsize(terminal, (rows, columns - 1))
        time.sleep(_REDRAWS_S)
        if termios.tcgetwinsize(terminal) == (rows, columns - 1):  # else it was resized meanwhile
            termios.tcsetwinsize(terminal, (rows, columns))
