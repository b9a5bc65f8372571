"""Size and growth of topics, from the units of their queues.

A unit (20 bytes) has the size of its record, so bytes are exact without reading a record: 100
million messages need 2 GB of queue files, which take a second once they are in memory. Times are
read from single records, found by bisection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta, tzinfo
from stat import S_ISREG
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.lag.queue_position import unread_bytes
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.folder_walk import BLOCK, walk
from storage.counted import counted
from storage.format.message import LMQ_PREFIX
from storage.format.names import CONSUMEQUEUE
from storage.known import of_all
from storage.parse.times import EARLIEST, near_datetime
from storage.read.by_time import Boundary

from .rows import TopicStatsRow, TopicUsageRow

if TYPE_CHECKING:
    from pathlib import Path

    from storage.readonly import StoreView

HOUR_MS: Final = 3_600_000
_TOPICS_AT_ONCE: Final = 100


class Part(NamedTuple):
    """Some consecutive messages of one queue. Offsets count messages, the end is exclusive."""

    queue_id: int
    first: int
    end: int
    bytes: int | None

    @property
    def messages(self) -> int:
        """Number of messages."""
        return self.end - self.first


class TopicFigures:
    """Figures of one topic of a store, as of construction; or as of the time at which ``bounds`` of
    its queues were read."""

    def __init__(
        self,
        view: StoreView,
        topic: str,
        queue_ids: Iterable[int],
        bounds: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self._view = view
        self.topic = topic
        self.parts = []
        for queue_id in sorted(queue_ids):
            low, high = view.queue_bounds(topic, queue_id) if bounds is None else bounds[queue_id]
            size = self._bytes(queue_id, low, high)
            self.parts.append(Part(queue_id, low, high, size))

    def whole(self) -> TopicStatsRow:
        """One row for the whole topic."""
        return self._row(self.parts)

    def by_queue(self) -> Iterator[TopicStatsRow]:
        """One row per queue."""
        for part in self.parts:
            yield self._row([part])._replace(queue_id=part.queue_id)

    def by_hour(self, zone: tzinfo | None, left_out: Warn = no_warning) -> Iterator[TopicStatsRow]:
        """A row for each hour, in the zone, in which messages were stored.

        ``left_out`` gets a sentence on messages that are in no row, as their time is damaged,
        cannot be read or is out of order.
        """
        left = sum(part.messages for part in self.parts)
        end = EARLIEST
        first = self._first_after(end)
        while first is not None:
            start = max(end, hour_of(first, zone))  # skips hours without messages
            end = start + HOUR_MS
            found = self._row([self._within(part, start, end) for part in self.parts])
            left -= found.messages
            seconds = HOUR_MS / 1000
            yield found._replace(
                from_timestamp=start,
                rate=found.messages / seconds,
                bytes_rate=None if found.bytes is None else found.bytes / seconds,
            )
            first = self._first_after(end)
        if left > 0:
            left_out(f"topic {self.topic}: {in_no_row(left)}")

    def usage(self, log_bytes: int) -> TopicUsageRow:
        """Disk usage of the topic, in a log of a given size."""
        row = self.whole()
        light = self.topic.startswith(LMQ_PREFIX)
        size = 0 if light else row.bytes  # its records belong to another topic
        share = None if size is None or not log_bytes else size / log_bytes
        return TopicUsageRow(
            self.topic,
            row.messages,
            size,
            share,
            allocated(self._view.root / CONSUMEQUEUE / self.topic),
            row.first_timestamp,
            row.last_timestamp,
        )

    def _row(self, parts: Iterable[Part]) -> TopicStatsRow:
        parts = list(parts)
        messages = sum(part.messages for part in parts)
        sizes = [part.bytes for part in parts]
        known = [size for size in sizes if size is not None]
        size = sum(known) if len(known) == len(sizes) else None
        first, last = self._times(parts)
        seconds = (last - first) / 1000 if first is not None and last is not None else 0
        total = sum(part.messages for part in self.parts)
        fullest = max((part.messages for part in parts), default=0)
        return TopicStatsRow(
            self.topic,
            None,
            None,
            messages,
            size,
            None if size is None or not messages else round(size / messages),
            messages / total if total else None,
            messages / seconds if seconds else None,
            first,
            last,
            size / seconds if seconds and size is not None else None,
            fullest * len(parts) / messages if messages else None,
        )

    def _times(self, parts: Iterable[Part]) -> tuple[int | None, int | None]:
        first, last = [], []
        for part in parts:
            if part.messages:
                first.append(self._time(part.queue_id, part.first))
                last.append(self._time(part.queue_id, part.end - 1))
        return of_all(min, first), of_all(max, last)

    def _first_after(self, start: int) -> int | None:
        """Store time of the topic's first message at or after a time; None without one."""
        times = []
        for part in self.parts:
            offset = self._at(part, start)
            if offset < part.end:
                times.append(self._time(part.queue_id, offset))
        return min((time for time in times if time is not None), default=None)

    def _within(self, part: Part, start: int, end: int) -> Part:
        first, stop = self._at(part, start), self._at(part, end)
        return Part(part.queue_id, first, stop, self._bytes(part.queue_id, first, stop))

    def _at(self, part: Part, timestamp: int) -> int:
        """Offset of the part's first message stored at or after a time; its end without one."""
        if not part.messages:
            return part.end
        found = self._view.offset_in_queue_by_time(
            self.topic, part.queue_id, timestamp, Boundary.LOWER
        )
        return min(max(found, part.first), part.end)

    def _time(self, queue_id: int, offset: int) -> int | None:
        return self._view.store_timestamp(self.topic, queue_id, offset)

    def _bytes(self, queue_id: int, first: int, end: int) -> int | None:
        if first >= end:
            return 0
        return unread_bytes(self._view, self.topic, queue_id, (first,), end)[first]


def bounds_of_topics(
    view: StoreView, queues: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, dict[int, tuple[int, int]]]]:
    """Each topic with the bounds of its queues, by queue id; they are read some topics at a time,
    so that what is made of the first ones need not wait for all."""
    topics = list(queues)
    for start in range(0, len(topics), _TOPICS_AT_ONCE):
        some = topics[start : start + _TOPICS_AT_ONCE]
        places = [(topic, queue_id) for topic in some for queue_id in queues[topic]]
        found = dict(zip(places, view.each_queue_bounds(places), strict=True))
        for topic in some:
            yield topic, {queue_id: found[topic, queue_id] for queue_id in queues[topic]}


def log_bytes(view: StoreView) -> int:
    """Bytes of the log between its first file and its end."""
    return view.log_max_offset() - view.log_min_offset()


def rest_of_log(view: StoreView, rows: Iterable[TopicUsageRow]) -> TopicUsageRow | None:
    """The rest of the log that belongs to no queue: ends of files, records of deleted topics,
    damage. None if the bytes of a topic are unknown."""
    sizes = [row.bytes for row in rows]
    whole = log_bytes(view)
    if None in sizes or not whole:
        return None
    left = whole - sum(size for size in sizes if size is not None)
    return TopicUsageRow(None, None, left, left / whole, None, None, None)


def allocated(folder: Path) -> int:
    """Disk usage of the files below a folder, without holes and without those that go meanwhile."""
    entries = (status for _, found in walk(folder, []) for _, status in found)
    return sum(status.st_blocks * BLOCK for status in entries if S_ISREG(status.st_mode))


def in_no_row(messages: int) -> str:
    """What is said of messages whose store time cannot be read, in rows by time."""
    are, their = ("is", "its") if messages == 1 else ("are", "their")
    return (
        f"{counted(messages, 'message')} {are} in no row: {their} time is damaged, cannot be read "
        "or is out of order"
    )


def hour_of(timestamp: int, zone: tzinfo | None) -> int:
    """Start of the hour of a time in the zone, whose offset may include half an hour."""
    moment = near_datetime(timestamp, zone)
    within = timedelta(minutes=moment.minute, seconds=moment.second)
    return timestamp - timestamp % 1000 - int(within.total_seconds()) * 1000
