"""Appending under the write lock: records, their units, their keys; and what a death in between
leaves.

Every batch goes through the same stages, noted in the shared state (the crash table:
docs/internals/append.md):

    FROM, TO -> stage 1 -> records -> stage 2 -> units -> next offsets, LOG_END -> stage 0

The next holder of the write lock first finishes an interrupted append: in stage 1 nothing of [FROM,
TO) was acknowledged or has units, so it is zeroed; in stage 2 the records are whole, so units are
written again. Index keys come after that, those of a batch at once, those of single records later
(:mod:`storage.index.pending_keys`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.config import FlushDiskType
from storage.coordination.kept_links import KeptLinks
from storage.coordination.shared_state import (
    FILES_CONTRADICT,
    STAGE_DISPATCH,
    STAGE_NONE,
    STAGE_RECORDS,
    SharedState,
    Word,
)
from storage.coordination.shared_state_check import queue_agrees
from storage.errors import StoreBrokenError, StoreContradictionError
from storage.files.access import refuse_unwritable_folders, refuse_without_descriptors
from storage.files.mapped_file_queue import MappedFileQueue
from storage.files.preallocated_file import PreallocatedFile
from storage.files.preallocation import LOG_WINDOW, OF_LOG, Preallocation, has_pages_made
from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.delay import parse_delay_levels
from storage.format.encode import prepare
from storage.format.names import COMMITLOG, CONSUMEQUEUE, OURS
from storage.format.prepared_one import PreparedOne
from storage.format.prepared_table import PreparedTable
from storage.format.record import BLANK_SIZE, blank_record
from storage.index.pending_keys import PendingKeys
from storage.index.writer import IndexWriter
from storage.queue.writer import NO_SLOT, ConsumeQueueTable
from storage.results import PutMessageResult, PutMessageStatus

from .fast_append import LARGEST_STORED, FastAppender
from .fast_append_batch import BatchAppender
from .lmq import LmqPut, record_for_lmq_queues

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.fs import FileSystem
    from storage.files.mapped_file import MappedFile
    from storage.format.encode import MessageInner
    from storage.format.prepared import Ints, PreparedRecords

Queue = tuple[str, int]
"""Topic and queue id."""

_LEAST_AHEAD: Final = 4 * LOG_WINDOW
"""Log files of at least this many bytes are made ahead."""


class Appender:
    """Writes the three kinds of files of a store. All methods need the write lock.

    ``store_timestamp`` never decreases within a log, whatever the clock does.
    """

    def __init__(
        self, fs: FileSystem, root: Path, config: StoreConfig, shared: SharedState
    ) -> None:
        self._fs = fs
        self._root = root
        self._config = config
        self._shared = shared
        self._file_size = config.mapped_file_size_commit_log
        # See StoresByDescriptor: each store is followed by a sync.
        synced = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._copy_limit = 0 if synced else LARGEST_STORED
        self._ahead = PreallocatedFile(fs, root / OURS, self._file_size, LOG_WINDOW)
        self.log = MappedFileQueue(
            fs,
            root / COMMITLOG,
            self._file_size,
            writable=True,
            staging=root / OURS,
            max_open=4,
            ahead=self._ahead,
        )
        self.queues = ConsumeQueueTable(fs, root, config)
        self.index = IndexWriter(fs, root, config, shared)
        self.delay_levels_ms = parse_delay_levels(config.message_delay_level)
        self.keys = PendingKeys(config, shared, root / COMMITLOG, self.index)
        self._known_slots: set[int] = set()
        """Queues whose end was compared with their files."""
        self._windows = Preallocation(OF_LOG, makes_pages=has_pages_made(config))
        self.one = FastAppender(config, shared, self.log, self.queues, self.keys)
        self._batch = BatchAppender(
            config, shared, self.one, self.index, self.keys, self._make_room
        )

    # -- appending ----------------------------------------------------------------------------

    def append(
        self, records: PreparedRecords | LmqPut, now_ms: int, *, whole: bool = False
    ) -> PutMessageResult:
        """Append the records in order; ``whole`` keeps them in one file (a RocketMQ batch).

        The result says SERVICE_NOT_AVAILABLE, with nothing stored, when the disk is nearly full,
        and MESSAGE_ILLEGAL when a record cannot fit into a file. Raises OSError or
        StoreBrokenError; the caller then calls :meth:`resolve`.
        """
        words = self._shared.words
        if words[Word.FAILED] or words[Word.STAGE]:
            self.get_ready()
        if type(records) is PreparedOne:
            done = self.one.append(records.message, now_ms, records.body_crc)
            if done is not None:
                return done
        elif type(records) is PreparedTable:
            done = self._batch.append(records, now_ms)
            if done is not None:
                return done
        elif isinstance(records, LmqPut):
            return self._append_lmq(records, now_ms)
        size = largest = len(records.buffer)
        if not whole and size + BLANK_SIZE > self._file_size:
            largest = records.largest()
        refusal = self._refusal(size, largest)
        if refusal is not None:
            return refusal
        timestamp = max(now_ms, words[Word.LAST_STORE_TIMESTAMP])
        if records.store_timestamps is not None:
            refusal = self._refusal_of_times(records)
            if refusal is not None:
                return refusal
        places: list[Ints] = []
        queue_offsets: list[Ints] = []
        rest: PreparedRecords | None = records
        while rest is not None:
            end = words[Word.LOG_END]
            part, later = rest.split(self._room(end))
            if not len(part) or (whole and later is not None):
                self._roll(end)
                continue
            queue_offsets.append(self._append_part(part, end, timestamp))
            places.append(part.log_offsets(end))
            rest = later
        if len(places) == 1:
            return PutMessageResult(PutMessageStatus.PUT_OK, places[0], queue_offsets[0], timestamp)
        return PutMessageResult(
            PutMessageStatus.PUT_OK,
            [place for part_places in places for place in part_places],
            [offset for part_offsets in queue_offsets for offset in part_offsets],
            timestamp,
        )

    def append_message(self, message: MessageInner, now_ms: int) -> PutMessageResult:
        """What ``append(prepare((message,)), now_ms)`` does; a failure leaves nothing half done
        (get_ready)."""
        return self.one.check_and_append(message, now_ms) or self.append(
            prepare((message,)), now_ms
        )

    def _append_lmq(self, put: LmqPut, now_ms: int) -> PutMessageResult:
        """Append one record to its queue and to LMQs; the record names its offset in each."""
        shared = self._shared
        words = shared.words
        message, light = put.message, put.queues[1:]
        offsets = ",".join(str(shared.next_offset(self._slot(*queue))) for queue in light)
        record = record_for_lmq_queues(message, offsets)
        refusal = self._refusal(len(record.buffer), len(record.buffer))
        if refusal is not None:
            return refusal
        if len(record.buffer) > self._room(words[Word.LOG_END]):
            self._roll(words[Word.LOG_END])
        end = words[Word.LOG_END]
        timestamp = max(now_ms, words[Word.LAST_STORE_TIMESTAMP])
        queue_offsets = self._append_part(record, end, timestamp, light)
        return PutMessageResult(PutMessageStatus.PUT_OK, (end,), queue_offsets, timestamp)

    def get_ready(self) -> None:
        """Finish an interrupted append; raises what ``SharedState.refuse_after_failure`` does."""
        self._shared.refuse_after_failure()
        self.resolve()

    def _room(self, end: int) -> int:
        """Bytes that records may still take in the file that holds ``end``."""
        return self._file_size - end % self._file_size - BLANK_SIZE

    def _make_room(self, size: int) -> bool:
        """Reserve blocks for so many bytes at the end of the file that the log ends in; False if
        they do not fit into it, or are to be refused."""
        end = self._shared.words[Word.LOG_END]
        if size > self._room(end) or self._refusal(size, size) is not None:
            return False
        file = self._file_of(end)
        if file is not None:
            self._windows.reserve(file, end - file.file_from_offset, size)
        return file is not None

    def _append_part(
        self, part: PreparedRecords, end: int, timestamp: int, light: Sequence[Queue] = ()
    ) -> Ints:
        """Append records that fit into the file that holds ``end``; gives their queue offsets.

        ``light`` are the LMQs that also take the only record of ``part``.
        """
        shared = self._shared
        self._check_log_end(end)
        size = len(part.buffer)
        if part.store_timestamps is not None:
            newest = int(max(part.store_timestamps))
            timestamp = max(newest, shared.words[Word.LAST_STORE_TIMESTAMP])
        position = end % self._file_size
        file = self._file_of(end)
        if file is not None:
            self._windows.reserve(file, position, size)
        else:
            refuse_unwritable_folders(self._root / COMMITLOG, self._root / OURS)
            refuse_without_descriptors()
        slots = self._slots(part.queues)
        lmq_slots = self._slots(light) if light else []
        following = [shared.slot_word(slot) for slot in slots]
        words = shared.words  # all slots are mapped now
        next_offsets = [words[word] for word in following]
        own_offsets = part.place(end, next_offsets, timestamp)
        alone = part.message if type(part) is PreparedOne else None
        if alone is None and words[Word.KEYS_FROM] < end:
            self.keys.put()

        words[Word.FROM] = end
        words[Word.TO] = end + size
        words[Word.STAGE] = STAGE_RECORDS
        if file is None:
            # Not synced before the end of the previous file is synced: a power loss would leave a
            # hole.
            self.log.create(end, LOG_WINDOW, 0, part.buffer, sync_content=False)
        elif size <= self._copy_limit:
            file.map[position : position + size] = part.buffer
        else:
            file.write(position, part.buffer)
        words[Word.STAGE] = STAGE_DISPATCH
        counts = [0] * len(slots)
        for number, count, block in part.units(end, timestamp):
            topic, queue_id = part.queues[number]
            self.queues.put(topic, queue_id, next_offsets[number], block, timestamp)
            counts[number] = count
            for (topic, queue_id), slot in zip(light, lmq_slots, strict=True):
                self.queues.put(topic, queue_id, shared.next_offset(slot), block, timestamp)
        for word, first, count in zip(following, next_offsets, counts, strict=True):
            words[word] = first + count
        for slot in lmq_slots:
            shared.set_next_offset(slot, shared.next_offset(slot) + 1)
        words[Word.LAST_STORE_TIMESTAMP] = timestamp
        words[Word.LOG_END] = end + size
        words[Word.STAGE] = STAGE_NONE
        if alone is not None:
            self.keys.note(end, end + size, (alone.topic, alone.keys, end, timestamp))
        else:
            self._put_keys(part, end, timestamp)
        return own_offsets

    def _slots(self, queues: Sequence[Queue]) -> list[int]:
        """The slots of queues whose files are open, or can be made: a queue that this user may not
        write is found before a record of it is in the log. Raises StoreNotWritableError."""
        shared = self._shared
        known = [shared.slot(topic, queue_id) for topic, queue_id in queues]
        for slot, queue in zip(known, queues, strict=True):
            if slot is not None:
                self._slot(*queue)  # the queue's end is checked before a file is opened there
            else:
                self.queues.at_slot(*queue, NO_SLOT)
        words = shared.words
        self.queues.get_ready(
            queues, [0 if slot is None else words[shared.slot_word(slot)] for slot in known]
        )
        return [
            self._slot(*queue) if slot is None else slot
            for slot, queue in zip(known, queues, strict=True)
        ]

    def _slot(self, topic: str, queue_id: int) -> int:
        slot = self._shared.slot(topic, queue_id)
        if slot is None:
            slot = self._shared.add_slot(topic, queue_id)
        if self.queues.slots.get((topic, queue_id)) != slot:
            self.queues.at_slot(topic, queue_id, slot)
        if slot not in self._known_slots:
            self._check_end(topic, queue_id)
            self._known_slots.add(slot)
        return slot

    def _check_end(self, topic: str, queue_id: int) -> None:
        """Compare a queue's end with its files before the first append; the shared state may be
        wrong."""
        shared, maps = self._shared, MapBudget(2)
        folder = self._root / CONSUMEQUEUE / topic / str(queue_id)
        row = ReadOnlyFiles(maps, str(folder), self._config.mapped_file_size_consume_queue)
        try:
            if queue_agrees(shared, topic, queue_id, row):
                return
            if KeptLinks(self._fs, self._root).restore(folder) and queue_agrees(
                shared, topic, queue_id, row
            ):
                return
        finally:
            maps.drop()
        from .queue_end import mend_queue  # loads all readers, and is hardly ever needed

        if not mend_queue(shared, topic, queue_id, self._config):
            shared.fail(FILES_CONTRADICT)
            raise StoreContradictionError(
                f"queue {queue_id} of {topic} lacks places of messages that the log has; end all "
                f"writers of {self._root}: the next one makes them again"
            )

    def _check_log_end(self, end: int) -> None:
        """Refuse to append at an end of the log that no batch has left."""
        words = self._shared.words
        start, to = words[Word.FROM], words[Word.TO]
        if end not in (start, to) and end % self._file_size and start | to:
            raise StoreContradictionError(
                f"{self._shared.path} says that the log ends at {end}, and the last batch at {to}; "
                f"end all writers of {self._root}, the next one makes it right"
            )

    def _put_keys(self, part: PreparedRecords, end: int, timestamp: int) -> None:
        times: Ints | int = timestamp
        if part.store_timestamps is not None:
            import numpy as np

            times = np.repeat(np.asarray(part.store_timestamps, np.int64), part.key_counts)
        places = part.key_offsets(end)
        self.keys.put_now(end + len(part.buffer), part.key_hashes, places, times)

    def _roll(self, end: int) -> None:
        """End the file with the blank record; the next append makes the next file."""
        words = self._shared.words
        self._check_log_end(end)
        refuse_without_descriptors()  # for the next file
        remaining = self._file_size - end % self._file_size
        file = self._file_of(end)
        assert file is not None  # a file that is not made yet has room
        position = end - file.file_from_offset
        self._windows.reserve(file, position, BLANK_SIZE)
        words[Word.FROM] = end
        words[Word.TO] = end + BLANK_SIZE
        words[Word.STAGE] = STAGE_RECORDS
        file.map[position : position + BLANK_SIZE] = blank_record(remaining)
        words[Word.STAGE] = STAGE_DISPATCH
        words[Word.LOG_END] = end + remaining
        words[Word.STAGE] = STAGE_NONE

    def _file_of(self, end: int) -> MappedFile | None:
        """The file that the log ends in, or None if the log ends with the previous file.

        A log file is made with its first records in it: a Java broker that starts to load the
        store, before it fails on our lock, deletes files at the log's end that hold nothing.
        """
        file = self.log.find(end)
        if file is not None and file.deleted:
            self.log.forget(file.file_from_offset)
            raise StoreBrokenError(
                f"{file.path} was deleted while it was being written; "
                "end all writers and open the store anew"
            )
        if file is None and end % self._file_size:
            raise StoreBrokenError(
                f"{self.log.path(end - end % self._file_size)}, the last commit log file, is "
                "missing; end all writers and open the store anew"
            )
        return file

    def _refusal(self, size: int, largest: int) -> PutMessageResult | None:
        """Refuse records that fit into no file, and all records on a nearly full disk.

        The disk is checked once for each window of the log.
        """
        if largest + BLANK_SIZE > self._file_size:
            return PutMessageResult(
                PutMessageStatus.MESSAGE_ILLEGAL,
                reason=f"{largest} bytes do not fit into a commit log file of "
                f"{self._file_size} bytes",
            )
        end = self._shared.words[Word.LOG_END]
        if end + size <= self.one.checked_space_to:
            return None
        free = self._fs.free_bytes(self._root)
        least = self._config.min_free_bytes
        if free - size < least:
            return PutMessageResult(
                PutMessageStatus.SERVICE_NOT_AVAILABLE,
                reason=f"only {free >> 20} MiB are free below {self._root}, and writes are refused "
                f"below {least >> 20} MiB; free some space",
            )
        self.one.checked_space_to = end + size + LOG_WINDOW
        return None

    def _refusal_of_times(self, records: PreparedRecords) -> PutMessageResult | None:
        """Refuse records whose store times are before those of the log."""
        newest = self._shared.words[Word.LAST_STORE_TIMESTAMP]
        times = records.store_timestamps
        if times is None or records.may_go_back or not len(times) or int(times[0]) >= newest:
            return None
        from storage.parse.times import format_time

        return PutMessageResult(
            PutMessageStatus.MESSAGE_ILLEGAL,
            reason=f"was stored at {format_time(int(times[0]), iso=True)}, and the log has "
            f"messages of {format_time(newest, iso=True)} already; store times must not decrease "
            "within a log",
        )

    def delete_queues(self, topic: str, before: Callable[[], None]) -> int:
        """Delete all queues of a topic while other processes read and write the store; gives how
        many there were. For ``before`` see :mod:`.topic_deletion`."""
        from .topic_deletion import delete_queues

        self.get_ready()
        self.put_keys()
        log_min = min(self.log.offsets(), default=0)
        return delete_queues(self._fs, self._root, self._shared, topic, log_min, before)

    # -- resolving ----------------------------------------------------------------------------

    def resolve(self) -> None:
        """Finish or undo an append that a dead writer, or an error in this one, left half done.

        A death in here leaves the stage as it is, so the next caller does the same again.
        """
        if self._shared.words[Word.STAGE]:
            from .interrupted_append import Resolver
            from .topic_deletion import finish_deletion

            Resolver(
                self._config,
                self._shared,
                self.log,
                self.queues,
                self.keys,
                lambda: finish_deletion(self._fs, self._root, self._shared),
            ).run()
            self.keys.put()

    def put_keys(self) -> None:
        """Put the keys that are still pending into the index. Raises as :meth:`append` does."""
        if self._shared.words[Word.STAGE]:
            self.resolve()
        else:
            self.keys.put()

    def make_next_file(self) -> None:
        """Make the log's next file before it is needed, in a thread that may wait for the device;
        without the write lock. Small files are full before the thread runs."""
        if self._file_size >= _LEAST_AHEAD and self.one.in_run:
            self._ahead.make()

    def close(self) -> None:
        """Close all maps."""
        self._ahead.close()
        self.keys.close()
        self.one.close()
        self.log.close()
        self.queues.close()
        self.index.close()
