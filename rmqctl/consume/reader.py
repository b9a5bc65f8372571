"""Who reads standard output: looked after while there is nothing to write that would tell."""

import errno
import os
import select
import stat
import sys


def check_reader() -> None:
    """Raise BrokenPipeError, as a write would, if nobody reads our pipe or socket any more."""
    try:
        descriptor = sys.stdout.fileno()
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):  # no file, or a closed one
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are told of unasked
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
