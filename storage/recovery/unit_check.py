"""Comparing records with the units that the queues have for them, for millions of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.format.layout import HEAD_SIZES
from storage.model import PROPERTY_INNER_MULTI_QUEUE_OFFSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.files.read_files import FileRow

    from .queues import QueueRecovery

_LIGHT: Final = PROPERTY_INNER_MULTI_QUEUE_OFFSET.encode()
Runs = list[tuple[int, list[int]]]
"""Records one behind the other in one log file: offset of the first, and the size of each."""


class Heads(NamedTuple):
    """What units are compared with, for each record of a run."""

    offset: NDArray[Any]
    queue_id: NDArray[Any]
    queue_offset: NDArray[Any]
    light: NDArray[Any]
    """Whether it may name light queues, and so have several units."""


def read_heads(log: FileRow, start: int, sizes: list[int]) -> Heads:
    """Read the heads of a run, best while it is in the processor's cache."""
    import numpy as np

    size = np.array(sizes, np.int64)
    end = start + np.cumsum(size)
    offset = end - size
    begin = start - start % log.file_size
    file = log.at(begin)
    assert file is not None
    head = np.dtype(
        [("before", "V12"), ("queue_id", ">i4"), ("flag", ">i4"), ("queue_offset", ">i8")]
    )
    # One item at every byte: taking some of them copies whole heads, not bytes one by one.
    every = np.ndarray((file.length - HEAD_SIZES[0],), head, file.view, strides=(1,))
    heads = every[offset - begin]
    light = np.zeros(len(sizes), np.bool_)
    behind = int(end[-1]) - begin
    at = file.map.find(_LIGHT, start - begin, behind)
    while at >= 0:
        light[np.searchsorted(offset, begin + at, "right") - 1] = True
        at = file.map.find(_LIGHT, at + 1, behind)
    return Heads(
        offset, heads["queue_id"].astype(np.int32), heads["queue_offset"].astype(np.int64), light
    )


def records_to_dispatch(walked: Runs, heads: list[Heads], queues: QueueRecovery) -> Runs:
    """The records of ``walked`` whose unit is missing or says something else, as runs of one.

    A record is well when exactly one unit points at it, with its size, in the queue number and at
    the queue offset that the record names. Records with several units (light queues), of which some
    may be missing, and those that get none are among the result: they are looked at one by one.
    ``heads`` are those of the runs; the last ones may have more than is left of their run.
    """
    import numpy as np

    if not walked:
        return []
    units = queues.units_from(walked[0][0])
    units = units[np.argsort(units["offset"], kind="stable")]
    places = np.append(units["offset"], [-1, -1])  # nobody's, so that there is always a next one
    result: Runs = []
    for (_, sizes), found in zip(walked, heads, strict=False):
        size = np.array(sizes, np.int64)
        count = len(sizes)
        offset, queue_id, queue_offset, light = (column[:count] for column in found)
        first = np.searchsorted(places[:-2], offset)
        well = (places[first] == offset) & (places[first + 1] != offset) & ~light
        if len(units):
            unit = units[np.minimum(first, len(units) - 1)]
            well &= unit["size"] == size
            well &= unit["queue_id"] == queue_id
            well &= unit["queue_offset"] == queue_offset
        result += [(int(offset[i]), [int(size[i])]) for i in np.flatnonzero(~well)]
    return result
