"""Planning for the log's end, and for what lies past it.

Units past the end prove that there were messages, if they follow the end one by one: records of
zeros keep their places, so that no later message gets the offset of a lost one, which consumers
would skip as consumed. Other units are left over, and their queues are rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from storage.files.fs import FileSystem
from storage.format.layout import BLANK_SIZE
from storage.format.names import COMMITLOG, file_name

from .log_bytes import Region, RegionPlanner
from .log_files import contents
from .steps import Action, Step
from .unit_lookup import UnitAt, units_into

if TYPE_CHECKING:
    from storage.files.read_files import StoreFiles

_TAIL: Final = "LOG_TAIL_LOST"
_MISSING: Final = "LOG_FILE_MISSING"
_TORN: Final = "LOG_TORN_TAIL"
_PAST_END: Final = "LOG_BEHIND_END"
_LEFT_OVER: Final = frozenset((_TAIL, _TORN, _PAST_END, "LOG_FILE_LENGTH"))
_STEP: Final = 1 << 20
_FOREVER: Final = 1 << 62


class TailPlanner:
    """Plans the end of one log. ``found`` are codes by log offset.

    Up to ``finished_to`` the next writer takes in what lies past the end. ``kept`` are the files of
    the log after all other steps, ``right`` those of them that stay as they are. ``closed``: the
    store was closed cleanly. ``make`` gives the step that makes a file from units, which may be the
    last one, ``away`` the one that moves a file away.
    """

    def __init__(
        self,
        files: StoreFiles,
        found: dict[int, list[str]],
        log_end: int,
        finished_to: int,
        kept: set[int],
        right: set[int],
        *,
        closed: bool,
        make: Callable[[int, list[UnitAt], bool], Step],
        away: Callable[[int, str, str], Step],
    ) -> None:
        self._files = files
        self._log = files.log
        self._size = files.log.file_size
        self._found = found
        self._log_end = log_end
        self._finished_to = finished_to
        self._kept = kept
        self._right = right
        self._closed = closed
        self._make = make
        self._away = away
        self.queues: set[tuple[str, int]] = set()
        """Queues with units of messages that are gone for good."""

    def steps(self) -> Iterator[Step]:
        """Give the steps, in the order of execution."""
        beyond = units_into(self._files, [(self._log_end, _FOREVER)])
        chain = self._chain(beyond)
        end = self._log_end
        placed: list[UnitAt] = []
        if chain:
            first = chain[0].offset - chain[0].offset % self._size
            if first in self._right:
                yield from self._records(first, chain)
                end = chain[-1].end
                placed += chain
            elif first in self._kept:  # the right file is moved there
                return
        made = self._missing_files(beyond)
        if made:
            yield from self._blank(end)
        for number, (first, units) in enumerate(made, 1):
            yield self._make(first, units, number == len(made))
            placed += units
        known = set(placed)
        self.queues |= {(unit.topic, unit.queue_id) for unit in beyond if unit not in known}
        if not made:
            yield from self._left_over(end)

    def _blank(self, end: int) -> Iterator[Step]:
        """Close the last existing file, because files are made after it."""
        first = end - end % self._size
        file = self._log.at(first)
        left = first + self._size - end
        if first in self._right and file is not None and BLANK_SIZE <= left < self._size:
            region = Region(end, first + self._size, _TORN, {}, 0, 0, ends_file=True)
            yield from RegionPlanner(first, self._size, file.view).steps(region, [])

    def _chain(self, beyond: list[UnitAt]) -> list[UnitAt]:
        """Units that follow the end one by one, within one file."""
        codes = {code for found in self._found.values() for code in found}
        if not beyond or not (self._closed or codes & {_TAIL, _MISSING}):
            return []
        at = self._log_end
        boundary = at - at % self._size + self._size
        if at % self._size and beyond[0].offset == boundary:
            at, boundary = boundary, boundary + self._size  # the blank record is there
        chain: list[UnitAt] = []
        for unit in beyond:
            if unit.end > boundary:
                break
            if chain and unit[:2] == chain[-1][:2]:
                chain.append(unit)  # of a light queue
            elif unit.offset == at:
                chain.append(unit)
                at = unit.end
        return chain

    def _missing_files(self, beyond: list[UnitAt]) -> list[tuple[int, list[UnitAt]]]:
        """The missing files at the log's end, and the units that point into them.

        They follow each other: those after the last existing file, or if none exists, those from
        which the ends of all queues can be kept. One unit alone may point anywhere.
        """
        if not any(p >= self._log_end and _MISSING in c for p, c in self._found.items()):
            return []
        size = self._size
        within: dict[int, list[UnitAt]] = {}
        for unit in beyond:
            first = unit.offset - unit.offset % size
            if unit.end <= first + size and first not in self._kept:
                within.setdefault(first, []).append(unit)
        if self._kept:
            wanted = range(max(self._kept) + size, max(within, default=0) + size, size)
            return list(takewhile(lambda made: made[1], ((n, within.get(n, [])) for n in wanted)))
        sure = [first for first, units in within.items() if len(units) > 1] or list(within)
        last = max(sure, default=-1)
        run = list(takewhile(within.__contains__, range(last, -1, -size)))
        ends = [n for n in run if any(unit.is_last for unit in within[n])]
        if not ends:
            return []
        made = [(n, within[n]) for n in sorted(run) if n >= ends[-1]]
        first = made[0][0]
        older = [unit for n, units in within.items() if n < first for unit in units]
        return [(first, sorted(older) + made[0][1]), *made[1:]]

    def _records(self, first: int, chain: list[UnitAt]) -> Iterator[Step]:
        file = self._log.at(first)
        if file is None:
            return
        time = self._time_before(first)
        region = Region(chain[0].offset, chain[-1].end, _TAIL, {}, time, 0, ends_file=False)
        planner = RegionPlanner(first, self._size, file.view)
        yield from planner.steps(region, chain)
        self.queues |= planner.dropped

    def _time_before(self, first: int) -> int:
        """Store time of the newest record before the log's end, 0 if there is none."""
        for file, end in ((first, self._log_end), (first - self._size, first)):
            if file < end and self._log.at(file) is not None:
                time = contents(self._log, file, end, {}, set(), last=True).last_time
                if time:
                    return time
        return 0

    def _left_over(self, end: int) -> Iterator[Step]:
        first = end - end % self._size
        file = self._log.at(first)
        if file is not None and first in self._right and self._codes(first) & _LEFT_OVER:
            position = end - first
            if first <= self._finished_to:  # a writer takes this in: it is not left over
                position = max(position, self._finished_to - first)
            used = min(self._size, used_to(self._log.path(first), position))
            if used > position:
                yield Step(
                    Action.CLEAR,
                    f"{COMMITLOG}/{file_name(first)}",
                    position,
                    used - position,
                    _TORN,
                    f"{used - position} bytes after the last whole record become zeros",
                    "what was being written here was not acknowledged",
                    old_crc=crc32(file.view[position:used]),
                )
        for later in sorted(self._log.offsets(), reverse=True):  # a death leaves no gap
            if later not in self._right or later < end or later == first:
                continue
            if _PAST_END in self._codes(later):
                yield self._away(later, _PAST_END, "it lies past the log's end")

    def _codes(self, first: int) -> set[str]:
        return {
            code
            for place, codes in self._found.items()
            if first <= place < first + self._size
            for code in codes
        }


def used_to(path: str, start: int) -> int:
    """Position after the last byte that is not zero, ``start`` if there is none after it."""
    fs = FileSystem()
    fd = fs.open(Path(path), writable=False)
    try:
        for first, end in reversed(fs.data_ranges(fd, start, fs.size(fd))):
            while end > first:
                begin = max(first, end - _STEP)
                block = fs.read(fd, end - begin, begin).rstrip(b"\0")
                if block:
                    return begin + len(block)
                end = begin
    finally:
        fs.close(fd)
    return start
