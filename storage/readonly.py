"""A store for reading only: no lock is taken, nothing is written, nothing is created.

Works on a read-only mount, beside any number of rmqctl writers, beside a running Java broker and on
what a dead one left. The end of the store comes from its shared state if that can be trusted, else
from the files (``storage.read.bounds``). A view shows what RocketMQ's recovery would serve, or more
whole messages than that.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from storage.coordination.shared_state import FILES_CONTRADICT, SharedStateBounds
from storage.counted import counted
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.log.record_reader import QueueKey, RecordReader
from storage.queue.reader import QueueBounds, QueueReader
from storage.read.by_time import Boundary as Boundary, TimeSearch, places_in
from storage.read.get_message import MessageReader, no_such_queue

from .detect import detect_config
from .errors import IncompleteStoreWarning, StoreContradictionError
from .files.read_files import StoreFiles
from .store_configs import StoreConfigs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.format.message import MessageExt
    from storage.log.record_reader import RecordNames
    from storage.read.bounds import Bounds
    from storage.read.by_key import KeyReader
    from storage.read.message_columns import ColumnBatch
    from storage.read.message_filter import MessageFilter
    from storage.read.message_table import Filled, MessageTable
    from storage.read.scan_bounds import ScanBounds

    from .config import StoreConfig
    from .format.prepared import PreparedRecords
    from .results import GetMessageResult, QueryMessageResult

FOREVER: Final = (1 << 63) - 1
"""Java's Long.MAX_VALUE: no end of a range of times."""
_NEAREST49: Final = Boundary.NEAREST49
_COLUMN_BYTES: Final = 8 << 20
_LOOK_FOR_PAGE_SECONDS: Final = 0.5

_Names = list[tuple[str, int]]
_Listed = tuple["Bounds | None", _Names, _Names, _Names]
"""Bounds, the queues that they name, those that have a message, and these sorted."""


class StoreView(StoreConfigs):
    """Reads one store. Thread-safe; a context manager. After :meth:`close` its answers are void.

    Offsets of the commit log are bytes, queue offsets count messages, times are ms. Errors of the
    operating system other than missing files come as OSError.
    """

    def __init__(self, root: Path, config: StoreConfig, bounds: Bounds | None) -> None:
        """Read with the caller's bounds, which the caller closes; None: see :meth:`open`."""
        self.root = root
        self.config = config
        self.files = StoreFiles(root, config)  # the files, until it is closed
        self._own_bounds = False
        self._set_bounds(bounds)
        log = self.files.log
        self._records = RecordReader(log)
        self._messages = MessageReader(self.files, self._records, config)
        self._times = TimeSearch(self._records, log)
        self._generation = -1
        self._look_for_page_at = time.monotonic() + _LOOK_FOR_PAGE_SECONDS
        self._wrong_page = 0  # ``made`` of a shared state that contradicts the files
        self._wrong_queue = ("", -1)  # of a queue that it contradicts
        self._lock = threading.Lock()  # guards the change of bounds and of the generation

    def _set_bounds(self, bounds: Bounds | None, *, doubtful: bool = False) -> None:
        self._scan: ScanBounds | None = None
        if bounds is None:  # ScanBounds is loaded only for stores without a usable shared state
            from storage.read.scan_bounds import ScanBounds

            apart = self.files.apart()
            bounds = self._scan = ScanBounds(apart, self.config, doubtful=doubtful)
        self._bounds = bounds
        self._shared = bounds if isinstance(bounds, SharedStateBounds) else None
        self._queues: dict[tuple[str, int], QueueReader] = {}
        self._known_keys: KeyReader | None = None
        self._listed: _Listed = None, [], [], []

    @classmethod
    def open(cls, root: Path | str, config: StoreConfig | None = None) -> Self:
        """Open the store in a folder.

        ``config`` None means RocketMQ's defaults; the lengths of files are always those that the
        store records or has. Raises StoreNotFoundError, UnsupportedStoreError,
        StoreNotWritableError (the folder cannot be read), CorruptFileError and
        StoreVersionError (rmqctl's own record of the sizes).
        """
        root = Path(root).absolute()
        found = detect_config(root, config, reading=True)
        shared = SharedStateBounds.open(root, log_file_size=found.mapped_file_size_commit_log)
        view = cls(root, found, shared)
        view._own_bounds = True
        return view

    # -- bounds -------------------------------------------------------------------------------

    @property
    def bounds(self) -> Bounds:
        """Where the store ends. A shared state that a Java broker has invalidated is dropped, and
        that of later writers is found within half a second."""
        shared = self._shared
        if shared is None and self._own_bounds and time.monotonic() >= self._look_for_page_at:
            self.joins_writers()
        if shared is not None and self._own_bounds and not shared.valid():
            with self._lock:
                if self._shared is not None:
                    self._set_bounds(None)
                    shared.close()
        return self._bounds

    def joins_writers(self) -> bool:
        """Whether the store has got a shared state since the last call, or the files agree with one
        again; its bounds come from it then."""
        with self._lock:
            self._look_for_page_at = time.monotonic() + _LOOK_FOR_PAGE_SECONDS
            if self._shared is not None or not self._own_bounds:
                return False
            shared = SharedStateBounds.open(
                self.root, log_file_size=self.config.mapped_file_size_commit_log
            )
            if shared is not None and self._is_still_wrong(shared):
                shared.close()
                return False
            if shared is not None:
                self._set_bounds(shared)
            return shared is not None

    def _is_still_wrong(self, shared: SharedStateBounds) -> bool:
        """Whether it is the one that was left, and the files of any queue contradict it."""
        if shared.made() != self._wrong_page:
            return False
        found = shared.first_contradiction(self._wrong_queue, self.files)
        if found is not None:
            self._wrong_queue = found  # the first one next time: all others cost more
        return found is not None

    def _leave_wrong_page(self, wrong: SharedStateBounds, topic: str, queue_id: int) -> None:
        """Read without the shared state from now on, because it contradicts the files of a queue.

        Either may be damaged, so the queues are compared with the log. Raises
        StoreContradictionError for a writer's view, which has no other bounds.
        """
        stored_end = wrong.next_offset(topic, queue_id)
        if not self._own_bounds:
            wrong.shared.fail(FILES_CONTRADICT)
            raise StoreContradictionError(
                f"{wrong.shared.path} says that queue {queue_id} of {topic} ends at {stored_end}, "
                "its files say something else; end all writers, the next one makes it right"
            )
        with self._lock:
            if self._shared is not wrong:
                return
            self._wrong_page, self._wrong_queue = wrong.made(), (topic, queue_id)
            self._set_bounds(None, doubtful=True)
            wrong.close()
        scan = self._scan
        if scan is not None and scan.may_lack(topic, queue_id, stored_end):
            found = scan.next_offset(topic, queue_id)
            text = (
                f"{self.root}: queue {queue_id} of {topic} ended at {stored_end}, and its files "
                f"and the log have messages up to {found}; 'rmqctl store fsck' shows more"
            )
            warnings.warn(text, IncompleteStoreWarning, stacklevel=2)

    def lost_end(self) -> str | None:
        """Give a sentence about lost messages at the log's end, as far as they are known by now."""
        lost = 0 if self._scan is None else self._scan.lost_behind_end
        if not lost:
            return None
        return (
            f"{self.root}: the queues know of {counted(lost, 'message')} after the log's last "
            "whole record; 'rmqctl store fsck' shows more"
        )

    @property
    def has_shared_state(self) -> bool:
        """Whether the bounds come from the shared state of writers: cheap to call again."""
        return self._shared is not None

    def log_min_offset(self) -> int:
        """First offset of the oldest log file that still exists, 0 without any."""
        self._note_generation(self.bounds)
        return self.files.log.first()

    def log_max_offset(self) -> int:
        """Offset after the last whole record."""
        return self.bounds.log_end()

    def queues(self) -> list[tuple[str, int]]:
        """All (topic, queue id) that have or had messages, sorted."""
        bounds = self.bounds
        if not isinstance(bounds, SharedStateBounds):
            return sorted(bounds.queues())
        self._note_generation(bounds)
        shared = bounds.shared
        named, found = shared.queues(), bounds.queues()
        if self._listed[:3] == (bounds, named, found):
            return self._listed[3].copy()
        for queue in named:
            if shared.queue_end(*queue) <= 0:  # it would not be shown; others are checked when
                self._queue(*queue)  # they are read: that takes 100 us a queue
        if self._bounds is bounds:
            self._listed = bounds, named, found, sorted(found)
            return self._listed[3].copy()
        return sorted(self.bounds.queues())

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        """Min and max offset of a queue; both 0 for one that is unknown or never had a message.

        Min equals max when all its messages have been deleted.
        """
        bounds = self.bounds
        queue = self._queue(topic, queue_id)
        return QueueBounds(0, 0) if queue is None else self._bounds_of(queue, bounds)[0]

    def each_queue_bounds(
        self, queues: Sequence[tuple[str, int]], first: Sequence[int] = ()
    ) -> list[QueueBounds]:
        """The bounds of many queues; a quarter of the time that each by itself takes.

        ``first``: offsets from which on the units of each are asked for next, -1 for none; where
        they are few, they are read along with its bounds.
        """
        from storage.queue.first_read import read_many

        while True:
            bounds = self.bounds
            generation = self._note_generation(bounds)
            log_min = self.files.log.first()
            known = self._queues if self._bounds is bounds else {}
            own = bounds if self._own_bounds else None
            read_many(known, queues, self.files, own, generation, first)
            readers = [known.get(place) or self._queue(*place) for place in queues]
            found = [
                QueueBounds(0, 0) if reader is None else reader.bounds(log_min, generation)
                for reader in readers
            ]
            if self._bounds is bounds and bounds.files_generation() == generation:
                return found

    def min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Queue offset of the first message that is still in the log."""
        return self.queue_bounds(topic, queue_id).min_offset

    def max_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """Queue offset of the next message."""
        return self.queue_bounds(topic, queue_id).max_offset

    # -- messages -----------------------------------------------------------------------------

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_msg_nums: int,
        *,
        tags: MessageFilter | None = None,
        pulls: int = 1,
        fields: Collection[str] | None = None,
    ) -> GetMessageResult:
        """Read messages of a queue from ``offset`` on (DefaultMessageStore.getMessage).

        Gives at most ``max_transfer_count_in_memory`` (32) messages and
        ``max_transfer_bytes_in_memory`` bytes of records, but at least one message if there is
        one; the result says where to go on and why it stopped. The CRC of each body is checked; a
        record that contradicts its unit is never returned. ``pulls``: the answer may be that of so
        many consecutive reads, each but the last with all that it may hold. ``fields``: many usual
        messages may come as rows of a table with these fields.
        """
        queue = self._queues.get((topic, queue_id)) or self._queue(topic, queue_id)
        if queue is None:
            return no_such_queue()
        if queue.followed is not None and tags is None:
            found = queue.followed.read(offset, max_msg_nums)
            if found is not None:
                return found
        shared, is_plain = self._shared, tags is None and fields is None and pulls == 1
        if is_plain and queue.place is not None and shared is not None:
            steady = shared.steady(self._generation, checked=self._own_bounds)
            found = queue.read_at_once(steady, offset, max_msg_nums, self.config)
            if found is not None:
                return found
        bounds, _ = self._bounds_of(queue, self.bounds if self._own_bounds else self._bounds)
        return self._messages.get_message(queue, bounds, offset, max_msg_nums, tags, pulls, fields)

    def read_column(
        self, topic: str, queue_id: int, offset: int, count: int, max_bytes: int = _COLUMN_BYTES
    ) -> ColumnBatch:
        """Read many messages at once as columns, with the same checks as single messages.

        At most ``count`` messages and about ``max_bytes`` bytes of records. Imports NumPy.
        """
        from storage.read.message_columns import ColumnReader

        queue = self._queue(topic, queue_id)
        bounds = self.queue_bounds(topic, queue_id)
        reader = ColumnReader(self._records)
        if queue is None:
            return reader.nothing()
        return reader.read(queue, bounds, offset, count, max_bytes)

    def fill_table(
        self,
        table: MessageTable,
        topic: str,
        queue_id: int,
        offset: int,
        end: int,
        times: tuple[int, int] | None = None,
    ) -> Filled:
        """Add the messages [offset, end) of a queue to a table, as far as it has room; with
        ``times`` only those stored in [begin, end) (ms). See storage.read.message_table."""
        from storage.read.message_table import Filled, TableReader

        queue = self._queue(topic, queue_id)
        bounds = self.queue_bounds(topic, queue_id)
        if queue is None or not bounds.min_offset <= offset < bounds.max_offset:
            return Filled(offset, is_unreadable=offset < end)
        reader = TableReader(self._records)
        return reader.fill(table, queue, offset, min(end, bounds.max_offset), times)

    def look_message_by_offset(self, commitlog_offset: int) -> MessageExt | None:
        """Read the whole record that begins at a commit log offset, None if none does."""
        return self._records.look(commitlog_offset, self.log_max_offset())

    def unit(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """The unit of a queue offset: commit log offset, size, tags code; None outside the bounds
        or where its file is missing."""
        queue = self._queue(topic, queue_id)
        bounds = self.queue_bounds(topic, queue_id)
        if queue is None or not bounds.min_offset <= offset < bounds.max_offset:
            return None
        return queue.unit(offset)

    def units(
        self, topic: str, queue_id: int, offset: int, count: int
    ) -> list[tuple[int, int, int]]:
        """Units from a queue offset on: commit log offset, size, tags code of each.

        At most ``count``, none from the next file of the queue. Nothing outside the bounds or
        where the file is missing.
        """
        return list(CQ_STORE_UNIT.iter_unpack(self.unit_bytes(topic, queue_id, offset, count)))

    def unit_bytes(self, topic: str, queue_id: int, offset: int, count: int) -> bytes:
        """The same as stored bytes (storage.format.cq_unit)."""
        queue = self._queue(topic, queue_id)
        bounds = self.queue_bounds(topic, queue_id)
        if queue is None or not bounds.min_offset <= offset < bounds.max_offset:
            return b""
        return queue.units(offset, min(count, bounds.max_offset - offset)) or b""

    def places(
        self,
        topic: str,
        queue_id: int,
        offsets: Collection[int],
        within: tuple[int, int] | None = None,
    ) -> dict[int, tuple[int, int | None]]:
        """Log offsets of some messages of a queue, and their store times in ms.

        Those outside the bounds or in a missing file are left out; the time is None if the record
        cannot be read. ``within``: the bounds, where the caller has just read them.
        """
        queue = self._queue(topic, queue_id)
        bounds = within or self.queue_bounds(topic, queue_id)
        return {} if queue is None else places_in(queue, self._records, offsets, bounds)

    def unit_view(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        end: int,
        within: tuple[int, int] | None = None,
    ) -> memoryview | None:
        """The bytes of the units from ``offset`` on, before ``end``, 20 each, without copying.

        Fewer may come, none from the next file of the queue. None outside the bounds (``within``,
        if the caller has read them) and where the file is missing. Release it soon: it keeps a map.
        """
        queue = self._queue(topic, queue_id)
        low, high = within or self.queue_bounds(topic, queue_id)
        end = min(end, high)
        if queue is None or not low <= offset < end:
            return None
        return queue.unit_view(offset, end - offset)

    def record_timestamp(self, commitlog_offset: int, size: int) -> int | None:
        """Store time in ms of the record that a unit names; None if it cannot be read."""
        return self._records.store_timestamp(commitlog_offset, size)

    def message_of_unit(
        self, topic: str, queue_id: int, offset: int, unit: tuple[int, int, int]
    ) -> MessageExt | None:
        """The message that a unit of a queue names; None if it is gone or contradicts the unit."""
        queue = self._queue(topic, queue_id)
        place, size, _ = unit
        return None if queue is None else self._records.read(place, size, queue.key, offset)

    def messages_of_units(
        self, topic: str, queue_id: int, offset: int, units: bytes
    ) -> list[MessageExt | None]:
        """The same for units in the form of ``unit_bytes``, from ``offset`` on."""
        queue = self._queue(topic, queue_id)
        if queue is None:
            return [None] * (len(units) // CQ_STORE_UNIT_SIZE)
        return self._records.read_each(units, queue.key, offset)

    def readdressed(
        self, topic: str, queue_id: int, offset: int, units: bytes, names: RecordNames
    ) -> tuple[PreparedRecords, int] | None:
        """Records of the first messages of these units, to be stored again where their own
        properties say; None if the first one is uncommon: then it must be read by itself."""
        queue = self._queue(topic, queue_id)
        return None if queue is None else self._records.readdressed(units, queue.key, offset, names)

    # -- by time ------------------------------------------------------------------------------

    def offset_in_queue_by_time(
        self, topic: str, queue_id: int, timestamp: int, boundary: Boundary = Boundary.NEAREST49
    ) -> int:
        """Find a queue offset by store time (ms); see Boundary and TimeSearch.offset."""
        queue, shared = self._queues.get((topic, queue_id)), self._shared
        if queue is not None and queue.place and shared is not None and boundary is _NEAREST49:
            steady = shared.steady(self._generation, checked=self._own_bounds)
            found = queue.nearest_at_once(steady, timestamp)
            if found is not None:
                return found
        bounds = self.bounds
        queue = self._queue(topic, queue_id)
        if queue is None:
            return 0
        queue_bounds, log_min = self._bounds_of(queue, bounds)
        return self._times.offset(queue, queue_bounds, log_min, timestamp, boundary)

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int | None:
        """Store time of one message in ms; None outside the bounds or if it cannot be read."""
        unit = self.unit(topic, queue_id, offset)
        return None if unit is None else self._records.store_timestamp(*unit[:2])

    def store_timestamps(
        self, places: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Store times in ms of the records at commit log offsets, -1 where none of that size
        begins. Imports NumPy; quickest if ``places`` ascend."""
        from storage.read.store_times import gather_store_timestamps

        return gather_store_timestamps(self.files.log, places, sizes)

    def reads_log_at_random(self) -> None:
        """Turn read-ahead of the log off from now on: for a reader of few of its records."""
        self.files.log.reads_at_random()

    def earliest_message_time(self, topic: str, queue_id: int) -> int | None:
        """Store time of a queue's first message in ms, None for an empty queue."""
        return self.store_timestamp(topic, queue_id, self.min_offset_in_queue(topic, queue_id))

    # -- by key -------------------------------------------------------------------------------

    def query_message(
        self, topic: str, key: str, max_num: int = 32, begin: int = 0, end: int = FOREVER
    ) -> QueryMessageResult:
        """Find the newest messages of a topic by the hash of a key, oldest first.

        Hits of other keys with the same hash come too, as from RocketMQ's store.
        """
        keys, shared = self._known_keys, self._shared
        if keys is not None and shared is not None:
            steady = shared.steady(self._generation, checked=self._own_bounds)
            found = keys.at_once(steady, topic, key, max_num, begin, end)
            if found is not None:
                return found
        self._note_generation(self.bounds)
        return (self._known_keys or self._keys()).messages(topic, key, max_num, begin, end)

    def key_offsets(self, topic: str, key: str, begin: int = 0, end: int = FOREVER) -> list[int]:
        """Commit log offsets where messages of a topic with a key's hash may lie, ascending.

        All of them, unlike a broker's answer, and unread: another key may have the hash. Times in
        ms, compared with those of the index: whole seconds, rounded down.
        """
        self._note_generation(self.bounds)
        found, _ = self._keys().offsets(topic, key, FOREVER, begin, end, capped=False)
        return sorted(set(found.offsets))

    def not_indexed(self) -> list[tuple[int, int]]:
        """Parts of the log (commit log offsets) whose keys no index file has."""
        bounds = self.bounds
        self._note_generation(bounds)
        return self._keys().index.uncovered(self.log_min_offset(), bounds.log_end())

    def find_unique(self, topic: str, msg_id: str) -> list[MessageExt]:
        """See storage.read.by_key.find_unique."""
        from storage.read.by_key import find_unique

        return find_unique(self, topic, msg_id)

    # -- life ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Release bounds and files; a map goes with the last reader of a message's bytes."""
        self.files.budget.drop()
        self._known_keys = None
        if self._own_bounds:
            self._own_bounds = False
            self._bounds.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside -------------------------------------------------------------------------------

    def _keys(self) -> KeyReader:
        """The searcher for keys; loaded at the first search, as most readers of a store need
        none."""
        from storage.read.by_key import KeyReader

        with self._lock:
            if self._known_keys is None:
                at = (self.root, self.config, self._bounds, self._records)
                self._known_keys = KeyReader(*at, follow_slots=self._shared is not None)
            return self._known_keys

    def _queue(self, topic: str, queue_id: int) -> QueueReader | None:
        key = (topic, queue_id)
        queue = self._queues.get(key)
        if queue is None:
            row = self.files.queue(topic, queue_id)
            if row is None:
                return None
            known = self._shared
            if known is not None and not known.agrees(topic, queue_id, row):
                self._leave_wrong_page(known, topic, queue_id)
                known = None
            shared = None if known is None or self._own_bounds else known.shared
            queue = QueueReader(QueueKey(topic, queue_id), row, self._bounds, self._scan, shared)
            if self._scan is not None:
                self._keep_known(queue, self._scan)
            queue = self._queues.setdefault(key, queue)
        return queue

    def _keep_known(self, queue: QueueReader, scan: ScanBounds) -> None:
        """Read nothing again of a queue that was read to find its end: there may be thousands."""
        from storage.queue.first_read import KeptUnits

        known = scan.known_of(queue.key.topic, queue.key.queue_id)
        if known is not None:
            generation, files, first, units = known
            queue.list_as(files)
            end = first + len(units) // CQ_STORE_UNIT_SIZE
            queue.keep((KeptUnits(first, end, units),) if units else (), generation)

    def _bounds_of(self, queue: QueueReader, bounds: Bounds) -> tuple[QueueBounds, int]:
        """Bounds of a queue, and the first offset of the log."""
        while True:
            generation = self._note_generation(bounds)
            files = self.files.log.offsets()
            log_min = files[0] if files else 0
            found = queue.bounds(log_min, generation)
            # Else the queue may have been deleted and made anew meanwhile: its files are others.
            if bounds.files_generation() == generation:
                place, shared = queue.place, self._shared
                if shared is bounds and (place is None or place[0] != generation):
                    queue.note_place(shared.shared, self.files.log, generation, log_min, found)
                return found, log_min

    def _note_generation(self, bounds: Bounds) -> int:
        """Drop cached state of files when files were deleted."""
        generation = bounds.files_generation()
        if generation != self._generation:
            with self._lock:
                if generation != self._generation:
                    self.files.relist()
                    if self._known_keys is not None:
                        self._known_keys.index.relist()
                    self._generation = generation
        return generation
