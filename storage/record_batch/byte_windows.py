"""Pieces of a buffer by the thousand, as the rows of one matrix of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Octets = NDArray[np.uint8]


def windows(buffer: memoryview, starts: Longs, lengths: Longs, width: int) -> Octets:
    """The ``lengths[i]`` bytes from ``starts[i]`` on as row i, zeros behind them.

    All lie within the buffer, and none is longer than ``width`` (at least 1).
    """
    count, last = len(starts), len(buffer) - width
    inside = starts <= last
    if inside.all():
        rows = _taken(buffer, starts, width)
    else:  # rows so near the end that a whole window would reach beyond it
        rows = np.zeros((count, width), np.uint8)
        if last >= 0:
            rows[inside] = _taken(buffer, starts[inside], width)
        for row in np.flatnonzero(~inside).tolist():
            start, length = int(starts[row]), int(lengths[row])
            rows[row, :length] = np.frombuffer(buffer[start : start + length], np.uint8)
    if count and int(lengths.min()) < width:
        rows *= np.arange(width) < lengths[:, None]
    return rows


def _taken(buffer: memoryview, starts: Longs, width: int) -> Octets:
    # An item at every byte: taking some of them copies whole windows.
    every: NDArray[Any] = np.ndarray((len(buffer) - width + 1,), f"V{width}", buffer, strides=(1,))
    return every[starts].view(np.uint8).reshape(len(starts), width)


def group_rows(rows: Octets, more: Longs) -> tuple[Longs, Longs]:
    """Number equal rows: the first row of each group, and the group of each row.

    Rows are equal if their bytes and their item of ``more`` are. The width is a multiple of 8.
    """
    parts = rows.view(np.uint64)
    mixed = more.astype(np.uint64) * _FACTORS[0]
    for number in range(parts.shape[1]):
        mixed = (mixed ^ parts[:, number]) * _FACTORS[number % 2]
        mixed ^= mixed >> np.uint64(29)
    if (mixed == mixed[0]).all():
        first, group = np.zeros(1, np.int64), np.zeros(len(mixed), np.int64)
    else:
        _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    like = first[group]
    if (more == more[like]).all() and (parts == parts[like]).all():
        return first, group
    return _group_one_by_one(rows, more)


_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def _group_one_by_one(rows: Octets, more: Longs) -> tuple[Longs, Longs]:
    """The same where two groups have the same sum."""
    known: dict[tuple[bytes, int], int] = {}
    first: list[int] = []
    group: list[int] = []
    for row, number in enumerate(more.tolist()):
        key = (rows[row].tobytes(), number)
        if key not in known:
            known[key] = len(first)
            first.append(row)
        group.append(known[key])
    return np.array(first, np.int64), np.array(group, np.int64)
