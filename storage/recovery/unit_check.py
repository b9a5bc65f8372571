"""Which records of the log have no unit, found for millions of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from storage.format.layout import HEAD_SIZES
from storage.model import PROPERTY_INNER_MULTI_QUEUE_OFFSET

if TYPE_CHECKING:
    import numpy as np
    from numpy import ndarray
    from numpy.typing import NDArray

    from storage.files.mapped_file_queue import MappedFileQueue

    from .queues import QueueRecovery

_LIGHT: Final = PROPERTY_INNER_MULTI_QUEUE_OFFSET.encode()
Runs = list[tuple[int, list[int]]]


def records_to_dispatch(walked: Runs, queues: QueueRecovery, log: MappedFileQueue) -> Runs:
    """The records of ``walked`` whose unit is missing or says something else, as runs of one.

    A record is well when exactly one unit points at it, with its size, in the queue number and at
    the queue offset that the record names. Records with several units (light queues), of which some
    may be missing, and those that get none are among the result: they are looked at one by one.
    """
    import numpy as np

    if not walked:
        return []
    units = queues.units_from(walked[0][0])
    order = np.argsort(units["offset"], kind="stable")
    units = units[order]
    result: Runs = []
    for start, sizes in walked:
        size = np.array(sizes, np.int64)
        offset = start + np.concatenate(([0], np.cumsum(size[:-1])))
        queue_id, queue_offset = _heads(log, start, offset)
        first = np.searchsorted(units["offset"], offset, "left")
        behind = np.searchsorted(units["offset"], offset, "right")
        at = np.minimum(first, max(0, len(units) - 1))
        well = behind - first == 1
        if len(units):
            found = units[at]
            well &= found["size"] == size
            well &= found["queue_id"] == queue_id
            well &= found["queue_offset"] == queue_offset
        for place in _places_of(log, start, int(offset[-1] + size[-1]), _LIGHT):
            well[np.searchsorted(offset, place, "right") - 1] = False
        result += [(int(offset[i]), [int(size[i])]) for i in np.flatnonzero(~well)]
    return result


def _places_of(log: MappedFileQueue, start: int, end: int, what: bytes) -> Iterator[int]:
    """Log offsets at which some bytes lie, in one file; 0.1 s a GiB."""
    file = log.find(start)
    assert file is not None
    begin = file.file_from_offset
    at = file.map.find(what, start - begin, end - begin)
    while at >= 0:
        yield begin + at
        at = file.map.find(what, at + 1, end - begin)


def _heads(log: MappedFileQueue, start: int, offset: NDArray[np.int64]) -> tuple[ndarray, ndarray]:
    """Queue id and queue offset of records that lie in one file."""
    import numpy as np

    file = log.find(start)
    assert file is not None
    head = np.dtype(
        [("before", "V12"), ("queue_id", ">i4"), ("flag", ">i4"), ("queue_offset", ">i8")]
    )
    # One item at every byte: taking some of them copies whole heads, not bytes one by one.
    count = file.size - HEAD_SIZES[0]
    every = np.ndarray((count,), head, file.map, strides=(1,))
    heads = every[offset - file.file_from_offset]
    del every  # a view would keep the map from being closed
    return heads["queue_id"], heads["queue_offset"]
