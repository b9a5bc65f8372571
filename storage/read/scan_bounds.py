"""Bounds of a store without a shared state: found in its files, as recovery would.

The search for the log's end begins at the newest unit whose record is whole, so a healthy store of
any size is opened by reading the last unit of every queue and a few records. Where a store was not
closed cleanly (``abort`` is there: its broker runs, or died), the units from the checkpoint on are
compared with the log: they must tile it without gaps, and a queue counts up to its first hole, as a
power loss leaves them (``unit_holes``). Records in a gap get their units back in memory
(``rebuilt``); if these are too many, RecoveryNeededError is raised. Units beyond the log's end are
not shown; if they refer to log files that are missing, there is an IncompleteStoreWarning.

Later calls read only what has been added since.
"""

from __future__ import annotations

import heapq
import os
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.configs.deleted_topics import deleted_topics_for_reading
from storage.coordination.lock_owners import is_java_running
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.errors import IncompleteStoreWarning, RecoveryNeededError
from storage.files.bounded import read_first
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.delay import parse_delay_levels
from storage.format.dispatch import read_request
from storage.format.message import LMQ_PREFIX
from storage.format.names import ABORT, CHECKPOINT, LOCK, OURS
from storage.format.record import CheckKind, RecordError, check_record, read_head
from storage.index.reader import IndexReader
from storage.log.record_reader import QueueKey, names_queue
from storage.log.walk import LogWalk, StretchKind
from storage.queue.coverage import gaps_between_units
from storage.queue.unit_holes import cut_at_hole
from storage.queue.units_from_log import RebuiltUnits
from storage.queue.written_end import QueueTail, tails_of

from .log_presence import missing_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from storage.config import StoreConfig
    from storage.files.read_files import StoreFiles

_MAX_DISTRUSTED: Final = 10_000
"""Units without a whole record before the log is read from its start instead."""
_MOST_PENDING: Final = 1 << 13
"""Records without keys that a reader searches: as many as eight writers leave that die together."""
_MOST_KEPT: Final = 60_000
"""Queues whose last units stay in memory, less than a kilobyte each."""
MOST_REBUILT: Final = 2_000_000
"""Records of a store with holes that a reader searches: half a minute, and 40 MB of units."""


_NO_RECORD: Final = bytes(8), b""
"""What follows the log's last record."""


class ScanBounds:
    """Implements :class:`.bounds.Bounds` from files alone. Thread-safe; never writes."""

    def __init__(self, files: StoreFiles, config: StoreConfig, *, doubtful: bool = False) -> None:
        """``doubtful``: queues may have holes, as if the store was not closed cleanly."""
        self._doubtful = doubtful
        self._files = files
        self._log = files.log
        self._config = config
        self._log_folder = Path(files.log.directory)
        self._delay_levels_ms = parse_delay_levels(config.message_delay_level)
        self._max_record = config.max_message_size + (64 << 10)
        self._lock = threading.RLock()  # guards everything below
        self._tails: dict[tuple[str, int], QueueTail] | None = None
        self._walk = LogWalk(self._log, 0, as_broker=True)
        self._shared_path = str(files.root / OURS / SHARED_STATE_NAME)
        self._may_lack_keys = (files.root / ABORT).exists() and self._has_shared_state()
        self._keys_end = -1
        self._few_pending = False
        self._generation = 0
        self._may_have_holes = False
        self._has_light_queues = False
        self._looked_at = 0
        self._checked_from = 0
        self._covered = -1
        """The log's end for which a unit was seen of the last record. A Java broker writes units in
        the order of the log, so those of all records before are there, too."""
        self.lost_behind_end = 0
        """Messages after the log's last whole record that queues have units of although the store
        was closed cleanly, or its log cut short; known after the first call of any method."""
        self.rebuilt = RebuiltUnits()
        """Units that the files lack; complete after the first call of any method."""

    # -- Bounds -------------------------------------------------------------------------------

    def log_end(self) -> int:
        """Commit log offset after the last whole record."""
        with self._lock:
            self._known_tails()
            self._follow_log()
            return self._walk.position

    def finished_to(self) -> int:
        """The log's end: there is no other information."""
        return self.log_end()

    def keys_from(self) -> int:
        """Where the index files end, if rmqctl's writers left some keys to be put there.

        That holds where they died, and in a copy that was made during writes. It is some thousand
        records at most: if more lack keys, the index was lost, and readers do not replace it.
        """
        log_end = self.log_end()
        if not self._may_lack_keys:
            return log_end
        index = IndexReader(self._files.root, self._config)
        headers = [index.header(name) for name in index.names()[-1:]]
        ends = [header.end_phy_offset for header in headers if header is not None]
        files = self._log.offsets()
        start = max(ends + files[:1], default=0)
        with self._lock:
            if start != self._keys_end:
                self._keys_end = start
                walk = LogWalk(self._log, start, limit=log_end, check_crc=False)
                records = 0
                while records <= _MOST_PENDING and (stretch := walk.next()) is not None:
                    records += len(stretch.sizes)
                self._few_pending = records <= _MOST_PENDING
            return start if self._few_pending else log_end

    def index_is_whole(self) -> bool:
        """False for a store that was not closed cleanly and that no process has open."""
        self._known_tails()
        return not self._may_have_holes

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Max offset of a queue (exclusive), rebuilt units included."""
        with self._lock:
            tail = self._known_tails().get((topic, queue_id)) or self._find_tail(topic, queue_id)
            rebuilt = self.rebuilt.next_offset(topic, queue_id)
            if tail is None:
                return rebuilt
            self._follow_queue(tail)
            return max(tail.next_offset, rebuilt)

    def file_units(self, topic: str, queue_id: int) -> int:
        """Queue offset up to which the queue's files hold its units; after it are rebuilt ones."""
        tail = self._known_tails().get((topic, queue_id))
        return 0 if tail is None else tail.next_offset

    def known_of(
        self, topic: str, queue_id: int
    ) -> tuple[int, Sequence[int], int, memoryview] | None:
        """A generation of the files, and of a queue then its files, and of its last units the queue
        offset of the first one and their bytes; None of a queue without any."""
        tail = self._known_tails().get((topic, queue_id))
        if tail is None:
            return None
        return self._generation, tail.row.offsets(), *tail.last_units()

    def may_lack(self, topic: str, queue_id: int, end: int) -> bool:
        """Whether a queue may have had messages up to ``end`` whose units are lost.

        False where it has no room for them, and where the log after its last message was compared
        with the queues.
        """
        found = self.next_offset(topic, queue_id)
        tail = self._known_tails().get((topic, queue_id))
        if tail is None or found >= end:
            return False
        files = tail.row.offsets()
        room = (files[-1] + tail.row.file_size) // CQ_STORE_UNIT_SIZE if files else 0
        offset, size, _ = tail.unit(found - 1) if found else (0, 0, 0)
        return end <= room and offset + size < self._checked_from

    def queues(self) -> list[tuple[str, int]]:
        """All queues that have a folder or rebuilt units."""
        with self._lock:
            self._known_tails()
            folders, rebuilt = self._files.queue_folders(), self.rebuilt.queues()
            return sorted({*folders, *rebuilt}) if rebuilt else folders

    def files_generation(self) -> int:
        """Changes whenever a log file is added or deleted, and when files were replaced
        (storage.tools.rebuild.replacement)."""
        generation = self._log_modified()
        if self._tails is not None and generation != self._generation:
            with self._lock:
                self._files.relist()
                for tail in self._tails.values():
                    tail.forget(0)
            self._generation = generation
        return generation

    def _log_modified(self) -> int:
        try:
            return self._log_folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Release the files."""
        self._files.budget.drop()

    # -- the first read -----------------------------------------------------------------------

    def _known_tails(self) -> dict[tuple[str, int], QueueTail]:
        if self._tails is None:
            with self._lock:
                if self._tails is None:
                    self._tails = self._build()
        return self._tails

    def _build(self) -> dict[tuple[str, int], QueueTail]:
        self._generation = self._log_modified()
        started = self._java_start()
        tails = {(tail.key.topic, tail.key.queue_id): tail for tail in tails_of(self._files)}
        missing = missing_log(self._files, self._config, tails.values())
        if missing is not None:
            text = f"{self._log_folder}: {missing.sentence()}; what is in them is not shown"
            warnings.warn(text, IncompleteStoreWarning, stacklevel=2)
        files = self._log.offsets()
        log_min = files[0] if files else 0
        trusted, newest = self._trusted_end(list(tails.values()), log_min)
        self._walk = LogWalk(
            self._log, trusted, max_record=self._max_record, last_record=newest, as_broker=True
        )
        while self._walk.next() is not None:
            pass
        log_end = self._walk.position
        self._covered = trusted if trusted == log_end else -1
        beyond = sum(_cut(tail, log_end) for tail in tails.values())
        start = trusted
        unclean = (self._files.root / ABORT).exists()
        if missing is None and (not unclean or self._is_cut_short(files)):
            self.lost_behind_end = beyond
        if unclean or self._doubtful:
            vouched = self._recovery_start(files)
            start = min(trusted, vouched)
            self._checked_from = vouched
            # A running broker has recovered the store: its pages in memory have no holes.
            if not is_java_running(self._files.root):
                self._may_have_holes = True
                for tail in tails.values():
                    cut_at_hole(tail, vouched)
        for gap_start, gap_end in self._gaps(list(tails.values()), start, log_end):
            self._rebuild(gap_start, gap_end, tails)
        self.rebuilt.finish()
        self._has_light_queues = any(topic.startswith(LMQ_PREFIX) for topic, _ in tails)
        # A broker that runs may delete a topic, and make one of the same name.
        is_idle = started is not None and started == self._java_start()
        keeps = len(tails) <= _MOST_KEPT and is_idle
        is_whole = is_idle and self._covered == log_end and self._writes_in_order()
        for tail in tails.values():
            tail.forget(tail.next_offset if keeps else 0)
            if is_whole and tail.hole is None:
                tail.followed_to = log_end  # nothing was written since its files were read
        return tails

    def _java_start(self) -> int | None:
        """When a Java broker was started last (ns), 0 if none ever was; None while one runs."""
        if is_java_running(self._files.root):
            return None
        try:
            return (self._files.root / LOCK).stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def _is_cut_short(self, files: list[int]) -> bool:
        """Whether a file of the log lacks its end: a file has its length before its first record,
        so no crash does that."""
        for first in files:
            file = self._log.at(first)
            if file is not None and file.length < self._log.file_size:
                return True
        return False

    def _gaps(self, tails: list[QueueTail], start: int, log_end: int) -> Iterable[tuple[int, int]]:
        """Parts of the log whose records may lack units."""
        if self._may_have_holes and any(tail.key.topic.startswith(LMQ_PREFIX) for tail in tails):
            return [(start, log_end)] if start < log_end else []  # a record has several units
        return gaps_between_units(tails, start, log_end, self._log.file_size)

    def _trusted_end(self, tails: list[QueueTail], log_min: int) -> tuple[int, int | None]:
        """End of the newest whole record that a unit points to, and its beginning."""
        newest = []
        for number, tail in enumerate(tails):
            if tail.next_offset:
                span, last = tail.span, tail.next_offset - 1
                offset = tail.unit(last)[0] if span is None else span[1]
                newest.append((-offset, number, last))
        heapq.heapify(newest)
        for _ in range(_MAX_DISTRUSTED):
            if not newest:
                break
            _, number, queue_offset = newest[0]
            tail = tails[number]
            offset, size, _ = tail.unit(queue_offset)
            if offset < log_min:
                break
            if self._is_whole(offset, size, tail.key, queue_offset):
                return offset + size, offset
            if queue_offset:
                before = queue_offset - 1
                heapq.heapreplace(newest, (-tail.unit(before)[0], number, before))
            else:
                heapq.heappop(newest)
        return log_min, None

    def _is_whole(self, offset: int, size: int, key: QueueKey, queue_offset: int) -> bool:
        position = offset % self._log.file_size
        file = self._log.at(offset - position)
        if file is None:
            return False
        found = check_record(file.view, position, file.length)
        return (
            found.kind is CheckKind.MESSAGE
            and found.size == size
            and read_head(file.view, position).physical_offset == offset
            and names_queue(file.view, position, size, key, queue_offset)
        )

    def _recovery_start(self, files: list[int]) -> int:
        """First byte of the file where RocketMQ's recovery would start after a crash.

        The newest file whose first record is older than the checkpoint's time
        (CommitLog.recoverAbnormally, isMappedFileMatchedRecover).
        """
        try:
            checkpoint = CheckpointData.unpack(
                read_first(self._files.root / CHECKPOINT, CHECKPOINT_SIZE)
            )
        except OSError:
            checkpoint = CheckpointData()
        for first in reversed(files):
            file = self._log.at(first)
            try:
                head = read_head(file.view, 0) if file is not None else None
            except RecordError:
                head = None
            if head is not None and 0 < head.store_timestamp <= checkpoint.min_timestamp:
                return first
        return files[0] if files else 0

    def _rebuild(self, start: int, end: int, tails: dict[tuple[str, int], QueueTail]) -> None:
        """Give the records in [start, end) their units, unless the queues' files have them."""
        walk = LogWalk(
            self._log,
            start,
            limit=end,
            check_crc=False,
            max_record=self._max_record,
            as_broker=True,
        )
        deleted = deleted_topics_for_reading(self._files.root)
        while (stretch := walk.next()) is not None:
            if stretch.kind not in (StretchKind.RECORDS, StretchKind.DAMAGED):
                continue
            position = stretch.start % self._log.file_size
            first = stretch.start - position
            file = self._log.at(first)
            if file is None:
                return
            for size in stretch.sizes:
                request = read_request(
                    file.view, position, size, self._delay_levels_ms, first=first
                )
                unit = request.unit()
                for topic, queue_id, queue_offset in request.units:
                    if request.commitlog_offset < deleted.get(topic, 0):
                        continue
                    tail = tails.get((topic, queue_id))
                    known = 0 if tail is None else tail.next_offset
                    self.rebuilt.add(topic, queue_id, queue_offset, unit, known)
                position += size
            self._looked_at += len(stretch.sizes)
            if self._may_have_holes and self._looked_at > MOST_REBUILT:
                raise RecoveryNeededError(self._files.root, MOST_REBUILT)

    # -- later reads --------------------------------------------------------------------------

    def _find_tail(self, topic: str, queue_id: int) -> QueueTail | None:
        """A queue whose folder was made after the first read."""
        row = self._files.queue(topic, queue_id)
        if row is None or not row.relist():
            return None
        tail = QueueTail(row, QueueKey(topic, queue_id), row.offsets()[0] // CQ_STORE_UNIT_SIZE)
        self._known_tails()[topic, queue_id] = tail
        self._has_light_queues = self._has_light_queues or topic.startswith(LMQ_PREFIX)
        return tail

    def _follow_log(self) -> None:
        """Take in whole records that were appended since the last read."""
        position = self._walk.position % self._log.file_size
        file = self._log.at(self._walk.position - position)
        if file is not None and file.map[position : position + 8] not in _NO_RECORD:
            while self._walk.next() is not None:
                pass

    def _follow_queue(self, tail: QueueTail) -> None:
        """Take in units that were added since, as far as their records are whole and of the
        queue."""
        self._follow_log()
        position = self._walk.position
        if tail.followed_to == position:
            return
        is_covered = self._covered == position
        self._take_units(tail)
        if is_covered and tail.hole is None and self._writes_in_order():
            tail.followed_to = position  # nothing comes before the log grows

    def _writes_in_order(self) -> bool:
        """Whether no writer but a Java broker can have written what is there now, and it has
        written one unit for each record."""
        return not (self._doubtful or self._has_light_queues or self._has_shared_state())

    def _has_shared_state(self) -> bool:
        return os.path.exists(self._shared_path)  # noqa: PTH110 - asked for each queue

    def _take_units(self, tail: QueueTail) -> None:
        if tail.hole is not None and tail.unit(tail.hole)[1] <= 0:
            return  # units after a hole count once a writer has filled it
        following = tail.next_offset
        while True:
            offset, size, _ = tail.unit(following)
            if size <= 0 or offset < 0:
                break
            if size == PRE_BLANK_SIZE:
                following += 1
                continue
            if offset + size > self._walk.position:
                self._follow_log()
                if offset + size > self._walk.position:
                    break
            if not self._is_whole(offset, size, tail.key, following):
                break
            following += 1
            tail.next_offset = following
            if offset + size == self._walk.position:
                self._covered = offset + size


def _cut(tail: QueueTail, log_end: int) -> int:
    """Leave out units at the end whose records are not whole before the log's end; gives how many.

    ConsumeQueue.truncateDirtyLogicFiles; a queue must not end with a filler either.
    """
    span = tail.span
    if span is not None and span[2] <= log_end:
        return 0
    units = 0
    each = tail.row.file_size // CQ_STORE_UNIT_SIZE
    for first in reversed(tail.row.offsets()):
        number = first // CQ_STORE_UNIT_SIZE
        tail.next_offset = min(tail.next_offset, number + each)
        while tail.next_offset > number:
            offset, size, _ = tail.unit(tail.next_offset - 1)
            if offset >= 0 and 0 < size < PRE_BLANK_SIZE:
                if offset + size <= log_end:
                    return units
                units += 1
            tail.next_offset -= 1
    tail.next_offset = 0
    return units
