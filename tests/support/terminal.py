"""A terminal of a given size for a child process: a pseudo-terminal and what came out of it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]


def on_a_terminal(
    arguments: Sequence[object],
    *,
    columns: int,
    lines: int = 50,
    env: Mapping[str, str] | None = None,
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> str:
    """Run Python with arguments on a terminal, to its end; gives what it shows.

    All three streams are the terminal, but stdout and stderr where they are to go elsewhere. Line
    ends are as the program wrote them.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    settings = termios.tcgetattr(slave)
    settings[1] &= ~termios.OPOST  # as the program wrote it, no \r before each \n
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    environment = {"TERM": "xterm-256color", **os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    for name in ("COLUMNS", "LINES", "PYTHONUNBUFFERED"):
        environment.pop(name, None)
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdin=slave,
        stdout=stdout or slave,
        stderr=stderr or slave,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(slave)
        shown = bytearray()
        while True:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:  # the last one has closed it
                break
            if not piece:
                break
            shown += piece
        process.wait(60)
    os.close(master)
    return shown.decode("utf-8", "surrogateescape")
