"""One consume queue for reading: its bounds, its units."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native
from storage.errors import IncompleteStoreWarning
from storage.files.read_files import FEW_BYTES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE, PRE_BLANK
from storage.log.record_reader import UNUSUAL, QueueKey
from storage.results import GetMessageResult, GetMessageStatus

from .file_times import FileTimes
from .tail_reader import TailReader

_new: Final = tuple.__new__  # what a NamedTuple's own __new__ does, in half the time

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.coordination.java_start import Steady
    from storage.coordination.shared_state import SharedState
    from storage.files.read_files import ReadMap, ReadOnlyFiles
    from storage.read.bounds import Bounds
    from storage.read.scan_bounds import ScanBounds

    from .first_read import KeptUnits

_FOUND: Final = GetMessageStatus.FOUND
pull_at_once: Final = native.form("pull_at_once", native.nothing)
nearest_at_once: Final = native.form("nearest_at_once", native.nothing)
QueuePlace = tuple[int, int, int, int, int, int, int, dict[int, "ReadMap"], dict[int, "ReadMap"]]
"""Generation of files, word of the queue's end in the shared state, min offset, queue offset of the
only file (-1: there are more), units of a file; the log's first offset and size of a file; the maps
of the queue and of the log."""
_BLOCK_UNITS: Final = 1024
_FILLER: Final = CQ_STORE_UNIT.unpack(PRE_BLANK)
_JUST_NOW: Final = 1 << 62


class QueueBounds(NamedTuple):
    """A queue's offsets at one moment: messages are at ``min_offset`` .. ``max_offset`` - 1."""

    min_offset: int
    max_offset: int


class QueueReader:
    """Reads the units of one queue. Thread-safe.

    ``scan`` is given where units may have been rebuilt in memory instead of lying in the files,
    ``shared`` where the reader is a writer of the store: its end is followed then.
    """

    __slots__ = (
        "_bounds",
        "_file_times",
        "_first_message",
        "_kept",
        "_kept_at",
        "_row",
        "_scan",
        "_shared",
        "_units_per_file",
        "_warned",
        "followed",
        "key",
        "place",
    )

    def __init__(
        self,
        key: QueueKey,
        row: ReadOnlyFiles,
        bounds: Bounds,
        scan: ScanBounds | None,
        shared: SharedState | None = None,
    ) -> None:
        self.key = key
        self._row = row
        self._file_times: FileTimes | None = None
        self._bounds = bounds
        self._scan = scan
        self._shared = shared
        self.followed: TailReader | None = None
        """Reads a few messages at the end; None before the first such read."""
        self.place: QueuePlace | None = None
        """What reads in one step need to know; None before the first one, see
        :meth:`note_place`."""
        self._units_per_file = row.file_size // CQ_STORE_UNIT_SIZE
        self._kept: tuple[KeptUnits, ...] = ()
        self._kept_at = -1
        # (files generation, log min, min offset): the queue's begin after retention
        self._first_message: tuple[int, int, int] | None = None
        self._warned = False

    @property
    def units_per_file(self) -> int:
        """Units that one file holds."""
        return self._units_per_file

    def bounds(self, log_min: int, generation: int) -> QueueBounds:
        """Min and max offset. ``log_min`` is the log's first offset, ``generation`` the bounds'."""
        key = self.key
        max_offset = self._bounds.next_offset(key.topic, key.queue_id)
        known = self._first_message
        if known is None or known[:2] != (generation, log_min) or known[2] > max_offset:
            if generation != self._kept_at:
                self._kept = ()
            # Before the first time its end was compared with its files, which were listed for that.
            files = self._row.offsets() if known is None else self._row.relist()
            min_offset = self._find_first(files, log_min, max_offset)
            if min_offset < max_offset:  # an empty queue may get its first message any time
                self._first_message = (generation, log_min, min_offset)
            return QueueBounds(min_offset, max_offset)
        return _new(QueueBounds, (known[2], max_offset))

    def keep(self, kept: tuple[KeptUnits, ...], generation: int) -> None:
        """Read these units from memory, until files were deleted since this ``generation`` of the
        bounds: then the queue may be another one of the same name."""
        self._kept, self._kept_at = kept, generation

    def list_as(self, files: Sequence[int]) -> None:
        """See :meth:`storage.files.read_files.ReadOnlyFiles.list_as`."""
        self._row.list_as(files)

    def read_at_once(
        self, steady: Steady, offset: int, max_msg_nums: int, config: StoreConfig
    ) -> GetMessageResult | None:
        """Give what MessageReader.get_message would without a filter, if the store is as ``steady``
        says, the messages lie before the end in mapped files, and all are common ones; else
        None."""
        key, most = self.key, config.max_transfer_count_in_memory
        found = pull_at_once(
            *(steady, self.place, key.topic, key.topic_field, key.queue_id, offset),
            max_msg_nums if max_msg_nums < most else most,
            *(config.max_transfer_bytes_in_memory, UNUSUAL, _FOUND),
        )
        return None if found is None else _new(GetMessageResult, found)

    def nearest_at_once(self, steady: Steady, timestamp: int) -> int | None:
        """Give what TimeSearch.offset would for NEAREST49, if the store is as ``steady`` says and
        the queue has one file, which is mapped; else None."""
        found: int | None = nearest_at_once(steady, self.place, timestamp)
        return found

    def note_place(
        self,
        shared: SharedState,
        log: ReadOnlyFiles,
        generation: int,
        log_min: int,
        bounds: QueueBounds,
    ) -> None:
        """Make :attr:`place` hold for these bounds, which were read in this generation of files.

        Compiled code reads messages and searches for times by it, as long as no file was deleted
        (storage/native/reading/steady.c).
        """
        slot = shared.slot(self.key.topic, self.key.queue_id)
        files = self._row.offsets()
        if slot is None or not files or not log.offsets() or bounds.min_offset >= bounds.max_offset:
            return
        self.place = (
            generation,
            shared.slot_word(slot),
            bounds.min_offset,
            files[0] // CQ_STORE_UNIT_SIZE if len(files) == 1 else -1,
            self._units_per_file,
            log_min,
            log.file_size,
            self._row.opened,
            log.opened,
        )

    def follow(
        self, bounds: QueueBounds, log: ReadOnlyFiles, max_count: int, max_bytes: int
    ) -> None:
        """Make :attr:`followed` read what comes after the end; the two are its limits."""
        shared, known = self._shared, self.followed
        if shared is not None and (known is None or not known.holds(bounds.max_offset)):
            slot = shared.slot(self.key.topic, self.key.queue_id)
            if slot is not None:
                limits = (bounds.min_offset, max_count, max_bytes)
                self.followed = TailReader(self.key, self._row, log, shared, slot, *limits)

    def units(self, queue_offset: int, count: int) -> bytes | None:
        """Up to ``count`` units from ``queue_offset`` on, none from the next file; fewer may come.

        None if the file that holds the first one is missing (ConsumeQueue.getIndexBuffer).
        ``queue_offset`` lies within the bounds, and ``queue_offset + count`` at most at the end.
        """
        view = self.unit_view(queue_offset, count)
        return None if view is None else bytes(view)

    def unit_view(self, queue_offset: int, count: int) -> memoryview | None:
        """The same as :meth:`units` without copying what lies in a file."""
        for first, kept_end, kept in self._kept:
            if first <= queue_offset and queue_offset + count <= kept_end:
                at = (queue_offset - first) * CQ_STORE_UNIT_SIZE
                return kept[at : at + count * CQ_STORE_UNIT_SIZE] or None
        scan = self._scan
        if scan is not None:
            key = self.key
            in_files = scan.file_units(key.topic, key.queue_id)
            if queue_offset >= in_files:
                data = scan.rebuilt.read(key.topic, key.queue_id, queue_offset, count)
                return memoryview(data) if data else None
            count = min(count, in_files - queue_offset)
        position = queue_offset * CQ_STORE_UNIT_SIZE
        within = position % self._row.file_size
        end = min(within + count * CQ_STORE_UNIT_SIZE, self._row.file_size)
        if end - within <= FEW_BYTES:
            view = self._row.peek(position, end - within)
        else:
            file = self._row.at(position - within)
            if file is None:
                return None
            view = file.view[within:end]
        short = len(view) % CQ_STORE_UNIT_SIZE
        if short:  # the file was cut inside a unit
            view = view[:-short]
        return view or None

    def segment_view(self, first: int, end: int) -> memoryview | None:
        """Units of one file, from ``first`` to before ``end``, without copying.

        None if some of them are missing, or do not lie in a file.
        """
        scan, key = self._scan, self.key
        if scan is not None and end > scan.file_units(key.topic, key.queue_id):
            return None
        view = self.unit_view(first, end - first)
        whole = view is not None and len(view) == (end - first) * CQ_STORE_UNIT_SIZE
        return view if whole else None

    def unit(self, queue_offset: int) -> tuple[int, int, int] | None:
        """One unit: commit log offset, size and tags code; None if its file is missing."""
        data = self.unit_view(queue_offset, 1)
        if data is None:
            return None
        unit: tuple[int, int, int] = CQ_STORE_UNIT.unpack(data)
        return unit

    def after_gap(self, queue_offset: int) -> int:
        """Where to go on when the units at ``queue_offset`` are missing: the next existing file, or
        the next rebuilt unit (ConsumeQueue.rollNextFile, which goes from number to number, for
        hours where the last file's name is far ahead of the others)."""
        scan = self._scan
        if scan is not None:
            key = self.key
            if queue_offset >= scan.file_units(key.topic, key.queue_id):
                following = scan.rebuilt.next_run(key.topic, key.queue_id, queue_offset)
                if following is not None:
                    return following
        rolled = queue_offset + self._units_per_file - queue_offset % self._units_per_file
        files = self._row.offsets()
        following = bisect_left(files, rolled * CQ_STORE_UNIT_SIZE)
        return files[following] // CQ_STORE_UNIT_SIZE if following < len(files) else rolled

    def segment(self, timestamp: int, max_offset: int) -> tuple[int, int] | None:
        """First and end offset of the units below ``max_offset`` that the time search reads: those
        of one file (see FileTimes.segment), None if there are none.

        Rebuilt units count as part of the file that lacks them, just written. Where all units lie
        in one file, its time is not needed.
        """
        scan, key = self._scan, self.key
        known = self._row.offsets()
        if scan is None and len(known) == 1:
            first = known[0] // CQ_STORE_UNIT_SIZE
            if max_offset <= first + self._units_per_file:
                return (first, max_offset) if first < max_offset else None
        rebuilt = None if scan is None else scan.rebuilt.first_offset(key.topic, key.queue_id)
        if rebuilt is None:
            return self._times().segment(timestamp, max_offset, deletions_reported=scan is None)
        # Files that begin after the first rebuilt unit hold none that count. The file that would
        # contain that unit is searched with it, whatever the file's time is.
        files = [file for file in self._times().now() if file[0] < rebuilt]
        shared = bool(files) and rebuilt < files[-1][0] + self._units_per_file
        files.append((files.pop()[0] if shared else rebuilt, _JUST_NOW))
        begun = [(first, modified) for first, modified in files if first < max_offset]
        for (first, modified), (following, _) in pairwise(begun):
            if modified >= timestamp:
                return first, min(following, max_offset)
        return (begun[-1][0], max_offset) if begun else None

    def _times(self) -> FileTimes:
        times = self._file_times
        if times is None:
            times = self._file_times = FileTimes(self._row)
        return times

    # -- min offset ---------------------------------------------------------------------------

    def _find_first(self, files: Sequence[int], log_min: int, max_offset: int) -> int:
        """First unit whose record is still in the log; ``max_offset`` if there is none.

        ConsumeQueue.correctMinOffset reads the first file only and then keeps the old value;
        like 5.x this gives an empty range when every message has been deleted.
        """
        offset = files[0] // CQ_STORE_UNIT_SIZE if files else max_offset
        scan = self._scan
        if scan is not None:
            rebuilt = scan.rebuilt.first_offset(self.key.topic, self.key.queue_id)
            if rebuilt is not None:
                offset = min(offset, rebuilt)
        if not files and offset > 0:
            self._warn_of_lost_files(offset)
        count = 1  # as a rule the first is still in the log
        while offset < max_offset:
            data = self.unit_view(offset, min(count, max_offset - offset))
            if data is None:
                offset = self.after_gap(offset)
                continue
            if not _is_expired(data, 0, log_min):
                return offset
            if not _is_expired(data, len(data) - CQ_STORE_UNIT_SIZE, log_min):
                return offset + _first_kept(data, log_min)
            offset += len(data) // CQ_STORE_UNIT_SIZE
            count = _BLOCK_UNITS
        return max_offset

    def _warn_of_lost_files(self, first: int) -> None:
        """Warn once of a queue whose folder has no file: retention keeps the last file, and the
        deletion of a topic takes the folder."""
        if self._warned or not Path(self._row.path(0)).parent.is_dir():
            return
        key = self.key
        if self._bounds.next_offset(key.topic, key.queue_id) < first:
            return  # its topic is being deleted
        self._warned = True
        text = (
            f"queue {key.queue_id} of {key.topic} has no file: its messages before offset {first} "
            "are not shown; 'rmqctl store rebuild queue' makes its files again"
        )
        warnings.warn(text, IncompleteStoreWarning, stacklevel=2)


def _is_expired(data: memoryview, position: int, log_min: int) -> bool:
    """Whether a unit's record has been deleted, or the unit is a filler.

    Java takes a damaged unit with a negative offset for deleted, too; here it is unreadable.
    """
    unit = CQ_STORE_UNIT.unpack_from(data, position)
    return bool(0 <= unit[0] < log_min or unit == _FILLER)


def _first_kept(data: memoryview, log_min: int) -> int:
    for number, unit in enumerate(CQ_STORE_UNIT.iter_unpack(data)):
        if not 0 <= unit[0] < log_min and unit != _FILLER:
            return number
    return len(data) // CQ_STORE_UNIT_SIZE
