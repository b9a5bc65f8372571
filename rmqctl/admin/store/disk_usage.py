"""What a store takes on the disk, by topic, kind, group or day, and the next deletions."""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.lag.few_units import few_units
from analytics.lag.queue_position import unread_bytes
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.next_deletions import (
    NextClean,
    Progress,
    ReadersProgress,
    WhyNone,
    expired,
    next_clean,
)
from rmqctl.admin.offsets.committed import offsets_in_force
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.admin.topics.figures import (
    Part,
    TopicFigures,
    bounds_of_topics,
    in_no_row,
    log_bytes,
)
from storage.clock import now_ms as clock_ms
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, LMQ_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from storage.known import of_all
from storage.parse.durations import format_duration, format_size
from storage.parse.times import LATEST, day_bounds
from storage.read.by_time import Boundary
from storage.read.log_offsets import first_at
from storage.retention import used_ratio

from .disk_files import MEANINGS, DiskFiles, DiskKind, disk_files
from .disk_rows import DiskKindRow, DiskUseRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView

_DAY_MS: Final = 86_400_000
_WARNINGS: Final = (75, 85, 90)
"""Disk usage in percent at which RocketMQ deletes at any hour, deletes by force, and refuses."""

_FAR_DAYS: Final = 3_650
_RESERVED: Final = (DiskKind.RESERVED_LOG, DiskKind.RESERVED_QUEUE, DiskKind.RESERVED_INDEX)


Place = tuple[int, int | None]
"""Where a message lies in the log, and its store time; None: it cannot be read."""
_NOWHERE: Final[Place] = (-1, None)
_Measured = tuple[Part, Place, Place]
"""A part of a queue, and where its first and its last message lie."""


class Figures(NamedTuple):
    """What parts of the queues of a topic hold, and what the next deletion frees of each."""

    parts: Sequence[Part]
    freed: Sequence[int | None]
    times: Sequence[int | None]
    """Store times of the first and the last message of each part."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is unknown."""
        return None not in (*(part.bytes for part in self.parts), *self.freed, *self.times)


KnownFigures = dict[str, tuple[object, Figures]]
"""The figures of topics, and what they depend on."""


def disk_use(
    view: "StoreView",
    broker: "Broker",
    *,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    known: KnownFigures | None = None,
    on_progress: OnProgress = no_progress,
) -> "DiskUse":
    """What a store takes on the disk, and what the next deletions free.

    Reads every unit of the queues (20 bytes a message), no record, and looks at all files.
    ``known`` is what an earlier call has left there: topics whose queues are as before are not read
    again, also if ``on_progress``, which gets topics, ended that call.
    """
    now = clock_ms() if now_ms is None else now_ms
    return DiskUse(view, offsets_in_force(view, broker, warn).table, now, known, on_progress)


class DiskUse:
    """The usage of one store, as of construction."""

    def __init__(
        self,
        view: "StoreView",
        progress: Progress,
        now_ms: int,
        known: KnownFigures | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self._view = view
        self._known = {} if known is None else known
        self._on_progress = on_progress
        self._readers = ReadersProgress(view, progress)
        self._bounds: dict[tuple[str, int], tuple[int, int]] = {}
        """Those of all queues, once they were read."""
        self._now = now_ms
        self._whole = log_bytes(self._view)
        self.next: NextClean = next_clean(self._view, now_ms)

    @cached_property
    def files(self) -> DiskFiles:
        """The bytes on the disk by kind, as of the first use."""
        return disk_files(self._view, self._bounds)

    @cached_property
    def _rows(self) -> dict[str, DiskUseRow]:
        """The row of each topic with queues."""
        known = list(self._figures_of_topics())  # before the files, which open queues once more
        rows = {topic: self._row(topic, figures) for topic, figures in known}
        for topic, size in self.files.queues.items():
            if topic not in rows:  # its queues never had a message
                none = DiskUseRow(
                    DiskKind.TOPIC, topic, None, None, 0, 0, size, 0.0, None, None, [], [], 0
                )
                rows[topic] = none
        return dict(sorted(rows.items()))

    def by_topic(self) -> Iterator[DiskUseRow]:
        """A row for each topic, then one for each other kind of bytes on the disk.

        The sum of ``disk_bytes`` is what ``du`` counts; of ``bytes``, what is in the log.
        """
        yield from self._rows.values()
        known = [row.bytes for row in self._rows.values() if row.bytes is not None]
        whole = len(known) == len(self._rows)
        for kind, size in self._rest():
            left = None
            if kind in {DiskKind.DELETED, DiskKind.UNKNOWN}:
                left = self._whole - sum(known) if whole else None
            else:
                left = 0
            share = left / self._whole if self._whole and left is not None else None
            yield DiskUseRow(
                kind, None, None, None, None, left, size, share, None, None, [], [], None
            )

    def by_kind(self) -> Iterator[DiskKindRow]:
        """A row for each kind of bytes; the sum of ``disk_bytes`` is what ``du`` counts."""
        known = [row for row in self._rows.values() if row.disk_bytes is not None]
        sizes = {
            DiskKind.MESSAGES: sum(row.bytes or 0 for row in known),
            DiskKind.QUEUE: sum(self.files.queues.get(row.topic or "", 0) for row in known),
            **dict(self._rest()),
        }
        total = self.files.total
        for kind in DiskKind:
            if kind in sizes:
                share = sizes[kind] / total if total else None
                files = self.files.files.get(kind)
                yield DiskKindRow(kind, sizes[kind], share, files, MEANINGS[kind])

    def _rest(self) -> Iterator[tuple[DiskKind, int]]:
        """What belongs to no topic: the rest of the log, then the other files."""
        rows = self._rows.values()
        left = self.files.log + sum(self.files.queues.values())
        left -= sum(row.disk_bytes for row in rows if row.disk_bytes is not None)
        unknown = any(row.disk_bytes is None for row in rows)
        yield (DiskKind.UNKNOWN if unknown else DiskKind.DELETED), left
        yield from self.files.others.items()

    def by_group(self) -> Iterator[DiskUseRow]:
        """A row for each group with retries or dead letters: their sum."""
        groups: dict[str, list[DiskUseRow]] = {}
        for topic, row in self._rows.items():
            for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
                if topic.startswith(prefix):
                    groups.setdefault(topic.removeprefix(prefix), []).append(row)
        for group, rows in sorted(groups.items()):
            yield self._added_up(rows)._replace(group=group)

    def by_day(self, zone: tzinfo | None, left_out: Warn = no_warning) -> Iterator[DiskUseRow]:
        """A row for each day, in the zone, in which messages were stored.

        ``left_out`` gets a sentence on messages that are in no row, as their time is damaged,
        cannot be read or is out of order.
        """
        topics = list(self._topics())
        left = sum(part.messages for _, parts in topics for part in parts)
        first = self._first_from(0, topics)
        while first is not None:
            day, until = day_bounds(first, zone)
            rows = [
                self._row(
                    topic,
                    self._of_parts(
                        topic, [self._within(topic, part, day, until) for part in parts]
                    ),
                )
                for topic, parts in topics
            ]
            row = self._added_up([row for row in rows if row.messages])
            if row.messages:
                left -= row.messages
                yield row._replace(from_timestamp=day, disk_bytes=None)
            first = self._first_from(until, topics)
        if left > 0:
            left_out(in_no_row(left))

    def _first_from(self, day: int, topics: list[tuple[str, list[Part]]]) -> int | None:
        """Store time of the first message from a day on; a damaged time may be far off."""
        found = []
        for topic, parts in topics:
            for part in parts:
                offset = self._at(topic, part, day)
                if offset < part.end:
                    found.append(self._view.store_timestamp(topic, part.queue_id, offset))
        return min((time for time in found if time and day <= time < LATEST), default=None)

    def sentences(self) -> Iterator[str]:
        """Sentences: the sum, the next deletions, why other files stay, when the disk is full."""
        reserved = sum(self.files.others.get(kind, 0) for kind in _RESERVED)
        least = "at least " if self.files.unreadable else ""
        yield (
            f"{least}{format_size(self.files.total)} on the disk, as 'du -s' counts; "
            f"{format_size(reserved)} of it reserved for the next messages"
        )
        if self.next.at is None:
            yield self._why_none()
        else:
            yield self._of_next(self.next.at)
        old = len(expired(self._view, self._now))
        if old and (self.next.at is None or self.next.at > self._now):
            yield f"'rmqctl store clean' would delete {old} now"
        if self.next.at is not None:
            yield from self._staying()
        yield from self._forecast()

    def _why_none(self) -> str:
        why = self.next.why_none
        if why is WhyNone.HOURS:
            return f"{why}: files are deleted by 'rmqctl store clean', or on a full disk"
        if why is WhyNone.AGE:
            hours = self._view.config.file_reserved_time_hours
            return f"{why} ({hours} h): 'rmqctl store clean --older-than AGE' deletes files"
        return f"nothing will be deleted: {why}"

    def _of_next(self, at: int) -> str:
        going, staying = self.next.files, self.next.staying
        size = self._view.config.mapped_file_size_commit_log
        when = "now" if at <= self._now else f"in {format_duration(at - self._now)}"
        return (
            f"the next clean deletes {len(going)} of {len(going) + len(staying)} log files "
            f"({format_size(len(going) * size)}), {when}"
        )

    def _staying(self) -> Iterator[str]:
        hours = self._view.config.file_reserved_time_hours
        waiting = sum(file.due_timestamp is not None for file in self.next.staying)
        if waiting:
            yield f"{waiting} stay because they were written within the last {hours} h"
        yield "the newest log file always stays"

    def _forecast(self) -> Iterator[str]:
        """When the disk is full at the rate of the last day, without deletions, if it is not."""
        view = self._view
        begin = max(view.log_min_offset(), self._day_ago())
        grown = view.log_max_offset() - begin
        used = used_ratio(view.root) * 100
        if grown <= 0:
            yield f"the disk is {used:.0f} % full; no message was stored within the last day"
            return
        space = os.statvfs(view.root)
        whole = (space.f_blocks - space.f_bfree + space.f_bavail) * space.f_frsize
        lasts = {limit: (limit - used) / 100 * whole / grown for limit in _WARNINGS}
        days = [f"{limit} % in {d:,.1f} d" for limit, d in lasts.items() if 0 < d < _FAR_DAYS]
        rest = f": {', '.join(days)} at that rate, if nothing is deleted" if days else ""
        yield f"the disk is {used:.0f} % full; {format_size(grown)} stored in the last day{rest}"

    def _day_ago(self) -> int:
        """The end of the log a day ago: the first record of the last day in any queue."""
        view = self._view
        places = []
        for topic, queue_id in view.queues():
            offset = view.offset_in_queue_by_time(
                topic, queue_id, self._now - _DAY_MS, Boundary.LOWER
            )
            unit = view.unit(topic, queue_id, offset)
            if unit is not None:
                places.append(unit[0])
        return min(places, default=view.log_max_offset())

    # -- topics and their parts ---------------------------------------------------------------

    def _queues(self) -> dict[str, list[int]]:
        queues: dict[str, list[int]] = {}
        for topic, queue_id in self._view.queues():
            queues.setdefault(topic, []).append(queue_id)
        return dict(sorted(queues.items()))

    def _topics(self) -> Iterator[tuple[str, list[Part]]]:
        for topic, queue_ids in self._queues().items():
            yield topic, TopicFigures(self._view, topic, queue_ids).parts

    def _figures_of_topics(self) -> Iterator[tuple[str, Figures]]:
        """Of topics whose queues are as before, what is known of them."""
        queues = self._queues()
        for gone in self._known.keys() - queues.keys():
            del self._known[gone]
        for done, (topic, bounds) in enumerate(bounds_of_topics(self._view, queues)):
            self._on_progress(done, len(queues))
            state = bounds, self.next.before
            before = self._known.get(topic)
            if before is None or before[0] != state or not before[1].is_whole:
                measured = [self._measured(topic, *queue) for queue in sorted(bounds.items())]
                before = self._known[topic] = state, self._figures(topic, measured)
            self._bounds.update({(topic, queue): bounds[queue] for queue in bounds})
            yield topic, before[1]

    def _measured(self, topic: str, queue_id: int, bounds: tuple[int, int]) -> _Measured:
        """All of a queue."""
        low, high = bounds
        units = few_units(self._view, topic, queue_id, low, bounds) if low < high else None
        if not units:
            size = self._bytes(topic, queue_id, low, high)
            return self._with_ends(topic, Part(queue_id, low, high, size))
        part = Part(queue_id, low, high, sum([size for _, size, _ in units]))
        first, last = (
            (place, self._view.record_timestamp(place, size))
            for place, size, _ in (units[0], units[-1])
        )
        return part, first, last

    def _with_ends(self, topic: str, part: Part) -> _Measured:
        return part, *(self._ends(topic, part) if part.messages else (_NOWHERE, _NOWHERE))

    def _figures(self, topic: str, measured: Iterable[_Measured]) -> Figures:
        light = topic.startswith(LMQ_PREFIX)
        parts: list[Part] = []
        freed: list[int | None] = []
        times: list[int | None] = []
        for part, first, last in measured:
            parts.append(part)
            freed.append(0 if light else self._freed(topic, part, first, last))
            if part.messages:
                times += first[1], last[1]
        return Figures(parts, freed, times)

    def _of_parts(self, topic: str, parts: Sequence[Part]) -> Figures:
        return self._figures(topic, [self._with_ends(topic, part) for part in parts])

    def _row(self, topic: str, figures: Figures) -> DiskUseRow:
        parts, freed, times = figures
        light = topic.startswith(LMQ_PREFIX)
        sizes = [0 if light else part.bytes for part in parts]
        ends = {part.queue_id: part.end for part in parts if part.messages}
        size = _sum(sizes)
        queue = self.files.queues.get(topic, 0)
        groups = self._readers.not_read({topic: ends})
        return DiskUseRow(
            DiskKind.TOPIC,
            topic,
            None,
            None,
            sum(part.messages for part in parts),
            size,
            None if size is None else size + queue,
            None if size is None or not self._whole else size / self._whole,
            of_all(min, times[::2]),
            of_all(max, times[1::2]),
            *groups,
            _sum(freed),
        )

    def _ends(self, topic: str, part: Part) -> tuple[Place, Place]:
        """Log offset and store time of the first and of the last message."""
        first, last = part.first, part.end - 1
        found = self._view.places(topic, part.queue_id, {first, last}, (first, part.end))
        return found.get(first, _NOWHERE), found.get(last, _NOWHERE)

    def _freed(self, topic: str, part: Part, first: Place, last: Place) -> int | None:
        if first[1] is not None and first[0] >= self.next.before:
            return 0
        if last[1] is not None and last[0] < self.next.before:
            return part.bytes
        queue, before = (topic, part.queue_id), self.next.before
        until = first_at(self._view, *queue, before, part.first, part.end)
        return self._bytes(*queue, part.first, until)

    def _bytes(self, topic: str, queue_id: int, first: int, end: int) -> int | None:
        if first >= end:
            return 0
        return unread_bytes(self._view, topic, queue_id, (first,), end)[first]

    def _within(self, topic: str, part: Part, start: int, until: int) -> Part:
        first, end = (self._at(topic, part, moment) for moment in (start, until))
        return Part(part.queue_id, first, end, self._bytes(topic, part.queue_id, first, end))

    def _at(self, topic: str, part: Part, timestamp: int) -> int:
        if not part.messages:
            return part.end
        found = self._view.offset_in_queue_by_time(topic, part.queue_id, timestamp, Boundary.LOWER)
        return min(max(found, part.first), part.end)

    def _added_up(self, rows: Iterable[DiskUseRow]) -> DiskUseRow:
        rows = list(rows)
        held = [row for row in rows if row.messages]
        size = _sum([row.bytes for row in rows])
        return DiskUseRow(
            None,
            None,
            None,
            None,
            sum(row.messages or 0 for row in rows),
            size,
            _sum([row.disk_bytes for row in rows]),
            None if size is None or not self._whole else size / self._whole,
            of_all(min, (row.oldest_timestamp for row in held)),
            of_all(max, (row.newest_timestamp for row in held)),
            sorted({group for row in rows for group in row.unread_by}),
            sorted({group for row in rows for group in row.unknown_for}),
            _sum([row.freed_next for row in rows]),
        )


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None
