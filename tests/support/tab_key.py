"""What a real, interactive shell shows when Tab is pressed."""

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_SECONDS = 30
_ESCAPE = re.compile(
    rb"\x1b(\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>()][A-Z0-9]?)|[\x07\r]"
)


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._shown = b""

    def type(self, text: str) -> None:
        """Type, and forget what was shown before."""
        self._shown = b""
        os.write(self._master, text.encode())

    def wait_for(self, *texts: str) -> str:
        """What is shown once all texts are there, without colours; fails after half a minute."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            shown = self.shown
            if all(text in shown for text in texts):
                return shown
            if select.select([self._master], [], [], 0.2)[0]:
                self._shown += os.read(self._master, 1 << 16)
        raise AssertionError(f"{texts} are not all in what is shown:\n{self.shown}")

    @property
    def shown(self) -> str:
        """What came since the last typing."""
        return _ESCAPE.sub(b"", self._shown).decode("utf-8", "replace")


@contextmanager
def shell(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Iterator[Terminal]:
    """Run an interactive shell; killed at the end."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 120))
    with subprocess.Popen(
        command,
        cwd=folder,
        env={"TERM": "xterm", "LANG": "C.UTF-8", "HOME": str(folder), **env},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    ) as process:
        os.close(slave)
        try:
            yield Terminal(master)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            os.close(master)


def _take_terminal() -> None:
    """Make the terminal on standard input the session's own, for job control."""
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
