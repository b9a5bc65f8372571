"""Comparing records with the units that the queues have for them, for millions of them at once."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

    from storage.format.head_matrix import HEAD_TYPES

    size = np.array(sizes, np.int64)
    end = start + np.cumsum(size)
    offset = end - size
    begin = start - start % log.file_size
    file = log.at(begin)
    assert file is not None
    position = offset - begin
    # One item at every byte: taking some of them copies whole heads, not field by field.
    head = HEAD_TYPES[0]
    every = np.ndarray((file.length - head.itemsize,), f"V{head.itemsize}", file.view, strides=(1,))
    heads = every[position].view(head)
    after_body = size - head.itemsize - heads["body_length"]
    ipv6 = bool((heads["sys_flag"] & _IPV6).any())
    return Heads(
        offset,
        size.astype(np.int32),
        heads["queue_id"].astype(np.int32),
        heads["queue_offset"].astype(np.int64),
        _name_lmq_queues(file, position, size, after_body, ipv6=ipv6),
    )


def _name_lmq_queues(
    file: ReadMap,
    position: NDArray[Any],
    size: NDArray[Any],
    after_body: NDArray[Any],
    *,
    ipv6: bool,
) -> NDArray[Any]:
    """Which records of a run may name LMQs; few others do."""
    import numpy as np

    light = np.zeros(len(position), np.bool_)
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
    row, whole = units.dtype, f"V{units.itemsize}"  # copied as a whole, not field by field
    units = units.view(whole)[np.argsort(units["offset"], kind="stable")]
    record_offsets = np.append(units.view(row)["offset"], [-1, -1])  # no record: each has a next
    result: Runs = []
    for (_, sizes), found in zip(walked, heads, strict=False):
        count = len(sizes)
        offset, size, queue_id, queue_offset, light = (column[:count] for column in found)
        first = np.searchsorted(record_offsets[:-2], offset)
        well = (record_offsets[first] == offset) & (record_offsets[first + 1] != offset) & ~light
        if len(units):
            unit = units[np.minimum(first, len(units) - 1)].view(row)
            well &= unit["size"] == size
            well &= unit["queue_id"] == queue_id
            well &= unit["queue_offset"] == queue_offset
        result += [(int(offset[i]), [int(size[i])]) for i in np.flatnonzero(~well)]
    return result
