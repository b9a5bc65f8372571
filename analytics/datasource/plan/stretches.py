"""Work that is planned without a look at the queues: parts of logs, whose tasks find the queues.

Over many queues a query is planned as stretches of the logs, some hundred bytes each, however many
queues there are. A task looks at the queues of its store and takes of each the messages whose
records begin in its stretch. Each message is in one stretch, as units are in the order of the log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.datasource.query.bounds import check_still_there, of_group
from analytics.datasource.query.selection import EVERYTHING, Selection
from analytics.report.stores import StoreRef
from storage.coordination.shared_state import SharedStateBounds
from storage.files.read_files import leads_to_folder
from storage.format.names import CONSUMEQUEUE
from storage.readonly import StoreView

from .losses import check_log
from .ranges import Range, given_limits, store_ranges

if TYPE_CHECKING:
    from analytics.datasource.query.bounds import Progress
    from analytics.datasource.query.options import Options, TaskSize
    from analytics.datasource.query.topics import TopicChoice

    from .log_now import LogNow
    from .ranges import QueueLimits

MOST_LOOKS: Final = 2_000
"""Queues that are looked at while a query is planned: half a second."""
_LOOK_BYTES: Final = 16 << 20
"""Bytes of records that take as long as a look at the queues of a usual store."""
_MOST_PIECES: Final = 64
"""Stretches of a store of which only some topics are read: most may have nothing of them."""
_LOG_PER_UNIT: Final = 8
"""Bytes of the log for one of its units, at least, as far as the size of tasks is concerned."""
_LONGEST_TOPIC: Final = 127

Floors = Mapping[str, Mapping[str, int]]
"""By topic and queue: the first message that is read."""


class Stretch(NamedTuple):
    """The messages of a store's selected queues whose records begin in [begin, end) of its log."""

    ref: StoreRef
    begin: int
    end: int
    floors: Floors | None = None
    """Of a stream; None in a batch, where the options say where queues begin and end."""
    progress: Progress | None = None
    """Of the group at whose progress a batch begins: of one moment for all of its tasks."""

    def ranges(self, view: StoreView, options: Options, chosen: Selection) -> Iterator[Range]:
        """The ranges of queues, as the store has them now."""
        limits: QueueLimits | None
        if self.floors is None:
            given = given_limits(options, progress=self.progress)
            limits = None if given is None else given(view, self.ref)
        else:
            limits = from_floors(self.floors)
        within = chosen.bounded("commitlog_offset", self.begin, self.end)
        yield from store_ranges(view, self.ref, options.topics, within, limits, records=False)


class Work(NamedTuple):
    """A range or a stretch, with what its task needs to know to find the messages."""

    item: Range | Stretch
    options: Options
    chosen: Selection = EVERYTHING

    @property
    def broker(self) -> str:
        """The name of the store's broker."""
        item = self.item
        return item.broker if isinstance(item, Range) else item.ref.broker

    @property
    def path(self) -> str:
        """The store's folder."""
        return self.item.path if isinstance(self.item, Range) else self.item.ref.path

    @property
    def topic(self) -> str:
        """The topic, or a name that is no shorter than most."""
        return self.item.topic if isinstance(self.item, Range) else "T" * _LONGEST_TOPIC

    @property
    def named(self) -> Range | None:
        """The range, if records of the log have named it."""
        return self.item.named if isinstance(self.item, Range) else None

    def ranges(self, view: StoreView) -> Iterator[Range]:
        """The ranges of queues, as the store has them now. Raises DataLossError for a part of the
        log that is gone, unless that is to be left out."""
        item = self.item
        if isinstance(item, Range):
            found = list(item.ranges(view))
            part = item.places
        else:
            found = list(item.ranges(view, self.options, self.chosen))
            part = item.begin, item.end
        if part is not None:  # after the look: a file may be deleted at any time
            fail = self.options.fail_on_data_loss
            check_log(view, self.path, *part, fail=fail)
        yield from found


def from_floors(floors: Floors) -> QueueLimits:
    """The bounds of queues that a stream begins to read at some message."""

    def of_queue(topic: str, queue_id: int, _low: int, high: int) -> tuple[int, int]:
        return floors.get(topic, {}).get(str(queue_id), 0), high

    return of_queue


def whole_logs(logs: Iterable[LogNow], options: Options, chosen: Selection) -> Iterator[Stretch]:
    """The part of each log that a batch reads. Raises DataLossError if its beginning was deleted,
    unless that is to be left out, and CorruptFileError for the progress of a group."""
    low, high = chosen.commitlog_offset
    start, stop = options.starting.log_offset, options.ending.log_offset
    for log in logs:
        if chosen.wants("broker", log.ref.broker):
            if options.fail_on_data_loss:
                for bound in (options.starting, options.ending):
                    if bound.log_offset is not None:
                        check_still_there(log.ref.broker, bound.option, bound.log_offset, log.begin)
            begin = max(log.begin, low, start or 0)
            end = min(log.end, high, log.end if stop is None else stop)
            if begin < end:
                yield Stretch(log.ref, begin, end, progress=_progress(log.ref, options))


def _progress(ref: StoreRef, options: Options) -> Progress | None:
    group = options.starting.group
    if group is None:
        return None
    with StoreView.open(ref.path) as view:
        return of_group(view, group)


def stretch_tasks(
    stretches: Iterable[Stretch], size: TaskSize, *, records: bool, is_part: bool
) -> list[list[Stretch]]:
    """Cut and join stretches to tasks of about the same number of bytes.

    ``records``: these are read, not only units. ``is_part``: only some topics are.
    """
    stretches = list(stretches)
    each = size.most_bytes * (1 if records else _LOG_PER_UNIT)
    if size.least is not None:
        total = sum(stretch.end - stretch.begin for stretch in stretches)
        each = max(1, min(each, -(-total // size.least)))
    tasks: list[list[Stretch]] = []
    room = 0
    for whole in stretches:
        length = whole.end - whole.begin
        count = -(-length // each)
        if is_part:
            count = min(count, max(_MOST_PIECES, size.least or 0))
        edges = [whole.begin + length * number // count for number in range(count + 1)]
        for begin, end in pairwise(edges):
            if room <= 0:
                tasks.append([])
                room = each
            tasks[-1].append(whole._replace(begin=begin, end=end))
            room -= end - begin + _LOOK_BYTES
    return tasks


def are_few(
    logs: Sequence[LogNow], topics: TopicChoice, chosen: Selection, most: int | None = None
) -> bool:
    """Whether the queues of these stores that must be looked at are few.

    Where the shared state names the queues and their ends, they are the selected ones; elsewhere
    all, as their files have to show where the log ends.
    """
    left = MOST_LOOKS if most is None else most
    for log in logs:
        if chosen.wants("broker", log.ref.broker):
            for _ in _looked_at(log, topics, chosen):
                left -= 1
                if left < 0:
                    return False
    return True


def _looked_at(
    log: LogNow, topics: TopicChoice, chosen: Selection
) -> Iterator[tuple[str, int] | None]:
    root = Path(log.ref.path)
    size = log.config.mapped_file_size_commit_log
    shared = SharedStateBounds.open(root, log_file_size=size)
    if shared is None:
        yield from _queue_folders(str(root / CONSUMEQUEUE))
        return
    try:
        for topic, queue_id in shared.queues():
            if (
                topics.wants(log.ref.broker, topic, queue_id)
                and chosen.wants("topic", topic)
                and chosen.wants("queue_id", queue_id)
            ):
                yield topic, queue_id
    finally:
        shared.close()


def _queue_folders(path: str) -> Iterator[None]:
    """One item for each folder of a queue."""
    for topic in _folders(path):
        for _ in _folders(topic):
            yield None


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if leads_to_folder(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []
