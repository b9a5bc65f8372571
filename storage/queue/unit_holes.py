"""Units that a power loss took out of the middle of a queue.

The device may have written some pages of a queue and not others, in any order, so a queue whose
store was not closed cleanly may have zeros before whole units. Only the units of records that the
checkpoint covers are surely there. A reader takes the rest of such a queue from the log, as
recovery does (ConsumeQueue.recover counts up to the first hole).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from .written_end import QueueTail

SECTOR: Final = 512
"""Bytes that a device writes whole or not at all; pages are multiples of it."""
_FEW: Final = 20_000
"""Units up to this number are read without NumPy, whose import takes longer than that."""


def cut_at_hole(tail: QueueTail, vouched: int) -> None:
    """Count only the units of a queue that its files surely hold one after the other.

    ``vouched`` is the log offset up to which the device surely has all units.
    """
    span = tail.span
    if span is not None and span[2] <= vouched:
        return  # the last unit is covered
    if span is not None and tail.all_units() is not None:
        surely, end = tail.next_offset - 1, tail.next_offset
    else:
        surely = _vouched_units(tail, vouched)
        end = _first_hole(tail, surely, vouched)
    # The sector after the last unit may be lost: then a part of that unit is lost with it.
    torn = end > surely and may_be_torn((end - 1) * CQ_STORE_UNIT_SIZE % tail.row.file_size)
    torn = torn and not _is_vouched(*tail.unit(end - 1)[:2], vouched)
    tail.cut_to(end - 1 if torn else end, end)


def may_be_torn(position: int) -> bool:
    """Whether the unit at a position of its file lies in two sectors of the device."""
    return position % SECTOR > SECTOR - CQ_STORE_UNIT_SIZE


def _vouched_units(tail: QueueTail, vouched: int) -> int:
    """Queue offset after the units that the checkpoint covers, by a bisection.

    A hole never counts as one, so the result may lie before the last of them, never after.
    """
    return tail.first_unit(lambda offset, size: _is_vouched(offset, size, vouched))


def _is_vouched(offset: int, size: int, vouched: int) -> bool:
    return offset >= 0 and size > 0 and offset + size <= vouched


def _first_hole(tail: QueueTail, start: int, vouched: int) -> int:
    """Queue offset of the first hole from ``start`` on, the queue's end if there is none.

    A gap before a unit that the checkpoint covers is no hole of a power loss. Files that are
    missing are passed.
    """
    if start >= tail.next_offset:
        return tail.next_offset
    kept = tail.kept(start, tail.next_offset)
    if kept is not None:
        found, _ = _first_hole_in(kept, vouched)
        return tail.next_offset if found is None else start + found
    row = tail.row
    size = row.file_size
    begin, stop = start * CQ_STORE_UNIT_SIZE, tail.next_offset * CQ_STORE_UNIT_SIZE
    files = row.offsets()
    hole: int | None = None
    for first in files[max(0, bisect_right(files, begin) - 1) : bisect_left(files, stop)]:
        file = row.look(first) if stop - begin <= FEW_BYTES else row.at(first)
        at, end = max(begin, first), min(stop, first + size)
        data = b"" if file is None else file.map[at - first : end - first]
        data = data.ljust(max(0, end - at), b"\0")  # a file may have been cut
        found, vouched_units = _first_hole_in(data, vouched)
        number = at // CQ_STORE_UNIT_SIZE
        if vouched_units:
            hole = None
        if hole is None and found is not None:
            hole = number + found
    return tail.next_offset if hole is None else hole


def _first_hole_in(data: bytes, vouched: int) -> tuple[int | None, bool]:
    """The first hole among units after which the checkpoint covers none, and whether it covers
    any."""
    if len(data) // CQ_STORE_UNIT_SIZE > _FEW:
        return _first_hole_in_many(data, vouched)
    hole: int | None = None
    any_vouched = False
    for number, (offset, size, _) in enumerate(CQ_STORE_UNIT.iter_unpack(data)):
        if offset < 0 or size <= 0:
            hole = number if hole is None else hole
        elif offset + size <= vouched:
            hole, any_vouched = None, True
    return hole, any_vouched


def _first_hole_in_many(data: bytes, vouched: int) -> tuple[int | None, bool]:
    import numpy as np

    units = np.frombuffer(data, np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")]))
    offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
    present = (offsets >= 0) & (sizes > 0)
    old = np.flatnonzero(present & (offsets + sizes <= vouched))
    any_vouched = bool(len(old))
    if any_vouched:
        present[: int(old[-1]) + 1] = True
    return (None if present.all() else int(present.argmin())), any_vouched
