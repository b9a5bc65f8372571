"""Whether standard output still has a reader; checked while there is nothing to write."""

import errno
import os
import select
import stat
import sys


def check_reader() -> None:
    """Raise BrokenPipeError, as a write would, if the pipe or socket has no reader."""
    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # no file, or a closed one
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
