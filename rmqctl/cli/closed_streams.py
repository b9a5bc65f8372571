"""Standard streams that whoever started the program has closed: ``rmqctl topic list >&-``.

Python has None in their place, and the next file that is opened, one of a store perhaps, would get
their number, to which others then write. So the null device takes their places before that.
"""

import os
import sys
from typing import Final

_STREAMS: Final = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))
"""By descriptor."""


def open_closed_streams() -> None:
    """Have all three streams: what is read from a closed one is empty, what is written is gone."""
    for descriptor, (name, mode) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)  # gets the number itself, if that is free
        os.set_inheritable(null, null == descriptor)  # programs of --exec expect all three
        setattr(sys, name, os.fdopen(null, mode))
