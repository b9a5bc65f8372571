"""The unread part of a queue for a group: the one definition of lag, age and bytes.

    deleted        still there                        not yet written
    ------------|-------------------|---------------|---------------
                min_offset          committed       max_offset

    lag     max - committed; messages deleted unread are part of it, and of ``lost`` too
    unread  the messages from max(committed, min) on: lag_bytes and the age are theirs

Nothing is guessed: without a committed offset, or with one beyond the end, everything is None.
Bytes are the record sizes in the queue's own units, so they are exact, compressed bodies included;
they cost one read of each unread unit (20 bytes), 100 million about 0.3 s.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import accumulate
from sys import byteorder
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from storage.readonly import StoreView

_INTS_PER_UNIT: Final = CQ_STORE_UNIT_SIZE // 4
_SIZE_AT: Final = 2
"""The index of the record's size among a unit's five ints."""
_WORTH_NUMPY: Final = 1_000_000
"""Units from which importing NumPy (0.1 s) is quicker than working without it."""
_MOST_THREADS: Final = 4
_FEW: Final = 4096
"""Units whose sizes are added up one by one."""
_AT_ONCE: Final = 64
"""Files of a queue that are mapped at once."""


class OffsetState(StrEnum):
    """State of a group's offset in a queue."""

    CAUGHT_UP = "CAUGHT_UP"
    """It has consumed everything that is stored."""
    BEHIND = "BEHIND"
    """There are messages that it has not consumed."""
    LOST = "LOST"
    """Messages that it has not consumed are deleted already."""
    AHEAD = "AHEAD"
    """Its progress lies past the end of the queue."""
    NONE = "NONE"
    """It has no progress in this queue, but in others of the topic."""


class QueuePosition(NamedTuple):
    """Position of a group in one queue. Offsets count messages."""

    min_offset: int
    committed_offset: int | None
    max_offset: int

    @property
    def state(self) -> OffsetState:
        """State of the offset."""
        committed = self.committed_offset
        if committed is None:
            return OffsetState.NONE
        if committed > self.max_offset:
            return OffsetState.AHEAD
        if committed < self.min_offset:
            return OffsetState.LOST
        at_the_end = committed == self.max_offset
        return OffsetState.CAUGHT_UP if at_the_end else OffsetState.BEHIND

    @property
    def lag(self) -> int | None:
        """Messages from the committed offset to the end, deleted ones included.

        None if that is unknown: no progress, or progress beyond the end.
        """
        committed = self.committed_offset
        if committed is None or committed > self.max_offset:
            return None
        return self.max_offset - committed

    @property
    def lost(self) -> int | None:
        """Messages that were deleted before the group read them; None if ``lag`` is."""
        committed = self.committed_offset
        if committed is None or committed > self.max_offset:
            return None
        return max(0, self.min_offset - committed)

    @property
    def ahead(self) -> int:
        """By how many the committed offset lies beyond the end; 0 if it does not."""
        return max(0, (self.committed_offset or 0) - self.max_offset)

    @property
    def first_unread(self) -> int | None:
        """Queue offset of the oldest message that is unread and still there; None without any."""
        committed = self.committed_offset
        if committed is None:
            return None
        first = max(committed, self.min_offset)
        return first if first < self.max_offset else None


def oldest_unread_timestamp(
    view: StoreView, topic: str, queue_id: int, what: QueuePosition
) -> int | None:
    """Store time (ms) of the oldest message that is unread and still there.

    None if there is none, or if its record cannot be read.
    """
    first = what.first_unread
    return None if first is None else view.store_timestamp(topic, queue_id, first)


def last_consumed_timestamp(
    view: StoreView, topic: str, queue_id: int, what: QueuePosition
) -> int | None:
    """Store time (ms) of the message before the committed offset (mqadmin's last time).

    None if that message is deleted, cannot be read, or was never there.
    """
    committed = what.committed_offset
    return None if committed is None else view.store_timestamp(topic, queue_id, committed - 1)


def unread_bytes(
    view: StoreView, topic: str, queue_id: int, offsets: Iterable[int], max_offset: int
) -> dict[int, int | None]:
    """Add up record sizes from each of some offsets to ``max_offset``, in one pass over the units.

    With the ``first_unread`` of each group that reads the queue these are their ``lag_bytes`` (0
    for a group without one that has a lag). All offsets lie within the bounds. None where a unit in
    between is missing or names no record.
    """
    found: dict[int, int | None] = {}
    total: int | None = 0
    end = max_offset
    descending = sorted(set(offsets), reverse=True)
    sizes = None
    if len(descending) > 1 and max_offset - descending[-1] < _WORTH_NUMPY:
        sizes = _sizes(view, topic, queue_id, descending[-1], max_offset)
        if sizes is not None and len(sizes) <= _FEW and _are_valid(sizes):
            sums = [*accumulate(reversed(sizes), initial=0)]
            return {offset: sums[max_offset - offset] for offset in descending}
    for offset in descending:
        if total is not None:
            if sizes is None:
                more = _sum(view, topic, queue_id, offset, end)
            else:
                more = _added_up(sizes[offset - descending[-1] : end - descending[-1]])
            total = None if more is None else total + more
        found[offset] = total
        end = offset
    return found


def _sum(view: StoreView, topic: str, queue_id: int, offset: int, end: int) -> int | None:
    add_up = _in_threads if end - offset >= _WORTH_NUMPY else _one_by_one
    total = 0
    blocks: list[memoryview] = []
    while offset < end:
        units = view.unit_view(topic, queue_id, offset, end, (offset, end))
        if units is None:
            return None
        blocks.append(units)
        offset += len(units) // CQ_STORE_UNIT_SIZE
        if len(blocks) == _AT_ONCE or offset >= end:
            size = add_up(blocks)
            if size is None:
                return None
            total += size
            blocks = []
    return total


def _one_by_one(blocks: Sequence[memoryview]) -> int | None:
    total = 0
    for units in blocks:
        size = _added_up(_sizes_in(units))
        if size is None:
            return None
        total += size
    return total


def _sizes(view: StoreView, topic: str, queue_id: int, offset: int, end: int) -> array[int] | None:
    """The sizes in some units; None if some of them are missing."""
    sizes = array("i")
    while offset < end:
        units = view.unit_view(topic, queue_id, offset, end, (offset, end))
        if units is None:
            return None
        sizes += _sizes_in(units)
        offset += len(units) // CQ_STORE_UNIT_SIZE
    return sizes


def _sizes_in(units: memoryview) -> array[int]:
    sizes = array("i", units.cast("i")[_SIZE_AT::_INTS_PER_UNIT].tobytes())
    if byteorder == "little":
        sizes.byteswap()
    return sizes


def _added_up(sizes: array[int]) -> int | None:
    """The sum of sizes; None if one of them is invalid."""
    return sum(sizes) if _are_valid(sizes) else None


def _are_valid(sizes: array[int]) -> bool:
    return not sizes or (min(sizes) > 0 and max(sizes) != PRE_BLANK_SIZE)


def _in_threads(blocks: Sequence[memoryview]) -> int | None:
    """Add up with NumPy, which releases the interpreter's lock meanwhile."""
    count = min(_MOST_THREADS, os.cpu_count() or 1, len(blocks))
    found: list[int | None] = [None] * count  # a thread that fails leaves it unknown

    def work(number: int) -> None:
        found[number] = _with_numpy(blocks[number::count])

    threads = [Thread(target=work, args=(number,)) for number in range(1, count)]
    for thread in threads:
        thread.start()
    work(0)
    for thread in threads:
        thread.join()
    sums = [size for size in found if size is not None]
    return sum(sums) if len(sums) == count else None


def _with_numpy(blocks: Sequence[memoryview]) -> int | None:
    import numpy as np

    total = 0
    for units in blocks:
        sizes = np.frombuffer(units, dtype=">i4")[_SIZE_AT::_INTS_PER_UNIT].astype(np.int32)
        if sizes.min() <= 0 or sizes.max() == PRE_BLANK_SIZE:
            return None
        total += int(sizes.sum(dtype=np.int64))
    return total
