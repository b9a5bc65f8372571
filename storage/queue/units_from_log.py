"""Units that a store's queue files lack, rebuilt from the log in memory.

RocketMQ's recovery writes them into the files before the broker serves; a reader that may not write
keeps them in memory, so that it gives the same answers.
"""

from __future__ import annotations

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE

from .record_order import OffsetRun, QueueOrder


class RebuiltUnits:
    """Runs of consecutive units per queue. Filled once (``add``, then ``finish``), read by any
    thread afterwards."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, int], QueueOrder] = {}
        self._runs: dict[tuple[str, int], list[tuple[int, bytearray]]] = {}

    def add(self, topic: str, queue_id: int, queue_offset: int, unit: bytes, known: int) -> None:
        """Take the next record of a queue in log order; ``known`` is what its files hold already.

        A record whose queue offset leaves a gap begins a new run, if it counts (QueueOrder).
        """
        key = topic, queue_id
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = QueueOrder(known or None)
        for piece in order.take(OffsetRun(queue_offset, unit, 0)):
            self._put(key, piece)

    def finish(self) -> None:
        """End the filling: there are no more records."""
        for key, order in self._orders.items():
            for piece in order.rest():
                self._put(key, piece)
        self._orders.clear()

    def _put(self, key: tuple[str, int], piece: OffsetRun) -> None:
        runs = self._runs.setdefault(key, [])
        if runs and piece.first == _end_of(runs[-1]):
            runs[-1][1].extend(piece.units)
        else:
            runs.append((piece.first, bytearray(piece.units)))

    def queues(self) -> list[tuple[str, int]]:
        """Queues that have rebuilt units."""
        return list(self._runs)

    def first_offset(self, topic: str, queue_id: int) -> int | None:
        """Queue offset of the first rebuilt unit, None if there is none."""
        runs = self._runs.get((topic, queue_id))
        return runs[0][0] if runs else None

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Queue offset after the last rebuilt unit, 0 if there is none."""
        runs = self._runs.get((topic, queue_id))
        return _end_of(runs[-1]) if runs else 0

    def read(self, topic: str, queue_id: int, queue_offset: int, count: int) -> bytes:
        """Up to ``count`` units from ``queue_offset`` on, as many as are consecutive."""
        for start, units in self._runs.get((topic, queue_id), ()):
            if start <= queue_offset < start + len(units) // CQ_STORE_UNIT_SIZE:
                at = (queue_offset - start) * CQ_STORE_UNIT_SIZE
                return bytes(units[at : at + count * CQ_STORE_UNIT_SIZE])
        return b""

    def next_run(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Where the first run after ``queue_offset`` begins, None if there is none."""
        for start, _ in self._runs.get((topic, queue_id), ()):
            if start > queue_offset:
                return start
        return None


def _end_of(run: tuple[int, bytearray]) -> int:
    return run[0] + len(run[1]) // CQ_STORE_UNIT_SIZE
