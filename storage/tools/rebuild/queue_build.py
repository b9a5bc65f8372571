"""Rebuilding one queue: units before its first record, between records, and after the last.

Information that the log lacks comes from the old files where that is sane:

* units of messages that the log has deleted, before the first one that it still has;
* the address into ``consumequeue_ext`` of a unit that is right otherwise;
* the end of a queue whose messages are all deleted, and its units, except for wrong ones;
* the end of a queue whose last messages, or all, are lost to damage in the log, and their units;
* where its first file begins, if that is all that is known of it.

So no new message gets an offset that consumers have passed. Else units without a record are fillers
(ConsumeQueue.fillPreBlank), and a queue begins with the file that holds its first record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from storage.format.cq_unit import (
    CQ_STORE_UNIT_SIZE,
    MAX_EXT_ADDR,
    MOST_LOST,
    PRE_BLANK,
    PRE_BLANK_SIZE,
)
from storage.queue.record_order import OffsetRun, QueueOrder
from storage.record_batch.arrays import Longs

from .units import UnitColumns

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles
    from storage.queue.ext import ConsumeQueueExt

UNIT: Final = np.dtype([("offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
_BLOCK: Final = 1 << 16
Units = NDArray[Any]
Mask = NDArray[np.bool_]


def pieces_of(numbers: Longs, units: Units, store_timestamps: Longs) -> Iterator[OffsetRun]:
    """The units at some queue offsets, as many together as are consecutive."""
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    for start, end in pairwise([0, *breaks.tolist(), len(numbers)]):
        yield OffsetRun(
            int(numbers[start]), units[start:end].tobytes(), int(store_timestamps[end - 1])
        )


class UnitSink(Protocol):
    """A target of the units of a queue, one block after the other."""

    def put(self, first: int, units: Units, store_timestamp: int) -> None:
        """Take units from queue offset ``first`` on; the store time (ms) of the last, 0 = none."""
        ...


class OldUnits:
    """The units in a queue's existing files."""

    def __init__(self, row: ReadOnlyFiles | None) -> None:
        self._row = row
        self.per_file = row.file_size // CQ_STORE_UNIT_SIZE if row is not None else 1
        self.first = 0
        """Queue offset of the beginning of the first file."""
        self.files: list[int] = row.relist() if row is not None else []
        if self.files:
            self.first = self.files[0] // CQ_STORE_UNIT_SIZE

    def read(self, first: int, count: int) -> Units:
        """Up to ``count`` units from a queue offset on, none from the next file.

        None where there is no file, or it is too short.
        """
        within = first % self.per_file
        file = None
        if self._row is not None:
            file = self._row.at((first - within) * CQ_STORE_UNIT_SIZE)
        if file is None:
            return np.zeros(0, UNIT)
        end = min(within + count, file.length // CQ_STORE_UNIT_SIZE)
        if end <= within:
            return np.zeros(0, UNIT)
        return np.frombuffer(file.view, UNIT, end - within, within * CQ_STORE_UNIT_SIZE)

    def deleted_until(self, log_min: int, before: int | None) -> int:
        """Queue offset after the units of deleted messages; of a sane queue only.

        Sane: from its first unit on all are present and ascend in the log.
        """
        number, last = self.first, 0
        while self.files and (before is None or number < before):
            count = _BLOCK if before is None else min(_BLOCK, before - number)
            units = self.read(number, count)
            offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
            blank = (sizes == PRE_BLANK_SIZE) & (offsets == 0)
            if number != self.first:
                blank[:] = False
            elif len(blank) and not blank.all():
                blank[int(blank.argmin()) :] = False  # leading ones
            ends = np.where(blank, 0, offsets + sizes)
            starts_at = np.append(last, ends[:-1])
            good = blank | ((sizes > 0) & (offsets >= starts_at) & (ends <= log_min))
            if not len(good):
                break
            whole = len(good) if good.all() else int(good.argmin())
            number += whole
            if whole < len(good):
                break
            last = int(ends[-1])
        return number

    def end_of_deleted(self, log_min: int) -> int:
        """Queue offset after the last unit of a deleted message; ``first`` if there is none."""
        for file in reversed(self.files):
            number = file // CQ_STORE_UNIT_SIZE
            deleted = np.flatnonzero(_are_deleted(self.read(number, self.per_file), log_min))
            if len(deleted):
                return number + int(deleted[-1]) + 1
        return self.first

    def end_of(self, start: int, are_meant: Callable[[Units], Mask]) -> int:
        """Queue offset after the last meant unit from ``start`` on; ``start`` if there is none."""
        end = start
        for file in self.files:
            first = file // CQ_STORE_UNIT_SIZE
            if first + self.per_file <= start:
                continue
            number = max(start, first)
            meant = np.flatnonzero(are_meant(self.read(number, self.per_file)))
            if len(meant):
                if number + int(meant[0]) - end > MOST_LOST:
                    break  # damaged units, or a file of another queue
                end = number + int(meant[-1]) + 1
        return end


def _are_deleted(units: Units, log_min: int) -> Mask:
    """Which units point before the log's first byte."""
    offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
    inside: Mask = (sizes > 0) & (offsets >= 0) & (offsets <= log_min - sizes)
    inside &= sizes != PRE_BLANK_SIZE
    return inside


class QueueBuild:
    """Takes the units of one queue in log order and passes the content of its files to a sink."""

    def __init__(
        self,
        topic: str,
        queue_id: int,
        old: OldUnits,
        sink: UnitSink,
        log_min: int,
        ext: ConsumeQueueExt | None,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self._old = old
        self._sink = sink
        self._log_min = log_min
        self._ext = ext
        self._order = QueueOrder()
        self.records = 0
        """Units that records of the log have."""
        self.fillers = 0
        """Units in the place of messages that the log has lost."""
        self.log_from: int | None = None
        """Commit log offset of the first record; None without any."""
        self.log_to: int | None = None
        """Commit log offset after the last one."""
        self.kept_files: list[int] = []
        """Files before the first record's that stay as they are."""
        self.first: int | None = None
        """Queue offset of the beginning of the first new file; None if there is nothing."""
        self.next_offset = 0
        """Queue offset after the last unit."""

    def take(self, columns: UnitColumns) -> None:
        """Take the next records of the queue."""
        units = np.empty(len(columns.offset), UNIT)
        units["offset"] = columns.offset
        units["size"] = columns.size
        units["tags_code"] = columns.tags_code
        for taken in pieces_of(columns.queue_offset, units, columns.store_timestamp):
            for piece in self._order.take(taken):
                self._put(piece)

    def finish(self, lost: Sequence[tuple[int, int]]) -> None:
        """No more records come. ``lost`` are the damaged parts of the log, ascending."""
        for piece in self._order.rest():
            self._put(piece)
        if self.first is None:
            self._begin(None)
        self._keep_lost_end(lost)
        if self.first is None and self.next_offset:
            self.first = self.next_offset
            self._sink.put(self.first, np.zeros(1, UNIT), 0)  # the file alone tells the end

    def _put(self, piece: OffsetRun) -> None:
        if self.first is None:
            self._begin(piece.first)
        gap = piece.first - self.next_offset
        if gap:
            self._sink.put(self.next_offset, np.frombuffer(PRE_BLANK * gap, UNIT), 0)
            self.fillers += gap
        units = self._with_addresses(piece)
        self._sink.put(piece.first, units, piece.store_timestamp)
        self.records += len(units)
        self.next_offset = piece.end
        if self.log_from is None:
            self.log_from = int(units["offset"][0])
        self.log_to = int(units["offset"][-1]) + int(units["size"][-1])

    def _begin(self, first: int | None) -> None:
        """Put the units before the first record, or all if there is none."""
        old, per_file = self._old, self._old.per_file
        deleted = old.deleted_until(self._log_min, first)
        if first is None:
            first = old.end_of_deleted(self._log_min)
            if first == old.first:
                self.next_offset = first
                return
            if first != deleted:
                self.next_offset = old.first
                self.fillers += self._put_old(first, lambda old: _are_deleted(old, self._log_min))
                return
        begin = first - first % per_file
        if deleted == first and old.first <= begin:
            self.kept_files = [
                offset for offset in old.files if offset < begin * CQ_STORE_UNIT_SIZE
            ]
            head = old.read(begin, first - begin)
        else:
            head = np.frombuffer(PRE_BLANK * (first - begin), UNIT)
        self.first = begin
        if len(head):
            self._sink.put(begin, head, 0)
        self.next_offset = first

    def _put_old(self, end: int, are_good: Callable[[Units], Mask]) -> int:
        """Put the good ones of the old units up to ``end``, fillers for the others; gives how many.

        The end of a queue must stay where it is, though the log has no record of its last messages:
        otherwise new messages would get offsets that consumers have passed.
        """
        fillers = 0
        if self.first is None:
            self.first = self.next_offset
        while self.next_offset < end:
            rest = self._old.per_file - self.next_offset % self._old.per_file
            count = min(_BLOCK, end - self.next_offset, rest)
            units = np.frombuffer(PRE_BLANK * count, UNIT).copy()
            old = self._old.read(self.next_offset, count)
            good = are_good(old)
            units[: len(old)][good] = old[good]
            self._sink.put(self.next_offset, units, 0)
            fillers += count - int(good.sum())
            self.next_offset += count
        return fillers

    def _with_addresses(self, piece: OffsetRun) -> Units:
        """Units with the addresses into ConsumeQueueExt of the old ones, where right."""
        if self._ext is None:
            return np.frombuffer(piece.units, UNIT)
        units = np.frombuffer(piece.units, UNIT).copy()
        done = 0
        while done < len(units):
            old = self._old.read(piece.first + done, len(units) - done)
            if not len(old):
                done += self._old.per_file - (piece.first + done) % self._old.per_file
                continue
            new = units[done : done + len(old)]
            same = (new["offset"] == old["offset"]) & (new["size"] == old["size"])
            for row in np.flatnonzero(same & (old["tags_code"] <= MAX_EXT_ADDR)).tolist():
                address = int(old["tags_code"][row])
                code = self._ext.tags_code(self.topic, self.queue_id, address)
                if code == int(new["tags_code"][row]):
                    new["tags_code"][row] = address
            done += len(old)
        return units

    def _keep_lost_end(self, lost: Sequence[tuple[int, int]]) -> None:
        """Keep the end of old units after the last record's that point into damaged parts of the
        log."""
        if not lost:
            return
        starts = np.array([start for start, _ in lost], np.int64)
        ends = np.array([end for _, end in lost], np.int64)

        def are_lost(units: Units) -> Mask:
            offsets, sizes = units["offset"].astype(np.int64), units["size"].astype(np.int64)
            part = np.searchsorted(starts, offsets, "right") - 1
            inside: Mask = (sizes > 0) & (part >= 0) & (offsets + sizes <= ends[part])
            return inside

        start = self.next_offset
        end = self._old.end_of(start, are_lost)
        if end > start:
            self._put_old(end, are_lost)
            self.fillers += end - start
