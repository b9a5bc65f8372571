"""Units that a store's queue files lack, rebuilt from the log in memory.

RocketMQ's recovery writes them into the files before it serves; a reader that may not write keeps
them beside the files, so that it gives the same answers.
"""

from __future__ import annotations

from typing import Final

from storage.format.unit import CQ_STORE_UNIT_SIZE, MOST_LOST

_FIRST_AT_MOST: Final = 1 << 40
"""A queue of which nothing is known may begin anywhere: a larger queue offset is damage."""


class RebuiltUnits:
    """Runs of consecutive units per queue. Filled once, read by any thread afterwards."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], list[tuple[int, bytearray]]] = {}

    def add(self, topic: str, queue_id: int, queue_offset: int, unit: bytes, known: int) -> None:
        """Take the next record of a queue in log order; ``known`` is what its files hold already.

        A record whose queue offset leaves a gap begins a new run. If a later record goes on where
        an earlier run ends, single units behind that one came from damaged records: dropped.
        """
        runs = self._runs.get((topic, queue_id), [])
        kept = len(runs)
        while kept and runs[kept - 1][0] > queue_offset and _length(runs[kept - 1]) == 1:
            kept -= 1
        end = _end_of(runs[kept - 1]) if kept else known
        if kept < len(runs) and queue_offset != end:
            return  # its place is taken: a repetition, or damaged itself
        if not end <= queue_offset <= end + (MOST_LOST if end else _FIRST_AT_MOST):
            return
        del runs[kept:]
        if runs and queue_offset == end:
            runs[-1][1].extend(unit)
        else:
            runs.append((queue_offset, bytearray(unit)))
            self._runs[topic, queue_id] = runs

    def queues(self) -> list[tuple[str, int]]:
        """Queues that have any such units."""
        return list(self._runs)

    def first_offset(self, topic: str, queue_id: int) -> int | None:
        """Queue offset of the first rebuilt unit, None if there is none."""
        runs = self._runs.get((topic, queue_id))
        return runs[0][0] if runs else None

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Queue offset behind the last rebuilt unit, 0 if there is none."""
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
        """Where the first run behind ``queue_offset`` begins, None if there is none."""
        for start, _ in self._runs.get((topic, queue_id), ()):
            if start > queue_offset:
                return start
        return None


def _length(run: tuple[int, bytearray]) -> int:
    return len(run[1]) // CQ_STORE_UNIT_SIZE


def _end_of(run: tuple[int, bytearray]) -> int:
    return run[0] + _length(run)
