"""The tasks of one batch of a stream: what was stored in some logs between two positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analytics.datasource.plan import log_part
from analytics.datasource.plan.log_now import LogNow
from analytics.datasource.plan.log_part import read_part
from analytics.datasource.plan.ranges import UNIT_BYTES, Range, store_ranges, tasks_of
from analytics.datasource.plan.stretches import Stretch, are_few, from_floors, stretch_tasks
from analytics.datasource.query.selection import EVERYTHING
from storage.readonly import StoreView

from .admission import Rest
from .positions import Position

if TYPE_CHECKING:
    from analytics.datasource.query.options import Options


class BatchPart(NamedTuple):
    """The messages that a batch has of a log: those of records in [first, end)."""

    log: LogNow
    before: Position
    first: int
    end: int

    def stretch(self) -> Stretch:
        """The same for a task."""
        return Stretch(self.log.ref, self.first, self.end, floors=self.before.floors)


def tasks_of_batch(parts: Sequence[BatchPart], options: Options) -> list[list[Range | Stretch]]:
    """Cut a batch into tasks.

    The records of small parts name the queues that have moved. For the others their queues are
    looked at, if they are few, or else by the tasks.
    """
    records = options.table == "messages"
    ranges: list[Range] = []
    left: list[BatchPart] = []
    room = log_part.MOST_BYTES
    for part in parts:
        size = part.end - part.first
        found = None
        if size <= room and not part.before.floors:
            room -= size
            found = _named_ranges(part, options, records=records)
        if found is None:
            left.append(part)
        else:
            ranges += found
    if left and are_few([part.log for part in left], options.topics, EVERYTHING):
        ranges += _looked_at(left, options, records=records)
        left = []
    tasks: list[list[Range | Stretch]] = [[*task] for task in tasks_of(ranges, options.task_size)]
    stretches = stretch_tasks(
        (part.stretch() for part in left),
        options.task_size,
        records=records,
        is_part=options.topics.selects_some,
    )
    tasks += [[*task] for task in stretches]
    return tasks


def _named_ranges(part: BatchPart, options: Options, *, records: bool) -> list[Range] | None:
    log = part.log
    begin = Rest(log, part.before, part.first).begin
    found = read_part(log, begin, part.end, options.topics)
    if found is None:
        return None
    return [
        Range(
            *log.ref,
            topic,
            queue_id,
            share.first,
            share.end,
            max(1, share.size // share.messages) if records else UNIT_BYTES,
            (part.first, part.end),
        )
        for (topic, queue_id), share in sorted(found.queues.items())
    ]


def _looked_at(parts: Iterable[BatchPart], options: Options, *, records: bool) -> list[Range]:
    ranges: list[Range] = []
    for log, before, first, end in parts:
        chosen = EVERYTHING.bounded("commitlog_offset", first, end)
        limits = from_floors(before.floors)
        with StoreView.open(log.ref.path) as view:
            found = store_ranges(view, log.ref, options.topics, chosen, limits, records=records)
            ranges += found
    return ranges
