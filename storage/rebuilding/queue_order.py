"""In which order the records of one queue count, where some of them claim wrong queue offsets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from storage.columns.windows import Longs
from storage.format.unit import MOST_LOST

_MOST_WAITING: Final = 1024


class Piece(NamedTuple):
    """Units of consecutive queue offsets from ``first`` on, and the store time of the last (ms)."""

    first: int
    units: NDArray[Any]
    store_timestamp: int

    @property
    def end(self) -> int:
        """Queue offset behind the last one."""
        return self.first + len(self.units)


class QueueOrder:
    """Takes the units of a queue in log order and gives those that count, ascending.

    Each goes on where the one before ended, or leaves a gap: messages that the log has lost. Two in
    a row prove a gap. A single one behind a gap is kept waiting: if the queue goes on in front of
    it, it came from a damaged record.
    """

    def __init__(self) -> None:
        self.end: int | None = None
        """Queue offset behind the last unit that was given; None before the first."""
        self._waiting: list[Piece] = []

    def take(self, numbers: Longs, units: NDArray[Any], times: Longs) -> Iterator[Piece]:
        """``numbers`` are queue offsets; the next units of the queue in log order."""
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        edges = [0, *breaks.tolist(), len(numbers)]
        for start, end in pairwise(edges):
            piece = Piece(int(numbers[start]), units[start:end], int(times[end - 1]))
            yield from self._take(piece)

    def rest(self) -> Iterator[Piece]:
        """What was kept waiting to the end."""
        yield from self._let_in(None)

    def _take(self, piece: Piece) -> Iterator[Piece]:
        if self.end is not None and piece.first < self.end:
            if piece.end <= self.end:
                return  # repeated
            left = piece.units[self.end - piece.first :]
            piece = Piece(self.end, left, piece.store_timestamp)
        if piece.first == self.end:
            self._waiting.clear()
            yield self._give(piece)
            return
        waiting = self._waiting
        if self.end is not None and piece.first - self.end > MOST_LOST:
            return
        if waiting and waiting[-1].end == piece.first:
            both = np.concatenate([waiting[-1].units, piece.units])
            piece = Piece(waiting.pop().first, both, piece.store_timestamp)
        if len(piece.units) > 1:
            yield from self._let_in(piece.first)
            yield self._give(piece)
        else:
            waiting.append(piece)
            if len(waiting) > _MOST_WAITING:
                yield from self._let_in(None)

    def _let_in(self, before: int | None) -> Iterator[Piece]:
        """Give those that waited and can be true, in front of a queue offset."""
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            if (self.end is None or piece.first >= self.end) and (
                before is None or piece.first < before
            ):
                yield self._give(piece)

    def _give(self, piece: Piece) -> Piece:
        self.end = piece.end
        return piece
