"""When the files of a queue were last modified, for the search by time.

A full file is not written any more, so its time is asked for again only now and then: a question
would cost more the more files there are. The last file's time is asked for each time, and all of
them when a file has come or gone, which the folder's own time tells.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Final

from storage.format.unit import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from storage.files.read_files import FileRow

_LOOK_SECONDS: Final = 1.0
_TICK_NS: Final = 100_000_000


class FileTimes:
    """The files of one queue with their times. Safe for threads."""

    __slots__ = ("_clock", "_known", "_row")

    def __init__(self, row: FileRow, clock: Callable[[], float] = monotonic) -> None:
        self._row = row
        self._clock = clock  # seconds
        # the folder's time, until when that is enough, the files
        self._known: tuple[int, float, list[tuple[int, int]]] = (-1, 0.0, [])

    def __call__(self) -> list[tuple[int, int]]:
        """First queue offset and time (ms) of each file, ascending; what is said of a full one may
        be a second old."""
        row = self._row
        folder, until, known = self._known
        now = self._clock()
        if folder >= 0 and now < until and folder == _changed_ns(row.directory) and known:
            first = known[-1][0]
            modified = row.modified_ms(first * CQ_STORE_UNIT_SIZE)
            if modified is not None:
                return [*known[:-1], (first, modified)]
        folder = _changed_ns(row.directory)
        times = []
        for at in row.relist():
            modified = row.modified_ms(at)
            if modified is not None:
                times.append((at // CQ_STORE_UNIT_SIZE, modified))
        # A change in the same tick of the system's clock would not be told.
        if time_ns() - folder < _TICK_NS:
            folder = -1
        self._known = folder, now + _LOOK_SECONDS, times
        return times


def _changed_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - asked for each question by time
    except OSError:
        return -1
