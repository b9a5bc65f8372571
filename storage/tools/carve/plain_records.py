"""Copies of records that units of queues name, many at a time: the plain ones.

A plain record is of version 1, with IPv4 hosts. It is whole, has the checksum of its body, and is
the one that its unit says: of that queue, at that queue offset, at that place of the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from storage import native
from storage.format.head_matrix import HEAD_TYPES
from storage.format.layout import HEAD_SIZES, MESSAGE_MAGIC_V1
from storage.format.prepared_many import at_any_byte
from storage.format.record import scan_records

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.format.prepared_many import Longs

_HEAD_SIZE: Final = HEAD_SIZES[0]


def _take_records(
    log: memoryview, first: int, rows: memoryview, queue_ids: memoryview, fields: list[bytes], /
) -> tuple[bytearray, bytes | bytearray]:
    """Copy the plain records of a log file that begins at the log offset ``first``.

    Rows of ``rows`` (int64): numbers of queues, queue offsets, positions in the file, in order, and
    sizes, as the units have them. ``queue_ids`` and ``fields`` (:func:`topic_field`) are those of
    the queues, by number. Gives the records, one after the other, and for each row whether its
    record is among them, as a byte.
    """
    numbers, offsets, positions, sizes = np.frombuffer(rows, np.int64).reshape(4, -1)
    if len(log) < _HEAD_SIZE or not len(sizes):
        return bytearray(), bytes(len(sizes))
    count = len(log) - _HEAD_SIZE + 1
    every: NDArray[Any] = np.ndarray((count,), HEAD_TYPES[0], log, strides=(1,))
    fits = (positions >= 0) & (sizes > _HEAD_SIZE) & (positions <= len(log) - sizes)
    heads = every[np.where(fits, positions, 0)]
    body = heads["body_length"].astype(np.int64)
    lengths = np.array([*map(len, fields)], np.int64)[numbers]
    good = (
        fits
        & (heads["total_size"] == sizes)
        & (heads["magic"] == MESSAGE_MAGIC_V1)
        & (heads["queue_id"] == np.frombuffer(queue_ids, np.int64)[numbers])
        & (heads["queue_offset"] == offsets)
        & (heads["physical_offset"] == positions + first)
        & (heads["sys_flag"] & 0x30 == 0)
        & (body > 0)
        & (lengths > 0)
        & (body + (_HEAD_SIZE + 2) + lengths <= sizes)
    )
    chosen = np.flatnonzero(good)
    buffer = _copied(log, positions[chosen], sizes[chosen])
    sound = _sound(buffer, fields, numbers[chosen], sizes[chosen], body[chosen])
    if not sound.all():
        good[chosen] = sound
        starts = np.cumsum(sizes[chosen]) - sizes[chosen]
        with memoryview(buffer) as view:
            buffer = _copied(view, starts[sound], sizes[chosen][sound])
    return buffer, good.tobytes()


take_records: Final = native.form("take_records", _take_records)


def _sound(
    buffer: bytearray, fields: list[bytes], numbers: Longs, sizes: Longs, bodies: Longs
) -> NDArray[np.bool_]:
    """Which of the records in ``buffer``, one after the other, are whole, with the checksum of
    their body and the topic of their queue."""
    starts = np.cumsum(sizes) - sizes
    sound = np.ones(len(sizes), np.bool_)
    row = 0
    with memoryview(buffer) as view:
        while row < len(sizes):
            scan = scan_records(view, int(starts[row]), len(view), max_count=len(sizes) - row)
            found = np.frombuffer(scan.sizes, np.int64)
            differs = np.flatnonzero(found != sizes[row : row + len(found)])
            row += int(differs[0]) if len(differs) else len(found)
            sound[row : row + 1] = False
            row += 1
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        field = fields[number]
        named = at_any_byte(buffer, np.dtype(f"V{len(field)}"))[
            starts[rows] + _HEAD_SIZE + bodies[rows]
        ]
        if named.tobytes() != field * len(rows):
            same = named.view(np.uint8).reshape(-1, len(field)) == np.frombuffer(field, np.uint8)
            sound[rows] &= same.all(axis=1)
    return sound


def _copied(log: memoryview, positions: Longs, sizes: Longs) -> bytearray:
    """Copy records one after the other; those that follow each other in the log at once."""
    if not len(sizes):
        return bytearray()
    ends = positions + sizes
    cuts = np.flatnonzero(ends[:-1] != positions[1:]) + 1
    firsts, lasts = positions[np.r_[0, cuts]], ends[np.r_[cuts - 1, len(ends) - 1]]
    runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return bytearray().join([log[start:end] for start, end in runs])


def topic_field(topic: str) -> bytes:
    """A topic as a record of version 1 holds it, b"" if none can."""
    name = topic.encode("utf-8", "surrogateescape")
    return bytes((len(name),)) + name if len(name) < 128 else b""
