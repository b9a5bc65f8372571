"""Prepared records that keep their store times, and their queue offsets if these are given.

For records that come from another store. Only their log offsets are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .cq_unit import PRE_BLANK
from .layout import QUEUE_OFFSET_POSITION
from .prepared_many import PLACE, Longs, PreparedColumns, at_any_byte

if TYPE_CHECKING:
    from .prepared import Ints

_FILLER: Final = np.frombuffer(PRE_BLANK, "V20")


class ExactColumns(PreparedColumns):
    """Records with store times of their own (ms); each of them gets a unit.

    ``queue_offsets`` None = each gets the next one of its queue, as any other record does. Else
    they ascend within each queue, from its next offset on. Offsets that they leave out get fillers,
    which readers skip (ConsumeQueue.fillPreBlank makes such units).

    ``may_go_back``: records older than the log's newest are not refused.
    """

    __slots__ = ("_next", "_rows", "may_go_back", "queue_offsets", "store_timestamps")

    store_timestamps: Longs

    def __init__(
        self,
        *columns: Any,
        store_timestamps: Longs | None = None,
        queue_offsets: Longs | None = None,
        may_go_back: bool = False,
    ) -> None:
        """Take PreparedRecords' columns, and those of this class."""
        super().__init__(*columns)
        self.store_timestamps = np.empty(0, np.int64)
        if store_timestamps is not None:
            self.store_timestamps = store_timestamps
        self.queue_offsets = queue_offsets
        self.may_go_back = may_go_back
        self._next: Sequence[int] = ()
        self._rows: list[Longs] = []  # of each queue, in order

    def place(
        self, commitlog_offset: int, queue_offsets: Sequence[int], store_timestamp: int
    ) -> Ints:
        """Write commit log and queue offsets into ``buffer``; the store times are there.

        Raises ValueError if queue offsets do not ascend from ``queue_offsets`` on.
        """
        self._next = queue_offsets
        own = self.queue_offsets
        if own is not None:
            self._check_ascending(own)
        else:
            own = np.asarray(self.record_queue_offsets(queue_offsets), np.int64)
        place = np.empty(len(self.starts), PLACE)
        place["queue_offset"] = own
        place["physical_offset"] = self.starts + commitlog_offset
        at_any_byte(self.buffer, np.dtype("V16"))[self.starts + QUEUE_OFFSET_POSITION] = place.view(
            "V16"
        )
        return own

    def units(self, commitlog_offset: int, store_timestamp: int) -> list[tuple[int, int, bytes]]:
        """Make the units, with fillers where queue offsets are left out; after :meth:`place`."""
        blocks = super().units(commitlog_offset, store_timestamp)
        own = self.queue_offsets
        if own is None:
            return blocks
        for at, (number, count, block) in enumerate(blocks):
            places = own[self._rows[number]] - self._next[number]
            span = int(places[-1]) + 1
            if span != count:
                units = np.repeat(_FILLER, span)
                units[places] = np.frombuffer(block, "V20")
                blocks[at] = (number, span, units.tobytes())
        return blocks

    def _check_ascending(self, own: Longs) -> None:
        self._rows = [np.arange(len(self.starts))]
        if self._by_queue is not None:
            self._rows = np.split(self._by_queue, np.cumsum(self.queue_counts())[:-1])
        for number, (topic, queue_id) in enumerate(self.queues):
            places = own[self._rows[number]]
            low = len(places) and int(places[0]) < self._next[number]
            if low or (np.diff(places) <= 0).any():
                raise ValueError(f"the queue offsets of {topic} queue {queue_id} do not ascend")

    def _part(self, first: int, end: int) -> ExactColumns:
        part = super()._part(first, end)
        assert isinstance(part, ExactColumns)
        part.store_timestamps = self.store_timestamps[first:end]
        part.queue_offsets = None if self.queue_offsets is None else self.queue_offsets[first:end]
        part.may_go_back = self.may_go_back
        return part
