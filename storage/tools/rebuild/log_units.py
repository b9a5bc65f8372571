"""All units of a log, queue by queue, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.configs.deleted_topics import DeletedTopics
from storage.log.walk import LogWalk, StretchKind
from storage.record_batch.queue_numbers import QueueNames
from storage.record_batch.record_batch import read_block

from .units import DelayTimes, UnitColumns, units_of

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.record_batch.record_batch import RecordBatch

_TOGETHER: Final = 1 << 18
"""Units that are sorted by queue at once: with thousands of queues each still gets some."""
Progress = Callable[[int, int], None]


class LogRuns:
    """The records of a log, in runs of some thousand, and the parts of it that are lost."""

    def __init__(
        self, log: ReadOnlyFiles, log_end: int, names: QueueNames, progress: Progress | None
    ):
        self._log = log
        self._end = log_end
        self._names = names
        self._progress = progress
        self.lost: list[tuple[int, int]] = []
        """Stretches without a recognisable record, as far as the walk has come."""

    def __iter__(self) -> Iterator[tuple[RecordBatch, ReadMap]]:
        """Each run with its file."""
        log = self._log
        files = log.relist()
        position = begin = files[0] if files else self._end
        while position < self._end:
            walk = LogWalk(log, position, limit=self._end, check_crc=False, search_all=True)
            while (stretch := walk.next()) is not None:
                first = stretch.start - stretch.start % log.file_size
                file = log.at(first)
                if stretch.kind in (StretchKind.RECORDS, StretchKind.DAMAGED) and file is not None:
                    start, topics = stretch.start - first, self._names.topics
                    yield read_block(file.view, first, start, stretch.sizes, topics), file
                elif stretch.kind is StretchKind.LOST:
                    self._lose(stretch.start, stretch.start + stretch.sizes[0])
                if self._progress is not None:
                    self._progress(walk.position - begin, self._end - begin)
            position = walk.position
            if position < self._end:  # no record follows that the walk could go on with
                end = position - position % log.file_size + log.file_size
                self._lose(position, min(self._end, end))
                position = min(self._end, end)

    def _lose(self, start: int, end: int) -> None:
        if self.lost and self.lost[-1][1] == start:
            start = self.lost.pop()[0]
        self.lost.append((start, end))


def units_by_queue(
    runs: LogRuns,
    names: QueueNames,
    delays: DelayTimes,
    deleted: DeletedTopics,
    wanted: Callable[[str, int], bool],
) -> Iterator[tuple[int, UnitColumns]]:
    """Give the units of wanted queues, those of one queue in log order; a queue comes often."""
    parts: list[UnitColumns] = []
    count = 0
    is_wanted = np.zeros(0, np.bool_)
    deleted_to = np.zeros(0, np.int64)
    for block, file in runs:
        units = units_of(block, file, names, delays)
        if len(is_wanted) < len(names.keys):
            new = names.keys[len(is_wanted) :]
            is_wanted = np.append(is_wanted, [wanted(*key) for key in new])
            deleted_to = np.append(deleted_to, [deleted.get(topic, 0) for topic, _ in new])
        good = is_wanted[units.queue] & (units.offset >= deleted_to[units.queue])
        if not good.all():
            units = units.rows(np.flatnonzero(good))
        parts.append(units)
        count += len(units.queue)
        if count >= _TOGETHER:
            yield from _divide(parts)
            parts, count = [], 0
    if parts:
        yield from _divide(parts)


def _divide(parts: list[UnitColumns]) -> Iterator[tuple[int, UnitColumns]]:
    units = UnitColumns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    if not len(units.queue):
        return
    if (units.queue != units.queue[0]).any():
        units = units.rows(np.argsort(units.queue, kind="stable"))
    edges = np.flatnonzero(np.diff(units.queue, prepend=-1, append=-1)).tolist()
    for start, end in pairwise(edges):
        yield int(units.queue[start]), UnitColumns(*(column[start:end] for column in units))
