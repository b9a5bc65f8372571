"""A store as it was at an earlier time.

The log is only ever appended to, and store times never go back along it (the broker stamps records
under the put lock). So one offset of the log separates the records of that time from later ones;
queues end at the first unit that lies after it.

Messages that were deleted since count as deleted. Before the oldest remaining message nothing is
known, unless nothing was ever deleted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .errors import NotKnownError
from .readonly import Boundary, StoreView

if TYPE_CHECKING:
    from storage.configs.consumer_offsets import OffsetTable
    from storage.read.bounds import Bounds

    from .config import StoreConfig


class AsOfBounds:
    """Ends of the log and of the queues after the last message stored at or before a time (ms).

    Implements :class:`storage.read.bounds.Bounds`; they do not grow.
    """

    def __init__(self, now: StoreView, timestamp: int) -> None:
        self._now = now
        self._end_timestamp = timestamp + 1
        self._ends: dict[tuple[str, int], int] = {}
        self._log_end: int | None = None

    @property
    def _present(self) -> Bounds:
        return self._now.bounds

    def log_end(self) -> int:
        """Commit log offset after the last record of that time that has a unit."""
        if self._log_end is None:
            ends = [self._now.log_min_offset()]
            for topic, queue_id in self._now.queues():
                unit = self._now.unit(topic, queue_id, self.next_offset(topic, queue_id) - 1)
                ends.extend(() if unit is None else (unit[0] + unit[1],))
            self._log_end = max(ends)
        return self._log_end

    def finished_to(self) -> int:
        """The log's end at that time."""
        return self.log_end()

    def keys_from(self) -> int:
        """The index files have all keys of records below this log offset."""
        return min(self._present.keys_from(), self.log_end())

    def index_is_whole(self) -> bool:
        """Whether the index files have these keys for sure."""
        return self._present.index_is_whole()

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Max offset of a queue then."""
        queue = (topic, queue_id)
        end = self._ends.get(queue)
        if end is None:
            end = self._now.offset_in_queue_by_time(
                topic, queue_id, self._end_timestamp, Boundary.LOWER
            )
            self._ends[queue] = end
        return end

    def queues(self) -> list[tuple[str, int]]:
        """All queues that had got a message."""
        return [queue for queue in self._present.queues() if self.next_offset(*queue)]

    def files_generation(self) -> int:
        """A number that changes when files are deleted."""
        return self._present.files_generation()

    def close(self) -> None:
        """Do nothing: nothing is held."""


class AsOfView(StoreView):
    """Reads a store as it was at a time; for the rest see StoreView.

    The progress of groups at that time is not in the store's files: ``consumer_offsets`` is empty.
    """

    def __init__(self, now: StoreView, timestamp: int) -> None:
        """View the store of ``now``, which is closed with this, at ``timestamp`` (ms).

        Raises NotKnownError if messages of that time may have been deleted without a trace.
        """
        super().__init__(now.root, now.config, AsOfBounds(now, timestamp))
        self._scan = now._scan
        self._now = now
        self.timestamp = timestamp
        first = now.log_min_offset()
        if first:
            oldest = _oldest(now)
            if oldest is None or timestamp < oldest:
                raise NotKnownError(now.root, timestamp, oldest)

    @classmethod
    def open_at(
        cls, root: Path | str, timestamp: int, config: StoreConfig | None = None
    ) -> AsOfView:
        """Open the store in a folder as it was. Raises what StoreView.open and the class raise."""
        now = StoreView.open(root, config)
        try:
            return cls(now, timestamp)
        except BaseException:
            now.close()
            raise

    def joins_writers(self) -> bool:
        """False: the past does not grow."""
        return False

    def consumer_offsets(self) -> OffsetTable:
        """An empty table: see the class."""
        return {}

    def close(self) -> None:
        """Close the store."""
        super().close()
        self._now.close()


def _oldest(now: StoreView) -> int | None:
    """Store time of the oldest record that has a unit, None without any."""
    first: tuple[int, int] | None = None
    for topic, queue_id in now.queues():
        offset = now.min_offset_in_queue(topic, queue_id)
        unit = now.unit(topic, queue_id, offset)
        stored = now.store_timestamp(topic, queue_id, offset)
        if unit is not None and stored is not None and (first is None or unit[0] < first[0]):
            first = (unit[0], stored)
    return None if first is None else first[1]
