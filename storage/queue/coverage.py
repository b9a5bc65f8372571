"""Whether the units of all queues cover a part of the log without gaps.

Every record has a unit in its queue (except prepared and rolled back ones, for which RocketMQ 4.9
writes none). So the units, sorted by log offset, tile the log: each begins where the one before
ends, up to the blank record at a file's end. This check reads 20 bytes a message, and not the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from storage import native
from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from .written_end import QueueTail


def gaps_between_units(
    tails: list[QueueTail], start: int, end: int, log_file_size: int
) -> Iterator[tuple[int, int]]:
    """Give the parts of [start, end) of the log that no unit covers, ascending.

    One log file at a time, so memory is bounded by the units of one file.
    """
    while start < end:
        file_end = min(end, start - start % log_file_size + log_file_size)
        blocks = [block for tail in tails if (block := _units_between(tail, start, file_end))]
        yield from uncovered(blocks, start, file_end)
        start = file_end


def _units_between(tail: QueueTail, start: int, end: int) -> bytes:
    """Units of one queue whose records begin in [start, end), found by bisection."""
    span = tail.span
    if span is not None:  # what the bisection would ask for first
        if span[1] < start:
            return b""
        kept = tail.all_units() if start <= span[0] and span[1] < end else None
        if kept is not None:
            return kept
    low = tail.first_unit(lambda offset, _: offset < start)
    high = tail.first_unit(lambda offset, _: offset < end)
    kept = tail.kept(low, high)
    if kept is not None or low >= high:
        return kept or b""
    pieces = []
    row = tail.row
    files = row.offsets()  # not all numbers in between: the last may be far after the others
    begin, stop = low * CQ_STORE_UNIT_SIZE, high * CQ_STORE_UNIT_SIZE
    for first in files[max(0, bisect_right(files, begin) - 1) : bisect_left(files, stop)]:
        file = row.look(first) if stop - begin <= FEW_BYTES else row.at(first)
        if file is not None:
            data = file.map[max(0, begin - first) : stop - first]
            # a file may have been cut inside a unit
            pieces.append(data[: len(data) - len(data) % CQ_STORE_UNIT_SIZE])
    return b"".join(pieces)


def _uncovered(blocks: list[bytes], start: int, end: int, /) -> list[tuple[int, int]]:
    found = []
    for begin, stop in merge(*(_places_in(block, start, end) for block in blocks)):
        if begin > start:
            found.append((start, begin))
        start = max(start, stop)
    if start < end:
        found.append((start, end))
    return found


def _places_in(block: bytes, start: int, end: int) -> Iterable[tuple[int, int]]:
    """Where the records of some units begin and end, in order."""
    places = (
        (offset, offset + size)
        for offset, size, _ in CQ_STORE_UNIT.iter_unpack(block)
        if start <= offset < end and 0 < size <= end - offset
    )
    begins = (offset for offset, _, _ in CQ_STORE_UNIT.iter_unpack(block))
    in_order = all(before <= after for before, after in pairwise(begins))
    return places if in_order else sorted(places)  # there may be ten millions: no list is made


uncovered: Final = native.form("uncovered", _uncovered)
"""The parts of [start, end) of the log that none of these units covers, ascending."""
