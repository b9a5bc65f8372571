"""In which order the records of one queue count, where some of them claim wrong queue offsets.

Readers that make up for units that the files lack, recovery, and the rebuilding of queues ask this,
so all three find the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET, MOST_LOST

_MOST_WAITING: Final = 1024
_FIRST_AT_MOST: Final = 1 << 40
"""A queue of which nothing is known may begin anywhere; beyond this, only two in a row say so."""


class OffsetRun(NamedTuple):
    """Units of consecutive queue offsets from ``first`` on, and the store time of the last (ms)."""

    first: int
    units: bytes
    store_timestamp: int

    @property
    def end(self) -> int:
        """Queue offset behind the last one."""
        return self.first + len(self.units) // CQ_STORE_UNIT_SIZE


class QueueOrder:
    """Takes the units of a queue in log order and gives those that count, ascending.

    Each goes on where the one before ended, or leaves a gap: messages that the log has lost. Two in
    a row prove a gap. A single one behind a gap is kept waiting: if the queue goes on in front of
    it, it came from a damaged record.
    """

    __slots__ = ("_waiting", "end")

    def __init__(self, end: int | None = None) -> None:
        self.end = end
        """Queue offset behind the last unit that was given, or that was there before; None before
        the first of a queue that may begin anywhere."""
        self._waiting: list[OffsetRun] = []

    def take(self, piece: OffsetRun) -> Sequence[OffsetRun]:
        """Take the next units of the queue in log order; give what counts by now."""
        if not 0 <= piece.first < MAX_QUEUE_OFFSET:
            return ()
        if self.end is not None and piece.first < self.end:
            if piece.end <= self.end:
                return ()  # repeated
            left = piece.units[(self.end - piece.first) * CQ_STORE_UNIT_SIZE :]
            piece = OffsetRun(self.end, left, piece.store_timestamp)
        if piece.first == self.end:
            self._waiting.clear()
            self.end = piece.end
            return (piece,)
        waiting = self._waiting
        if self.end is not None and piece.first - self.end > MOST_LOST:
            return ()
        if waiting and waiting[-1].end == piece.first:
            before = waiting.pop()
            piece = OffsetRun(before.first, before.units + piece.units, piece.store_timestamp)
        if piece.end - piece.first > 1:
            given = self._let_in(piece.first)
            self.end = piece.end
            return [*given, piece]
        waiting.append(piece)
        return self.rest() if len(waiting) > _MOST_WAITING else ()

    def rest(self) -> Sequence[OffsetRun]:
        """What was kept waiting to the end."""
        return self._let_in(None)

    def _let_in(self, before: int | None) -> list[OffsetRun]:
        """Give those that waited and can be true, in front of a queue offset."""
        waiting, self._waiting = self._waiting, []
        given = []
        for piece in waiting:
            if self.end is None:
                possible = piece.first <= _FIRST_AT_MOST
            else:
                possible = piece.first >= self.end
            if possible and (before is None or piece.first < before):
                self.end = piece.end
                given.append(piece)
        return given
