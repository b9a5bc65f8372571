"""How many messages a queue got since a time, from the log alone.

No record is read twice and few are read at all: store times never go back along the log, so the
time of one record bounds all before it and all after it, whatever their queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE

if TYPE_CHECKING:
    from storage.readonly import StoreView

RATE_WINDOW_MS: Final = 300_000
"""The time span of ``rate_in`` and ``rate_out``: five minutes."""


class StoredSince:
    """Counts messages stored at ``since_ms`` or later. For many queues of one store; for one
    thread."""

    def __init__(self, view: StoreView, since_ms: int) -> None:
        self._view = view
        self._since = since_ms
        self._per_file = view.config.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
        self._before = -1  # records up to here are older
        self._after = 1 << 63  # records from here on are not

    def count(self, topic: str, queue_id: int, min_offset: int, max_offset: int) -> int | None:
        """Count the queue's messages between the offsets.

        None if units or records on the way cannot be read.
        """
        end = max_offset
        while end > min_offset:
            first = max(min_offset, (end - 1) // self._per_file * self._per_file)
            found = self._search(topic, queue_id, first, end)
            if found is None:
                return None
            if found > first:
                return max_offset - found
            end = first
        return max_offset - min_offset

    def _search(self, topic: str, queue_id: int, first: int, end: int) -> int | None:
        """Find the first message of [first, end) that is not older; ``end`` without any."""
        pieces: list[tuple[int, memoryview]] = []
        at = first
        while at < end:
            units = self._view.unit_view(topic, queue_id, at, end)
            if units is None:
                return None
            pieces.append((at, units))
            at += len(units) // CQ_STORE_UNIT_SIZE
        for at, units in reversed(pieces):
            number = self._bisect(topic, queue_id, at, units)
            if number is None or number:
                return None if number is None else at + number
        return first

    def _bisect(self, topic: str, queue_id: int, first: int, units: memoryview) -> int | None:
        """Count the units whose records are older."""
        low, high = 0, len(units) // CQ_STORE_UNIT_SIZE
        probes = [0, high - 1]  # mostly all are older, or none
        while low < high:
            probe = probes.pop() if probes else (low + high) // 2
            if not low <= probe < high:
                continue
            place, size, _ = CQ_STORE_UNIT.unpack_from(units, probe * CQ_STORE_UNIT_SIZE)
            older: bool | None = place <= self._before or size == PRE_BLANK_SIZE
            if not older and place < self._after:
                older = self._is_older(topic, queue_id, first + probe, place)
            if older is None:
                return None
            if older:
                low = probe + 1
            else:
                high = probe
        return low

    def _is_older(self, topic: str, queue_id: int, offset: int, place: int) -> bool | None:
        """Read a record, and keep the bound that it gives for all others."""
        stored = self._view.store_timestamp(topic, queue_id, offset)
        if stored is None:
            return None
        if stored < self._since:
            self._before = place
            return True
        self._after = place
        return False
