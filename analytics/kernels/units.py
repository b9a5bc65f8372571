"""Units of a queue as columns: offset and length of each record, and the hash of its tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from storage.format.cq_unit import PRE_BLANK_SIZE
from storage.read.gaps import after_gap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.readonly import StoreView

_UNIT: Final = np.dtype([("place", ">i8"), ("size", ">i4"), ("tag", ">i8")])


class Units(NamedTuple):
    """Units of consecutive queue offsets, from ``first`` on.

    ``places`` are commit log offsets, ascending but for damaged ones; ``sizes`` bytes of the
    records; ``tags`` the queue's hashes of tags. A unit that is missing or names no record, or
    whose message has been deleted, has size 0, the offset of the one before it (-1 without any)
    and tag 0.
    """

    first: int
    places: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tags: NDArray[np.int64]

    def __len__(self) -> int:
        """How many units there are (not columns)."""
        return len(self.places)


def read_units(view: StoreView, topic: str, queue_id: int, first: int, end: int) -> Units:
    """Read the units [first, end), which lay within the queue's bounds; 24 bytes of memory each.

    Missing units are marked, and those of messages that were deleted since: the answer has
    ``end - first`` units.
    """
    count = end - first
    places = np.full(count, -1, np.int64)
    sizes = np.zeros(count, np.int64)
    tags = np.zeros(count, np.int64)
    at = first
    while at < end:
        found = view.unit_view(topic, queue_id, at, end)
        if found is None:
            at = after_gap(view, topic, queue_id, at, end)
            continue
        table = np.frombuffer(found, _UNIT)
        here = slice(at - first, at - first + len(table))
        places[here], sizes[here], tags[here] = table["place"], table["size"], table["tag"]
        at += len(table)
    bad = (sizes <= 0) | (sizes == PRE_BLANK_SIZE)
    if bad.any():
        sizes[bad], tags[bad] = 0, 0
        before = np.maximum.accumulate(np.where(bad, -1, np.arange(count)))[bad]
        places[bad] = np.where(before < 0, -1, places[before])
    return Units(first, places, sizes, tags)
