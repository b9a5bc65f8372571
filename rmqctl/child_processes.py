"""Child processes that were forked, not started by ``subprocess``."""

import os
import signal
from contextlib import suppress


def kill_child(pid: int) -> None:
    """Kill a child process if it still runs, and wait for its end.

    Where the program ignores SIGCHLD, the system has forgotten a child that has ended: its number
    may be that of another process by then, which gets no signal.
    """
    with suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
