"""The order in which the records of one queue count, where some have wrong queue offsets.

Used by readers that rebuild missing units, by recovery, and by the rebuilding of queues, so that
all three find the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET, MOST_LOST

_MOST_WAITING: Final = 1024
_FIRST_AT_MOST: Final = 1 << 40
"""A queue of which nothing is known may begin anywhere up to this; beyond, two in a row prove
it."""


class OffsetRun(NamedTuple):
    """Units of consecutive queue offsets from ``first`` on, and the store time of the last (ms)."""

    first: int
    units: bytes
    store_timestamp: int

    @property
    def end(self) -> int:
        """The queue offset after the last unit."""
        return self.first + len(self.units) // CQ_STORE_UNIT_SIZE


class QueueOrder:
    """Takes the units of a queue in log order and gives those that count, ascending.

    Each one continues the one before, or leaves a gap: messages that the log has lost. Two in a row
    prove a gap. A single one after a gap is kept waiting: if a later record continues the queue
    before it, it came from a damaged record.
    """

    __slots__ = ("_waiting", "end")

    def __init__(self, end: int | None = None) -> None:
        self.end = end
        """Queue offset after the last returned unit, or the last existing one; None before
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
        """The units that were kept waiting to the end."""
        return self._let_in(None)

    def _let_in(self, before: int | None) -> list[OffsetRun]:
        """Give the waiting units that can be true, before a queue offset."""
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
