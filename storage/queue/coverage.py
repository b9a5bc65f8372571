"""Whether the units of all queues cover a part of the log without gaps.

Every record has a unit in its queue (except prepared and rolled back ones, for which RocketMQ 4.9
writes none). So the units, sorted by log offset, tile the log: each begins where the one before
ends, up to the blank record at a file's end. This check reads 20 bytes a message, and not the log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from .written_end import QueueTail

_FEW: Final = 20_000
"""Units up to this number are sorted without NumPy, whose import takes longer than that."""


def gaps_between_units(
    tails: list[QueueTail], start: int, end: int, log_file_size: int
) -> Iterator[tuple[int, int]]:
    """Give the parts of [start, end) of the log that no unit covers, ascending.

    One log file at a time, so memory is bounded by the units of one file.
    """
    while start < end:
        file_end = min(end, start - start % log_file_size + log_file_size)
        blocks = [block for tail in tails if (block := _units_between(tail, start, file_end))]
        count = sum(map(len, blocks)) // CQ_STORE_UNIT_SIZE
        find = _gaps_of_few if count <= _FEW else _gaps_of_many
        yield from find(blocks, start, file_end)
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


def _gaps_of_few(blocks: list[bytes], start: int, end: int) -> Iterator[tuple[int, int]]:
    units = sorted(
        (offset, offset + size)
        for block in blocks
        for offset, size, _ in CQ_STORE_UNIT.iter_unpack(block)
        if start <= offset < end and offset + size <= end
    )
    covered = start
    for begin, stop in units:
        if begin > covered:
            yield covered, begin
        covered = max(covered, stop)
    if covered < end:
        yield covered, end


def _gaps_of_many(blocks: list[bytes], start: int, end: int) -> Iterator[tuple[int, int]]:
    import numpy as np

    layout = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
    units = np.frombuffer(b"".join(blocks), layout)
    begins = units["offset"].astype(np.int64)
    stops = begins + units["size"]
    usable = (begins >= start) & (begins < end) & (stops <= end)
    begins, stops = begins[usable], stops[usable]
    order = np.argsort(begins, kind="stable")
    begins = np.append(begins[order], end)
    covered = np.maximum.accumulate(np.append(np.int64(start), stops[order]))
    for number in np.flatnonzero(begins > covered):
        yield int(covered[number]), int(begins[number])
