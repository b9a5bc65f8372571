"""When the files of a queue were last modified, for the search by time.

A full file is not written any more, so its time is read again only now and then: otherwise a search
would cost more the more files there are. The times of all files are read when a file was added or
deleted. The folder's own time shows that. Where rmqctl's writers have the store it is not read:
they report deletions, and a new file begins after the known ones. The last file's time decides
nothing: a time that no other file covers is searched for in the last one.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

_LOOK_SECONDS: Final = 1.0
_TICK_NS: Final = 100_000_000


class FileTimes:
    """The files of one queue with their times. Safe for threads."""

    __slots__ = ("_clock", "_known", "_row")

    def __init__(self, row: ReadOnlyFiles, clock: Callable[[], float] = monotonic) -> None:
        self._row = row
        self._clock = clock  # seconds
        # The row's files as listed, the folder's time, until when that is valid; of each file its
        # first queue offset, and the latest time of it and those before it, which rises, so that
        # it can be searched by halves.
        self._known: tuple[list[int], int, float, list[int], list[int]] = ([], -1, 0.0, [], [])

    def segment(
        self, timestamp: int, end: int, *, deletions_reported: bool = False
    ) -> tuple[int, int] | None:
        """The units in which RocketMQ searches for a time (ms), of those before ``end``.

        They lie in the first file that was modified then or later, else the last one: its first
        queue offset, and where it ends. None if no file begins before ``end``. Times of
        full files may be a second old. ``deletions_reported``: the bounds' generation reports
        deleted files.
        """
        starts, latest = self._read_times(end if deletions_reported else None)
        count = bisect_left(starts, end)
        if not count:
            return None
        number = bisect_left(latest, timestamp, 0, count - 1)
        return starts[number], end if number + 1 == count else starts[number + 1]

    def now(self) -> list[tuple[int, int]]:
        """First queue offset and time (ms) of each file as it is now, ascending."""
        return self._times(self._row.relist())

    def _times(self, listed: list[int]) -> list[tuple[int, int]]:
        times = []
        for at in listed:
            modified = self._row.modified_ms(at)
            if modified is not None:
                times.append((at // CQ_STORE_UNIT_SIZE, modified))
        return times

    def _read_times(self, told_end: int | None) -> tuple[list[int], list[int]]:
        row = self._row
        listed, folder, until, starts, latest = self._known
        now = self._clock()
        is_young = bool(starts) and now < until
        if is_young and told_end is not None and listed is row.offsets():
            known_end = starts[-1] + row.file_size // CQ_STORE_UNIT_SIZE
            if told_end <= known_end:
                return starts, latest
        changed = _changed_ns(row.directory)
        if is_young and 0 <= folder == changed:
            return starts, latest
        listed = row.relist()
        times = self._times(listed)
        starts = [first for first, _ in times]
        latest = list(accumulate((modified for _, modified in times), max))
        # A change in the same tick of the system's clock would not be noticed.
        folder = -1 if time_ns() - changed < _TICK_NS else changed
        self._known = listed, folder, now + _LOOK_SECONDS, starts, latest
        return starts, latest


def _changed_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - called for each search by time
    except OSError:
        return -1
