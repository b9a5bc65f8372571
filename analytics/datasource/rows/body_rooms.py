"""Memory for the bodies of batches that is used again.

The bodies of a batch are megabytes. Memory that is given back to the system and asked for anew
comes page by page, each emptied by the kernel: for bodies of 1 KiB that took a third of the time of
reading them.
"""

from __future__ import annotations

import threading
from typing import Final

_MOST_ROOMS: Final = 2
"""A query's loop still has the last batch when it asks for the next one."""
_MOST_BYTES: Final = 16 << 20
"""Of a room that is kept: a worker has little memory, and larger batches have large bodies, which
cost less by the byte."""


class BodyRooms:
    """Rooms that tables of messages have left. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: list[bytearray] = []

    def take(self) -> bytearray | None:
        """Give a room that no batch uses any more; None if there is none."""
        with self._lock:
            for number, room in enumerate(self._left):
                if _is_unused(room):
                    return self._left.pop(number)
        return None

    def give_back(self, room: bytearray) -> None:
        """Keep the room of a table that is not filled any more; batches may still use it."""
        if len(room) <= _MOST_BYTES:
            with self._lock:
                self._left = [*self._left, room][-_MOST_ROOMS:]


BODY_ROOMS: Final = BodyRooms()
"""Those of this process: a worker of Spark reads one task after the other."""


def _is_unused(room: bytearray) -> bool:
    """Whether no buffer points into a room: then Python allows to change its length."""
    try:
        room.append(0)
    except BufferError:
        return False
    room.pop()
    return True
