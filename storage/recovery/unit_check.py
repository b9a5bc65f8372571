"""Comparing records with the units that the queues have for them, for millions of them at once."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.format.layout import HEAD_SIZES
from storage.format.message import PROPERTY_INNER_MULTI_QUEUE_OFFSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.files.read_files import ReadMap, ReadOnlyFiles

    from .queues import QueueRecovery

_LIGHT: Final = PROPERTY_INNER_MULTI_QUEUE_OFFSET.encode()
_IPV6: Final = 0x30
_MOST_AFTER_BODY: Final = 512
"""Bytes after the body that are worth copying and searching without the body."""
Runs = list[tuple[int, MutableSequence[int]]]
"""Records one after the other in one log file: offset of the first, and the size of each."""


class Heads(NamedTuple):
    """Fields that units are compared with, for each record of a run."""

    offset: NDArray[Any]
    size: NDArray[Any]
    queue_id: NDArray[Any]
    queue_offset: NDArray[Any]
    light: NDArray[Any]
    """Whether it may name LMQs, and so have several units."""


def read_heads(log: ReadOnlyFiles, start: int, sizes: Sequence[int]) -> Heads:
    """Read the heads of a run, best while it is in the processor's cache."""
    import numpy as np

    size = np.array(sizes, np.int64)
    end = start + np.cumsum(size)
    offset = end - size
    begin = start - start % log.file_size
    file = log.at(begin)
    assert file is not None
    head = np.dtype(
        [
            ("before", "V12"),
            ("queue_id", ">i4"),
            ("flag", ">i4"),
            ("queue_offset", ">i8"),
            ("physical_offset", ">i8"),
            ("sys_flag", ">i4"),
        ]
    )
    position = offset - begin
    # One item at every byte: taking some of them copies whole heads, not bytes one by one.
    every = np.ndarray((file.length - HEAD_SIZES[0],), head, file.view, strides=(1,))
    heads = every[position]
    return Heads(
        offset,
        size.astype(np.int32),
        heads["queue_id"].astype(np.int32),
        heads["queue_offset"].astype(np.int64),
        _name_lmq_queues(file, position, size, ipv6=bool((heads["sys_flag"] & _IPV6).any())),
    )


def _name_lmq_queues(
    file: ReadMap, position: NDArray[Any], size: NDArray[Any], *, ipv6: bool
) -> NDArray[Any]:
    """Which records of a run may name LMQs; few others do."""
    import numpy as np

    light = np.zeros(len(position), np.bool_)
    body_lengths = np.ndarray((file.length - 3,), ">i4", file.view, strides=(1,))
    after_body = size - HEAD_SIZES[0] - body_lengths[position + HEAD_SIZES[0] - 4]
    widest, least = int(after_body.max()), int(after_body.min())
    if ipv6 or least < 0 or widest > min(int(size.min()), _MOST_AFTER_BODY):
        # Records of several kinds, or with long properties: search all of them.
        first, end = int(position[0]), int(position[-1] + size[-1])
        at = file.map.find(_LIGHT, first, end)
        while at >= 0:
            light[np.searchsorted(position, at, "right") - 1] = True
            at = file.map.find(_LIGHT, at + 1, end)
        return light
    tails = np.ndarray((file.length - widest + 1,), f"V{widest}", file.view, strides=(1,))
    text = tails[position + size - widest].tobytes()
    at = text.find(_LIGHT)
    while at >= 0:
        light[at // widest] = True
        at = text.find(_LIGHT, at + 1)
    return light


def records_to_dispatch(walked: Runs, heads: list[Heads], queues: QueueRecovery) -> Runs:
    """The records of ``walked`` whose unit is missing or differs, as runs of one.

    A record is well when exactly one unit points at it, with its size, in the queue number and at
    the queue offset that the record names. Records with several units (LMQs), of which some may be
    missing, and those without a unit are among the result: they are checked one by one. ``heads``
    are those of the runs; the last ones may have more than is left of their run.
    """
    if not walked:
        return []
    import numpy as np

    units = queues.units_from(walked[0][0])
    units = units[np.argsort(units["offset"], kind="stable")]
    record_offsets = np.append(units["offset"], [-1, -1])  # of no record: each has a next one
    result: Runs = []
    for (_, sizes), found in zip(walked, heads, strict=False):
        count = len(sizes)
        offset, size, queue_id, queue_offset, light = (column[:count] for column in found)
        first = np.searchsorted(record_offsets[:-2], offset)
        well = (record_offsets[first] == offset) & (record_offsets[first + 1] != offset) & ~light
        if len(units):
            unit = units[np.minimum(first, len(units) - 1)]
            well &= unit["size"] == size
            well &= unit["queue_id"] == queue_id
            well &= unit["queue_offset"] == queue_offset
        result += [(int(offset[i]), [int(size[i])]) for i in np.flatnonzero(~well)]
    return result
