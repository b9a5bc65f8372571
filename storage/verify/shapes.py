"""Properties of many records that differ in their values only, read as the rows of a matrix.

Producers send one kind of message after another: the same names in the same order, values of the
same length. Then tags and keys of thousands of records are columns, and their hashes a product.
Whatever is unusual about a record, or rare, is left to be read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.format.hash_many import MAX_ROW, hash_rows, index_hashes_of_rows
from storage.model import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)

Longs = NDArray[np.int64]
Octets = NDArray[np.uint8]

_FEW: Final = 32
_LONGEST: Final = 1024
_KINDS: Final = 4
"""Kinds of messages of one length that are told apart; the others are read one by one."""
_NAME_END, _PAIR_END, _BLANK = 1, 2, 32
_ALL_BITS: Final = np.uint8(255)
_NOT_ASCII: Final = np.uint8(128)
_SPECIAL: Final = frozenset({PROPERTY_INNER_MULTI_DISPATCH, PROPERTY_DELAY_TIME_LEVEL})


class Shape(NamedTuple):
    """Records ``rows`` of a block whose properties are the rows of ``matrix``.

    ``tag`` and each of ``keys`` are the columns [start, end) of a value; (0, 0) = no tag.
    """

    rows: Longs
    matrix: Octets
    tag: tuple[int, int]
    keys: list[tuple[int, int]]

    def tags_codes(self) -> Longs:
        """Hashes of the tags."""
        start, end = self.tag
        if start == end:
            return np.zeros(len(self.rows), np.int64)
        return hash_rows(self.matrix[:, start:end]).view(np.int32).astype(np.int64)

    def index_hashes(self, topic_hashes: NDArray[np.uint32]) -> Iterator[Longs]:
        """Hashes of the keys for the index, key by key; ``topic_hashes`` are those of the rows."""
        for start, end in self.keys:
            yield index_hashes_of_rows(topic_hashes, self.matrix[:, start:end])


def find_shapes(octets: Octets, begin: Longs, end: Longs) -> tuple[list[Shape], Longs]:
    """The shapes of the properties at [begin, end) of a file, and the rows that have none."""
    found: list[Shape] = []
    loose: list[Longs] = []
    lengths = end - begin
    odd = (lengths <= 0) | (lengths > _LONGEST)
    loose.append(np.flatnonzero(odd))
    for length in np.flatnonzero(np.bincount(lengths[~odd])).tolist():
        rows = np.flatnonzero(lengths == length)
        for _ in range(_KINDS):
            if len(rows) < _FEW:
                break
            matrix = rows_at(octets, begin[rows], length)
            shape, like = _shape(rows, matrix)
            if shape is not None:
                found.append(shape)
            else:
                loose.append(rows[like])
            rows = rows[~like]
        loose.append(rows)
    return found, np.sort(np.concatenate(loose))


def rows_at(octets: Octets, begin: Longs, length: int) -> Octets:
    """The bytes at some places of a file as the rows of a matrix; all must be inside of it."""
    # An item at every byte: taking some of them copies whole rows.
    every = np.ndarray((len(octets) - length + 1,), f"V{length}", octets, 0, (1,))
    return every[begin].view(np.uint8).reshape(len(begin), length)


def _shape(rows: Longs, matrix: Octets) -> tuple[Shape | None, NDArray[np.bool_]]:
    """The shape of the first row and which rows have it; None if such rows are read singly."""
    only_first = np.zeros(len(rows), np.bool_)
    only_first[0] = True
    text = matrix[0].tobytes()
    if not text.isascii() or text[-1:] == b"\0":
        return None, only_first
    fixed = np.zeros(len(text), np.bool_)  # columns that are names
    values: dict[str, tuple[int, int]] = {}
    at = 0
    for pair in text.split(b"\2"):
        name, middle, value = pair.partition(b"\1")
        start = at + len(name) + 1
        fixed[at:start] = True
        known = name.decode()
        if pair and (not middle or not value or known in values or known in _SPECIAL):
            return None, only_first
        if pair:
            values[known] = (start, start + len(value))
        at += len(pair) + 1
    keys = _keys(text, values)
    tag = values.get(PROPERTY_TAGS, (0, 0))
    if any(stop - start > MAX_ROW for start, stop in [tag, *keys]):
        return None, only_first
    marks = (matrix == _PAIR_END) | (matrix == _NAME_END)
    start, stop = values.get(PROPERTY_KEYS, (0, 0))
    marks[:, start:stop] |= matrix[:, start:stop] == _BLANK
    marks ^= marks[0]
    unlike = matrix ^ matrix[0]
    unlike &= fixed * _ALL_BITS
    unlike |= marks.view(np.uint8)
    unlike |= matrix & _NOT_ASCII
    like = ~unlike.any(axis=1) & (matrix[:, -1] != 0)
    if not like.all():
        rows, matrix = rows[like], matrix[like]
    return Shape(rows, matrix, tag, keys), like


def _keys(text: bytes, values: dict[str, tuple[int, int]]) -> list[tuple[int, int]]:
    """Columns of the keys in the index's order: the unique one, then the others."""
    found = []
    unique = values.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    if unique is not None:
        found.append(unique)
    start, stop = values.get(PROPERTY_KEYS, (0, 0))
    for key in text[start:stop].split(b" "):
        if key:
            found.append((start, start + len(key)))
        start += len(key) + 1
    return found
