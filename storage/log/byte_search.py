"""Finding records by bytes that they hold, where no index leads to them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from .walk import LogWalk, StretchKind

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles


def find_in_log(
    log: ReadOnlyFiles,
    start: int,
    end: int,
    needle: bytes,
    progress: Callable[[int], None] | None = None,
) -> Iterator[int]:
    """Give the commit log offsets of records between two offsets that hold ``needle``, ascending.

    ``start`` is where a record or a file begins. Bodies are not checked, damage is passed, and the
    bytes may lie in any part of the record. ``progress`` is called with the number of bytes read.
    """
    walk = LogWalk(log, start, limit=end, check_crc=False, search_all=True)
    while (stretch := walk.next()) is not None:
        if stretch.kind is StretchKind.RECORDS:
            yield from _find(log, stretch.start, stretch.sizes, needle)
        if progress is not None:
            progress(stretch.end - stretch.start)


def _find(log: ReadOnlyFiles, start: int, sizes: Sequence[int], needle: bytes) -> Iterator[int]:
    position = start % log.file_size
    file = log.at(start - position)
    if file is None:
        return
    ends = list(accumulate(sizes, initial=position))
    at = file.map.find(needle, position, ends[-1])
    while at >= 0:
        record = bisect_right(ends, at) - 1
        if at + len(needle) <= ends[record + 1]:
            yield start + ends[record] - position
            at = ends[record + 1] - 1
        at = file.map.find(needle, at + 1, ends[-1])
