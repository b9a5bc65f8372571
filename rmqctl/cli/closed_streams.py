"""Standard streams that the parent process closed: ``rmqctl topic list >&-``.

Python sets such a stream to None. The next file to be opened, perhaps one of a store, would get its
descriptor, and code that writes to the stream would write to that file. So the null device takes
the descriptor first.
"""

import os
import sys
from typing import Final

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
"""By descriptor."""
_replaced: Final[set[str]] = set()


def open_closed_streams() -> None:
    """Replace closed streams by the null device: reads are empty, writes are discarded."""
    for descriptor, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        _replaced.add(name)
        null = os.open(os.devnull, os.O_RDWR)  # may get the free descriptor itself
        os.set_inheritable(null, null == descriptor)  # programs of --exec expect all three
        setattr(sys, name, os.fdopen(null, mode))


def stdout_was_closed() -> bool:
    """Whether what is printed is discarded, as there was no standard output at the start."""
    return "stdout" in _replaced
