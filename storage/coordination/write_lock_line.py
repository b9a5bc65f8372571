"""The line of processes that wait for the write lock.

A process that waits sleeps on a word of the shared state, and the one that releases the lock wakes
the process that has slept longest. The kernel keeps the line, so no dead or stopped process stands
in it. The kernel also decides who has the lock (byte 1 of the lock file): a process that is woken
tries to take it, and goes back into the line if another one was quicker.

There are three words. Processes that use the lock once (a put now and then, an opening, a change of
settings) go before those that put one message or batch after the other, and interrupt the turn of
the holder. Their requests change LOCK_WANTED_ONCE, too. Processes whose turns were interrupted go
after them, and before those that wait for a turn: in one line with the first they would interrupt
each other and use up the time of the one that waits to use the lock once.

A process may be killed between releasing the lock and waking the next one, and one that was woken
may be killed or stopped before it takes the lock. So each sleep is bounded, and a process that has
woken another one comes back for the lock by itself.

Where nothing is compiled a process does not sleep on words: it tries again and again, and is not
woken.
"""

from __future__ import annotations

import os
import sys
import time
from mmap import mmap
from pathlib import Path
from typing import Any, Final

from storage import native
from storage.files.fs import WORD
from storage.format.names import OURS
from storage.platform import futex

from .shared_state import SHARED_STATE_MAGIC, SHARED_STATE_NAME, SLOTS, Word
from .wakeup import has_futex_wakers

wake_one: Final = native.form("wake_one", futex.wake_one)
sleep_on_word: Final = native.form("sleep_on_word", native.nothing)
"""Sleep until the lower half of the word at an offset differs from a value, for a number of
microseconds at most; a signal ends it, too. Where ``has_futex_wakers`` says no, nothing is done."""
_LOWER_HALF: Final = 0xFFFFFFFF


class WaitingLine:
    """The line of one store, seen through a map of its shared state."""

    def __init__(self, mapped: Any, words: Any) -> None:
        self._map = mapped
        self._words = words
        self.sleeps = type(mapped) is mmap and bool(has_futex_wakers())
        """Whether :meth:`sleep` sleeps until the process is woken."""

    def request(self, *, once: bool) -> int:
        """Ask the holder to release the lock; gives the request's number."""
        number = time.monotonic_ns()
        if once:
            self._words[Word.LOCK_WANTED_ONCE] = number
        self._words[Word.LOCK_WANTED] = number
        return number

    def seen(self, word: int) -> int:
        """The value of the word to sleep on; to be read before the lock is tried."""
        return int(self._words[word]) & _LOWER_HALF

    def sleep(self, word: int, seen: int, seconds: float) -> None:
        """Sleep until woken, which may have been since ``seen`` was read, or until the time is
        over."""
        sleep_on_word(self._map, WORD * word, seen, max(0, round(seconds * 1e6)))

    def wake_next(self, *, is_wanted_once: bool) -> bool:
        """Wake the process that goes next, after the lock was released; whether one may come.

        ``is_wanted_once``: a process that has asked to use it once may be one that is not woken;
        those that wait for turns do not go before it.
        """
        mapped = self._map
        if wake_one(mapped, WORD * Word.LINE_ONCE) or is_wanted_once:
            return True
        return bool(
            wake_one(mapped, WORD * Word.LINE_INTERRUPTED)
            or wake_one(mapped, WORD * Word.LINE_TURNS)
        )


def line_of_unmapped(root: Path) -> WaitingLine | None:
    """The line of a store whose shared state this process has not mapped; None if it has none of
    this version."""
    try:
        fd = os.open(root / OURS / SHARED_STATE_NAME, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.pread(fd, 8, 0) != SHARED_STATE_MAGIC.to_bytes(8, sys.byteorder):
            return None
        mapped = mmap(fd, SLOTS)
    except (OSError, ValueError):  # it is shorter
        return None
    finally:
        os.close(fd)
    return WaitingLine(mapped, memoryview(mapped).cast("q"))
