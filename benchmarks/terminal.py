"""A program on a pseudo-terminal of 80x24: what it writes, and what it costs."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

_PATIENCE_S = 60
_TICKS = os.sysconf("SC_CLK_TCK")


class Terminal:
    """A running program, and the terminal that it writes to."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor

    def send(self, keys: bytes) -> None:
        """Type keys."""
        os.write(self._descriptor, keys)

    def read(self, seconds: float) -> bytes:
        """What has come; waits at most so long for the first byte."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return b""
        try:
            return os.read(self._descriptor, 1 << 16)
        except OSError as error:
            raise OSError("the program on the terminal has ended") from error

    def until(self, mark: bytes) -> float:
        """Seconds until these bytes come."""
        start = perf_counter()
        data = b""
        while mark not in data:
            if perf_counter() - start > _PATIENCE_S:
                raise OSError(f"the terminal was not shown {mark!r}")
            data = data[-len(mark) :] + self.read(1)
        return perf_counter() - start

    def written(self, seconds: float) -> int:
        """The bytes that come within so long."""
        end = perf_counter() + seconds
        count = 0
        while (left := end - perf_counter()) > 0:
            count += len(self.read(left))
        return count

    def cpu_s(self) -> float:
        """CPU time of the program and its threads so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def terminal(command: Sequence[str], size: tuple[int, int] = (24, 80)) -> Iterator[Terminal]:
    """Start a program on a new terminal; it is killed afterwards."""
    pid, descriptor = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        env = {**os.environ, "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)
        os.execve(command[0], list(command), env)
    try:
        yield Terminal(pid, descriptor)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(descriptor)
