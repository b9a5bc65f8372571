"""Where all records of a part of the log begin, from the units of the queues alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.layout import BLANK_MAGIC, TWO_INTS

from .log_offsets import first_at

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.files.read_files import ReadOnlyFiles
    from storage.readonly import StoreView

_MOST_QUEUES: Final = 64
"""With more of them, finding the units of the part takes longer than other ways."""


def record_starts(
    view: StoreView, log: ReadOnlyFiles, begin: int, end: int, log_end: int
) -> NDArray[np.int64] | None:
    """Commit log offsets where records begin from ``begin`` to ``end``, ascending.

    A record begins at ``begin``, and both lie in one log file. None where the units are not enough:
    they leave a gap or overlap, or there are too many queues.
    """
    import numpy as np

    queues = view.queues()
    if len(queues) > _MOST_QUEUES:
        return None
    data = b"".join([_units_between(view, *queue, begin, end) for queue in queues])
    layout = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
    units = np.frombuffer(data, layout)
    starts = units["offset"].astype(np.int64)
    sizes = units["size"].astype(np.int64)
    usable = (sizes > 0) & (sizes < PRE_BLANK_SIZE)
    if not usable.all():
        starts, sizes = starts[usable], sizes[usable]
    if not len(starts):
        return None
    order = np.argsort(starts, kind="stable")
    starts, sizes = starts[order], sizes[order]
    stops = starts + sizes
    if int(starts[0]) != begin or not (starts[1:] == stops[:-1]).all():
        return None
    stop = int(stops[-1])
    return starts if stop >= end or _ends_there(log, stop, log_end) else None


def _ends_there(log: ReadOnlyFiles, offset: int, log_end: int) -> bool:
    """Whether no record follows in this file: the log's end, or the blank record."""
    if offset >= log_end:
        return True
    position = offset % log.file_size
    file = log.at(offset - position)
    if not position or file is None or position + TWO_INTS.size > file.length:
        return not position
    rest = (log.file_size - position, BLANK_MAGIC)
    return bool(TWO_INTS.unpack_from(file.view, position) == rest)


def _units_between(view: StoreView, topic: str, queue_id: int, begin: int, end: int) -> bytes:
    """Units of one queue whose records begin in [begin, end), by bisection."""
    bounds = view.queue_bounds(topic, queue_id)
    low = first_at(view, topic, queue_id, begin, *bounds)
    high = first_at(view, topic, queue_id, end, low, bounds.max_offset)
    pieces = []
    while low < high:
        data = view.unit_bytes(topic, queue_id, low, high - low)
        if not data:
            break
        pieces.append(data)
        low += len(data) // CQ_STORE_UNIT_SIZE
    return b"".join(pieces)
