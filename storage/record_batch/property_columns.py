"""Values of properties of many records at once, by the rule of ``parse_properties``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from storage.format.java_hash import unsigned_java_hash

from .byte_windows import Longs, Octets, windows

_NAME_END: Final = 1
_SEPARATOR: Final = 2
_LEAST_WIDTH: Final = 64
_MOST_BYTES: Final = 8 << 20
"""Of one matrix; rows of equal width that take more are divided."""
_LONG_VALUE: Final = 64
"""Bytes from which a value is hashed by itself."""


class Properties:
    """Properties of some records as rows of a matrix, each behind a separator."""

    def __init__(self, buffer: memoryview, rows: Longs, starts: Longs, lengths: Longs) -> None:
        """``starts`` are places of property bytes in a buffer, a byte or more behind its start."""
        self.rows = rows
        """Which records these are, by the caller's numbers."""
        width = max(_LEAST_WIDTH, int(lengths.max(initial=0)) + 8)  # room to look at whole names
        matrix = windows(buffer, starts - 1, lengths + 1, width)
        matrix[:, 0] = _SEPARATOR
        self._flat: Octets = matrix.reshape(-1)
        self._row_ends = np.arange(len(rows)) * width + 1 + lengths
        self._width = width
        self._separators = np.flatnonzero(self._flat == _SEPARATOR)
        words: NDArray[Any] = np.ndarray((len(self._flat) - 3,), "<u4", matrix.data, strides=(1,))
        # Nothing as long as a name fits behind the last bytes.
        self._starts = words[np.minimum(self._separators + 1, len(words) - 1)]

    def odd(self) -> NDArray[np.bool_]:
        """Which of them are not ASCII, or end in a zero byte."""
        is_wide = self._flat.reshape(len(self.rows), self._width).max(axis=1) >= 128
        odd: NDArray[np.bool_] = is_wide | (self._flat[self._row_ends - 1] == 0)
        return odd

    def find(self, name: str) -> Values:
        """The values of a property of at least four letters; of duplicates the last one."""
        wanted = name.encode()
        flat = self._flat
        found = np.flatnonzero(self._starts == int.from_bytes(wanted[:4], "little"))
        begin = self._separators[found] + 1
        fits = begin + len(wanted) < len(flat)
        found, begin = found[fits], begin[fits]
        for number, octet in enumerate((*wanted[4:], _NAME_END), 4):
            same = flat[begin + number] == octet
            found, begin = found[same], begin[same]
        start = begin + len(wanted) + 1
        row = begin // self._width
        following = np.append(self._separators, len(flat))[found + 1]
        end = np.minimum(following, self._row_ends[row])
        filled = end > start
        row, start, end = row[filled], start[filled], end[filled]
        if len(row) > 1 and (row[1:] == row[:-1]).any():
            last = np.append(row[1:] != row[:-1], True)
            row, start, end = row[last], start[last], end[last]
        return Values(flat, self.rows[row], start, end - start)


class Values:
    """Values of one property: item i belongs to record ``rows[i]``; records without it have none.

    Empty values count as none.
    """

    def __init__(self, flat: Octets, rows: Longs, starts: Longs, lengths: Longs) -> None:
        self._flat = flat
        self.rows = rows
        self._starts = starts
        self.lengths = lengths
        """Bytes of each value."""

    def texts(self) -> Iterator[bytes]:
        """Give each value."""
        for start, length in zip(self._starts.tolist(), self.lengths.tolist(), strict=True):
            yield self._flat[start : start + length].tobytes()

    def only(self, wanted: NDArray[np.bool_]) -> Values:
        """Some of them."""
        return Values(self._flat, self.rows[wanted], self._starts[wanted], self.lengths[wanted])

    def hold(self, octet: int) -> NDArray[np.bool_]:
        """Which of them have a byte in them."""
        places = np.flatnonzero(self._flat == octet)
        at = np.searchsorted(places, self._starts)
        following = np.append(places, len(self._flat))[at]
        inside: NDArray[np.bool_] = following < self._starts + self.lengths
        return inside

    def hashes(self) -> tuple[NDArray[np.uint32], Longs]:
        """String.hashCode of each, unsigned, and how many UTF-16 code units each has."""
        hashes = np.zeros(len(self.rows), np.uint32)
        units = self.lengths.copy()
        if not len(self.rows):
            return hashes, units
        short = self.lengths <= _LONG_VALUE
        rows = np.flatnonzero(short)
        plain = np.zeros(len(self.rows), np.bool_)
        if len(rows):
            lengths = self.lengths[rows]
            width = int(lengths.max())
            matrix = windows(self._flat.data, self._starts[rows], lengths, width)
            sums = np.zeros(len(rows), np.uint32)
            columns = np.ascontiguousarray(matrix.T)
            least = int(lengths.min())
            for number in range(width):
                following = sums * np.uint32(31) + columns[number]
                sums = following if number < least else np.where(number < lengths, following, sums)
            hashes[rows] = sums
            plain[rows] = matrix.max(axis=1) < 128
        known: dict[bytes, tuple[int, int]] = {}
        for row in np.flatnonzero(~plain).tolist():
            start = int(self._starts[row])
            value = self._flat[start : start + int(self.lengths[row])].tobytes()
            if value not in known:
                text = value.decode("utf-8", "replace")
                known[value] = (unsigned_java_hash(text), len(text.encode("utf-16-le")) // 2)
            hashes[row], units[row] = known[value]
        return hashes, units


def properties_of(buffer: memoryview, starts: Longs, lengths: Longs) -> Iterator[Properties]:
    """Take the properties of records, those of about equal length together."""
    classes = np.maximum(lengths + 8, _LEAST_WIDTH)
    classes = np.ceil(np.log2(classes)).astype(np.int64)
    if len(lengths) and int(lengths.max()) <= 4 * _LEAST_WIDTH:
        classes[:] = 0
    for number in np.unique(classes).tolist():
        rows = np.flatnonzero(classes == number)
        width = int(lengths[rows].max()) + 8
        step = max(1, _MOST_BYTES // width)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            yield Properties(buffer, part, starts[part], lengths[part])
