"""Appending one plain record, step by step as :mod:`.append` does it, in one function.

This path takes only records whose files are open, have room and are known; everything else (a new
file, a new queue, a nearly full disk) is left to the general one. Both write the same bytes in the
same order of stores. A message takes 3 us here, so work that can be done once is not done for each
message.

The compiled form (storage/native/writing/append.c) takes 0.6 us. It uses only what was registered
with it, and leaves everything else to the form here: :attr:`FastAppender.quick`.
"""

from __future__ import annotations

from mmap import mmap
from typing import TYPE_CHECKING, Any, Final

from storage import native
from storage.config import FlushDiskType
from storage.coordination.shared_state import (
    STAGE_DISPATCH,
    STAGE_NONE,
    STAGE_RECORDS,
    SharedState,
    Word,
)
from storage.files.preallocation import OF_QUEUE, Preallocation, has_pages_made
from storage.files.prefault_size import LARGE, LITTLE, PAGE_SIZES
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.crc import CRC_MASK, whole_crc32
from storage.format.encode import topic_field
from storage.format.java_hash import tags_code
from storage.format.layout import (
    BLANK_SIZE,
    HEAD_SIZES,
    HEADS,
    MAX_PROPERTIES_LENGTH,
    MESSAGE_MAGIC_V1,
)
from storage.format.sys_flag import MessageSysFlag
from storage.index.pending_keys import MOST_PENDING
from storage.results import PutMessageResult, PutMessageStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.config import StoreConfig
    from storage.coordination.write_lock import WriteLock
    from storage.files.mapped_file import MappedFile
    from storage.files.mapped_file_queue import MappedFileQueue
    from storage.format.encode import MessageInner
    from storage.index.pending_keys import PendingKeys
    from storage.queue.writer import ConsumeQueueTable

_PUT_OK: Final = PutMessageStatus.PUT_OK
_new_tuple: Final = tuple.__new__
_join: Final = b"".join
_pack_unit: Final = CQ_STORE_UNIT.pack
_V6_BITS: Final = 0x30
_TRANSACTION: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
_TWO_IPV4: Final = 16
"""Bytes of two hosts if neither is an IPv6 one."""
LARGEST_STORED: Final = 16 << 10
"""Bytes up to which a batch is stored to the map. Larger ones go through the descriptor, where
pages cost less than small ones that were made ready; not where they were made ahead."""
_MOST_CODES: Final = 4096
appending: Final = native.form("appending", native.nothing)
# Names of this module are found faster than attributes of a class.
_FROM: Final = Word.FROM
_TO: Final = Word.TO
_STAGE: Final = Word.STAGE
_LOG_END: Final = Word.LOG_END
_LAST_STORE_TIMESTAMP: Final = Word.LAST_STORE_TIMESTAMP


class _Tail:
    """The offset of one queue's next unit, and the bytes of its topic."""

    __slots__ = ("end", "first", "last", "map", "middles", "topic_field", "windows", "word")

    def __init__(self, word: int, topic: str, file: MappedFile, windows: Preallocation) -> None:
        self.word = word  # of the shared state: the next offset, always the same one
        self.windows = windows
        self.map: Any = file.map
        self.first = file.file_from_offset
        self.last = file.reserved_to - CQ_STORE_UNIT_SIZE  # position of the last unit with blocks
        self.end = self.first + file.reserved_to
        self.topic_field = topic_field(topic)
        self.middles: dict[int, bytes] = {}
        """By length of the properties: the bytes between body and properties."""

    def middle(self, length: int) -> bytes:
        """Topic and length field, remembered for some lengths."""
        found = self.topic_field + length.to_bytes(2, "big")
        if len(self.middles) < 256:
            self.middles[length] = found
        return found


class FastAppender:
    """The fast path for one record; needs the write lock."""

    def __init__(
        self,
        config: StoreConfig,
        shared: SharedState,
        log: MappedFileQueue,
        queues: ConsumeQueueTable,
        keys: PendingKeys,
    ) -> None:
        self._shared = shared
        self._words = shared.words
        self._log_size = config.mapped_file_size_commit_log
        self._unit_size = config.mapped_file_size_consume_queue
        self._log_files = log.opened
        self._queues = queues.opened
        self._queue_slots = queues.slots
        self._keys = keys
        self._rows = keys.rows
        self._topics: dict[str, dict[int, _Tail]] = {}
        self._tags_codes: dict[str | None, int] = {None: 0}
        self._syncs_each = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._makes_pages = has_pages_made(config)
        self.in_run = self._syncs_each
        """Many records came, and the next ones make preparation worthwhile."""
        self._map: Any = None  # of the log file that takes records
        self._file: MappedFile | None = None
        self._first = 0
        self._limit = -1
        self._checked_ms = -1  # when the log file last had a name
        self.checked_space_to = -1
        """Log offset up to which the disk is known to have room."""
        self.compiled: Any = None
        """The state of the compiled forms; None where nothing is compiled."""
        if type(shared.words) is memoryview:
            self.compiled = appending(PutMessageResult, _PUT_OK, keys, keys.rows, MOST_PENDING)
        if self.compiled is not None:
            self.compiled.use_words(shared.words)
        self.put_batch: Any = None if self.compiled is None else self.compiled.put_batch
        """Puts a batch that compiled code has encoded, as :meth:`put_alone` does a message. None
        where each put is synced: its result would come before the sync."""
        if self._syncs_each:
            self.put_batch = None
        self.put_sent: Any = None if self.compiled is None else self.compiled.put_sent
        """Puts a plain message that a producer sends; see MessageStore.put_sent."""
        self.put_sent_batch: Any = None if self.compiled is None else self.compiled.put_sent_batch
        """Puts a batch of them; see MessageStore.put_sent_batch."""
        self.quick: Callable[[MessageInner, int], PutMessageResult | None] = (
            self.append if self.compiled is None else self.compiled.append
        )
        """The faster form of :meth:`append`. If it does nothing, the caller tries the other one."""

    def append(
        self, message: MessageInner, now_ms: int, body_crc: int | None = None
    ) -> PutMessageResult | None:
        """Append the record if nothing prevents it; None = nothing done.

        ``body_crc`` is the body's checksum if it is known. May put keys (see PendingKeys.put).
        """
        (
            topic,
            queue_id,
            body,
            properties,
            born_timestamp,
            born_host,
            store_host,
            flag,
            sys_flag,
            reconsume_times,
            prepared_transaction_offset,
            tags,
            keys,
            level,
            _,
        ) = message
        tails = self._topics.get(topic)
        tail = None if tails is None else tails.get(queue_id)
        if tail is None:
            self.learn(topic, queue_id)
            return None
        length = len(properties)
        if length > MAX_PROPERTIES_LENGTH:
            return None
        body_length = len(body)
        hosts = 0
        if len(born_host) + len(store_host) != _TWO_IPV4:
            hosts = (len(born_host) == 20) | (len(store_host) == 20) << 1
        middle = tail.middles.get(length) or tail.middle(length)
        size = HEAD_SIZES[hosts] + body_length + len(middle) + length
        words = self._words
        start = words[_LOG_END]
        end = start + size
        position = start - self._first
        if (
            position < 0
            or position + size > self._limit
            or self._map.closed
            or now_ms != self._checked_ms
        ) and not self.have_room(start, end, now_ms):
            return None
        position = start - self._first
        queue_offset = words[tail.word]
        unit_position = queue_offset * CQ_STORE_UNIT_SIZE - tail.first
        if not 0 <= unit_position <= tail.last or tail.map.closed:
            self.learn(topic, queue_id)
            return None
        if level > 0 or sys_flag & _TRANSACTION:
            return None
        last_timestamp = words[_LAST_STORE_TIMESTAMP]
        timestamp = now_ms if now_ms > last_timestamp else last_timestamp
        buffer = _join(
            (
                HEADS[hosts].pack(
                    size,
                    MESSAGE_MAGIC_V1,
                    whole_crc32(body) & CRC_MASK if body_crc is None else body_crc,
                    queue_id,
                    flag,
                    queue_offset,
                    start,
                    sys_flag & ~_V6_BITS | hosts << 4,
                    born_timestamp,
                    born_host,
                    timestamp,
                    store_host,
                    reconsume_times,
                    prepared_transaction_offset,
                    body_length,
                ),
                body,
                middle,
                properties,
            )
        )
        code = self._tags_codes.get(tags)
        if code is None:
            code = self._code_of(tags)
        unit = _pack_unit(start, size, code)

        words[_FROM] = start
        words[_TO] = end
        words[_STAGE] = STAGE_RECORDS
        self._map[position : position + size] = buffer
        words[_STAGE] = STAGE_DISPATCH
        tail.map[unit_position : unit_position + CQ_STORE_UNIT_SIZE] = unit
        words[tail.word] = queue_offset + 1
        if timestamp != last_timestamp:
            words[_LAST_STORE_TIMESTAMP] = timestamp
        words[_LOG_END] = end
        words[_STAGE] = STAGE_NONE

        # PendingKeys.note, in place.
        pending, rows = self._keys, self._rows
        if pending.end != start:
            pending.go_on_at(start)
        rows.append((topic, keys, start, timestamp))
        pending.end = end
        if len(rows) >= MOST_PENDING:
            pending.put()
            self.in_run = True
        elif not pending.has_file:
            pending.put_first()
        return _new_tuple(PutMessageResult, (_PUT_OK, (start,), (queue_offset,), timestamp, ""))

    def check_and_append(self, message: MessageInner, now_ms: int) -> PutMessageResult | None:
        """Append the record where :attr:`quick` did nothing.

        Nearly always the only reason is that the log file was not checked in this millisecond: then
        the quick form is tried once more. A message after a pause finds all caches cold, and the
        form here needs most of them.
        """
        if self.compiled is not None and now_ms != self._checked_ms:
            end = self._words[_LOG_END]
            if self.have_room(end, end, now_ms):
                done = self.quick(message, now_ms)
                if done is not None:
                    return done
        return self.append(message, now_ms)

    def put_alone(
        self,
        write_lock: WriteLock,
        clock: Callable[[], int] | None,
        asked: Callable[[], None],
        notify: Callable[[str], None],
        *,
        exclusive: bool,
    ) -> Callable[[MessageInner], PutMessageResult | None] | None:
        """The function that takes the write lock, puts a message and releases the lock in one step
        without Python code in between, while the write lock is kept, or no process has used it for
        a while. It returns None if nothing is done. None itself where nothing is compiled. To be
        called once.

        ``clock`` None: the system's. ``asked`` is called if another process asks for a write lock
        that is kept, ``notify`` with the topic if a process waits for messages. If each put is
        synced, the caller does that after the sync, and an OSError may leave a part of a record.
        """
        if self.compiled is None:
            return None
        self.compiled.guard(
            write_lock,
            write_lock.thread_mutex.locked,
            write_lock.lock_file,
            clock,
            asked,
            notify,
            exclusive,
            self._syncs_each,
        )
        put: Callable[[MessageInner], PutMessageResult | None] = self.compiled.put
        return put

    def _code_of(self, tags: str | None) -> int:
        code = tags_code(tags)
        if len(self._tags_codes) < _MOST_CODES:
            self._tags_codes[tags] = code
        return code

    def begin_run(self) -> None:
        """From now on, have room only where pages are ready."""
        self.in_run = True
        self._limit = -1
        if self.compiled is not None:
            self.compiled.use_log(None, -1, 0, -1, -1, -1, 0, False, None)

    def have_room(self, start: int, end: int, now_ms: int) -> bool:
        """Whether [start, end) lies in a log file that is open, still there and has room for it.

        From then on, up to ``_limit``, no more checks are needed within this millisecond; in a run
        the compiled form checks by itself whether the file is still there in the next ones.
        """
        self._limit = -1
        if self.compiled is not None:
            self.compiled.use_log(None, -1, 0, -1, -1, -1, 0, False, None)
        file = self._log_files.get(start - start % self._log_size)
        if file is None or end > self.checked_space_to:
            return False
        if now_ms != self._checked_ms:  # a system call, so once a millisecond
            if file.deleted:
                return False
            self._checked_ms = now_ms
        if file is not self._file:
            self._file = file
            self._map = file.by_descriptor if self._syncs_each else file.map
            self._first = file.file_from_offset
        if self._keys.put_in_all >= MOST_PENDING:
            self.in_run = True
        first = self._first
        reserved = min(file.reserved_to, self._log_size - BLANK_SIZE, self.checked_space_to - first)
        if end - first > reserved:
            return False
        limit = reserved
        if self.in_run:
            file.take_made_pages(start - first)
            ahead = LARGE if PAGE_SIZES.are_large and not self._syncs_each else LITTLE
            if end - start <= LARGEST_STORED and end - first > file.ready_to:
                stop = min(reserved, (end - first) // ahead * ahead + ahead)
                file.get_ready(start - first, stop, syncs_each=self._syncs_each)
            limit = min(reserved, file.ready_to)
        self._limit = limit
        if self.compiled is not None and type(file.map) is mmap:
            most = 0 if self._syncs_each else LARGEST_STORED  # to the map
            self.compiled.use_log(
                file.map, file.fd, first, limit, reserved, now_ms, most, self.in_run, file.pages
            )
        return True

    def learn(self, topic: str, queue_id: int, units: int = 1) -> bool:
        """Remember where the queue's next ``units`` are written; False if it cannot be remembered.

        Raises OSError if there are no blocks for them.
        """
        shared = self._shared
        slot = shared.slot(topic, queue_id)
        files = self._queues.get((topic, queue_id))
        if slot is None or files is None or self._queue_slots.get((topic, queue_id)) != slot:
            return False
        word = shared.slot_word(slot)
        self._words = shared.words
        unit_start = shared.next_offset(slot) * CQ_STORE_UNIT_SIZE
        file = files.opened.get(unit_start - unit_start % self._unit_size)
        if file is None:
            return False
        position = unit_start - file.file_from_offset
        end = position + units * CQ_STORE_UNIT_SIZE
        if end > file.size:
            return False
        tails = self._topics.setdefault(topic, {})
        known = tails.get(queue_id)
        windows = known.windows if known else Preallocation(OF_QUEUE, makes_pages=self._makes_pages)
        windows.reserve(file, position, end - position)
        tail = tails[queue_id] = _Tail(word, topic, file, windows)
        if known is not None and known.end < tail.end:  # it takes many units
            file.take_made_pages(position)
            file.get_ready(position, file.reserved_to)
        if self.compiled is not None and type(tail.map) is mmap:
            self.compiled.use_words(shared.words)
            self.compiled.learn(
                topic, queue_id, tail.topic_field, word, tail.map, tail.first, tail.last
            )
        return True

    def close(self) -> None:
        """Release the shared state and all maps; nothing is appended any more."""
        self._limit = -1
        self._words = self._map = self._file = None
        self._topics.clear()
        if self.compiled is not None:
            self.compiled.end()
