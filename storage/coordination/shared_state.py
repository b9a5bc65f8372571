"""The shared state: one small mapped file by which the writers of one store coordinate.

``<store>/rmqctl/shared`` is never replaced and never truncated; it grows when a store has more
queues than fit. All words are 8 bytes, native order, aligned, so each is read and written whole.
Beside it lies ``<store>/rmqctl/queues``, an append-only list of names: line k names the queue of
slot k, with a check sum (queue_names.py).

    byte 0                      words below, by :class:`Word`
    byte 4096                   256 waiter flags, one byte each (see wakeup.py)
    byte 8192                   256 words: what each waiter waits for
    byte 10240                  256 words: what each waiter sleeps on
    byte 16384                  slots of 2 words: next offset of the queue, and how much is synced

Only the holder of the write lock writes words (except those of requests for it, of its line, and
the waiters' words); readers take no lock. What each word means at each moment, and what a death
between two stores leaves: docs/internals/concurrency.md.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from storage.errors import (
    CorruptFileError,
    StoreBrokenError,
    StoreContradictionError,
    StoreVersionError,
    go_on_without,
)
from storage.files.bounded import MAX_OWN_SIZE, NO_FILE
from storage.files.fs import FileSystem
from storage.format.names import ABORT, LOCK, OURS
from storage.format.versions import FORMATS
from storage.platform.boot import boot_id

from .java_start import JavaStart, Steady, as_word, lock_mtime
from .queue_names import QueueNamesError, name_line, read_name_lines

if TYPE_CHECKING:
    from mmap import mmap

    from storage.files.read_files import ReadOnlyFiles, StoreFiles

SHARED_STATE_NAME: Final = "shared"
QUEUES_NAME: Final = "queues"
SHARED_STATE_VERSION: Final = FORMATS["shared"]
SHARED_STATE_MAGIC: Final = 0x726D7163_00000000 | SHARED_STATE_VERSION
WAITER_FLAGS: Final = 4096
WAITER_TOPICS: Final = 8192
WAITER_WAKERS: Final = 10240
MAX_WAITERS: Final = 256
SLOTS: Final = 16384
SLOT_SIZE: Final = 16
FIRST_SLOTS: Final = 4096
STATE_OPEN: Final = 1
STATE_CLOSED: Final = 2
STAGE_NONE: Final = 0
STAGE_RECORDS: Final = 1
STAGE_DISPATCH: Final = 2
STAGE_KEYS: Final = 3
STAGE_DELETE: Final = 4
SYNC_FAILED: Final = 1
FILES_CONTRADICT: Final = 2
GONE: Final = -0x676F6E65
"""Next offset of a slot whose queue was deleted: it is never used again, and a queue of the same
name gets another slot. So each process that knows the slot notices that its files are gone. Any
negative number does; this one is no likely value of a damaged word."""


class Word:
    """Numbers of the words of the shared state.

    Plain ints: looking up a member of an enum costs more than storing a word, and one message
    stores twenty.
    """

    MAGIC = 0  # magic and version; written last, zeroed first
    BOOT_HIGH = 1
    BOOT_LOW = 2
    DEVICE = 3  # a copied store carries a copied file: device and inode show it
    INODE = 4
    LOCK_MTIME = 5  # of Java's lock file, ns: Java writes it at each start
    STATE = 6
    FROM = 7  # intent: the batch being written: [FROM, TO) of the commit log
    TO = 8
    STAGE = 9
    LOG_END = 10  # end of the last whole record
    FLUSHED_TO = 11  # the device has everything below
    FAILED = 12  # SYNC_FAILED or FILES_CONTRADICT: all processes refuse to write
    HOLDER_PID = 13
    KEYS_FROM = 14  # the index files have all keys of records below, and none of later ones
    FILES_GENERATION = 15  # number of deletions of files
    LOG_MIN = 16
    KEYS_TO = 17  # in stage 3 the keys of [KEYS_FROM, KEYS_TO) are being put into them
    NAMES_BYTES = 18  # how much of the names file counts: a line is a slot
    LAST_STORE_TIMESTAMP = 19
    INDEX_FILE = 20  # 17-digit name of the index file that is written now, 0 = none
    UNDO_INDEX_FILE = 21  # the index before stage 3: file, header fields, count
    UNDO_INDEX_HEADER = 22  # six words: 22..27
    RIVALS = 29  # a Java broker tried to start beside us since the first writer came
    INDEX_BASE = 30  # index files up to this one are ours; later ones if they are kept
    LOCK_WANTED = 32  # changes at each request for the write lock; written without it
    CONFIGS = 33  # changes when topics.json or subscriptionGroup.json was replaced
    MADE = 34  # when the shared state was made, ns: differs after it was made anew
    DELETING = 35  # in stage 4: 1 + a slot of the topic whose queues are being deleted
    LOCK_WANTED_ONCE = 36  # as LOCK_WANTED, for a request that interrupts a turn; stored before it
    LOCK_HEARD_ONCE, LINE_SERVED = 37, 38  # the last such that was answered; waits that ended
    LINE_INTERRUPTED = 39  # what processes sleep on that wait: see write_lock_line.py
    LINE_ONCE, LINE_TURNS = 40, 41


_REMEDY: Final = (
    "the next process that opens the store for writing, when no other has it open, makes it anew"
)


# Names of this module are found faster than attributes of a class.
_MAGIC: Final = Word.MAGIC
_LOCK_MTIME: Final = Word.LOCK_MTIME
_MADE: Final = Word.MADE
_LOG_END: Final = Word.LOG_END
_KEYS_FROM: Final = Word.KEYS_FROM
_FILES_GENERATION: Final = Word.FILES_GENERATION
_WORDS_END: Final = 64
_LOOKS: Final = 20
WORD_NAMES: Final = {number: name for name, number in vars(Word).items() if name.isupper()}


class SharedState:
    """The mapped file and the names of its slots.

    ``words`` is a view of native 8-byte words. Each writer has its own, used under the write lock;
    threads may share that of a reader.
    """

    def __init__(self, fs: FileSystem, root: Path, *, writable: bool) -> None:
        """Map the shared state; creates it when writable. Raises OSError."""
        self._fs = fs
        self._root = root
        self.path = root / OURS / SHARED_STATE_NAME
        self._names_path = root / OURS / QUEUES_NAME
        self._writable = writable
        self._lock = threading.Lock()  # guards the names and the mapping while it grows
        self._names: list[tuple[str, int]] = []
        self._slots: dict[tuple[str, int], int] = {}
        self._names_read = 0, 0
        """Bytes of the file of names that were read, and number of names in them."""
        self._names_fd = -1
        self.fd = fs.open(self.path, writable=writable, create=writable)
        try:
            size = self._size()
            least = SLOTS + FIRST_SLOTS * SLOT_SIZE
            if writable:
                # Not by set_length first: if there is no space, a later opener would map a hole.
                size = max(size, least)
                fs.reserve(self.fd, 0, size)
            elif size < least:
                raise FileNotFoundError(self.path)
            self._attach(size)
        except BaseException:
            fs.close(self.fd)
            raise

    def _size(self) -> int:
        """Length of the file in whole slots; what is past that, or past 128 MiB, is damage."""
        size = min(self._fs.size(self.fd), MAX_OWN_SIZE)
        return size - size % SLOT_SIZE

    def places(self) -> int:
        """Number of slots that the file has room for now."""
        return (self._size() - SLOTS) // SLOT_SIZE

    def _attach(self, size: int) -> None:
        self.map: mmap = self._fs.map(self.fd, size, writable=self._writable)
        self.words: Any = self._fs.words(self.map)
        self._capacity = (size - SLOTS) // SLOT_SIZE

    # -- validity -----------------------------------------------------------------------------

    def fail(self, reason: int) -> None:
        """Have all processes refuse to write until the next first writer makes this state anew.

        ``reason``: SYNC_FAILED or FILES_CONTRADICT; the first one stays.
        """
        self.words[Word.FAILED] = self.words[Word.FAILED] or reason

    def refuse_after_failure(self) -> None:
        """Raise StoreBrokenError if a sync has failed, in whatever process, and its
        StoreContradictionError if files of the store contradicted each other."""
        reason = self.words[Word.FAILED]
        if reason == FILES_CONTRADICT:
            raise StoreContradictionError(
                f"files of {self._root} contradicted each other earlier; end all its writers: the "
                "next one makes them right"
            )
        if reason:
            raise StoreBrokenError(
                f"a sync of {self._root} failed earlier; end all its writers and open it anew"
            )

    def check_version(self) -> None:
        """Raise StoreVersionError if a newer rmqctl made this file.

        That of an older one does not count: the next first writer makes it anew.
        """
        magic = self.words[Word.MAGIC]
        if magic >> 32 == SHARED_STATE_MAGIC >> 32 and magic > SHARED_STATE_MAGIC:
            raise StoreVersionError(self.path, magic & 0xFFFFFFFF, SHARED_STATE_VERSION)

    def distrust(self, *, log_file_size: int) -> str | None:
        """Why the first writer must not trust this shared state, or None if it may.

        It is trusted only if it is not stale, no sync failed, and the abort file is there if and
        only if the state is open (sequences: docs/internals/concurrency.md).
        """
        words = self.words
        stale = self.stale(log_file_size=log_file_size)
        if stale is not None:
            return stale
        if words[Word.FAILED]:
            return "a sync failed, or files contradicted each other"
        if (self._root / ABORT).exists() != (words[Word.STATE] == STATE_OPEN):
            return "the abort file disagrees"
        from .shared_state_check import contradiction

        wrong = contradiction(self, self._root, log_file_size)
        if wrong is not None:
            return wrong
        try:
            self.queues()
        except CorruptFileError as error:
            go_on_without(error, "it is made anew from the store's own files")
            return "the names of queues are damaged"
        return None

    def stale(self, *, log_file_size: int) -> str | None:
        """Why the words cannot be those of the store as it is, or None; used by readers.

        Magic, boot, device and inode, the time of Java's last start and the length of the last
        log file must all agree.
        """
        words = self.words
        if words[Word.MAGIC] != SHARED_STATE_MAGIC:
            return "no shared state"
        if (words[Word.BOOT_HIGH], words[Word.BOOT_LOW]) != boot_id():
            return "another boot"
        info = os.fstat(self.fd)
        if (words[Word.DEVICE], words[Word.INODE]) != _place(info):
            return "a copy"
        if words[Word.LOCK_MTIME] != lock_mtime(str(self._root / LOCK)):
            return "a Java broker ran"
        from .shared_state_check import stale_log

        while True:
            end = words[Word.LOG_END]
            found = stale_log(self._root, end, log_file_size)
            if found is None or words[Word.LOG_END] == end:
                return found  # else the file may have been deleted as an old one

    def invalidate(self) -> None:
        """Forget everything; until :meth:`validate` readers find their own bounds."""
        words = self.words
        words[Word.MAGIC] = 0
        for number in range(1, _WORDS_END):
            words[number] = 0
        for number in range(SLOTS // 8, (SLOTS + self._capacity * SLOT_SIZE) // 8):
            if words[number]:
                words[number] = 0  # a slot without a name has nothing: contradiction() checks it
        with self._lock:
            self._fs.set_length(self._open_names(), 0)
            self._names, self._slots, self._names_read = [], {}, (0, 0)

    def validate(self) -> None:
        """Mark all words as right; the magic is written last."""
        words = self.words
        high, low = boot_id() or (0, 0)
        info = os.fstat(self.fd)
        words[Word.BOOT_HIGH], words[Word.BOOT_LOW] = high, low
        words[Word.DEVICE], words[Word.INODE] = _place(info)
        words[Word.LOCK_MTIME] = lock_mtime(str(self._root / LOCK))
        words[Word.MADE] = time.time_ns()
        words[Word.MAGIC] = SHARED_STATE_MAGIC

    # -- slots --------------------------------------------------------------------------------

    def slot(self, topic: str, queue_id: int) -> int | None:
        """Number of the queue's slot, or None if the queue has none yet, or was deleted."""
        found = self._slots.get((topic, queue_id))
        if found is not None and found < self._capacity:  # as next_offset, nearly always
            known: int = self.words[(SLOTS + found * SLOT_SIZE) // 8]
            if known != GONE:
                return found
        if self.words[Word.NAMES_BYTES] != self._names_read[0]:
            self._read_names()
            found = self._slots.get((topic, queue_id))
        return None if found is None or self.next_offset(found) == GONE else found

    def slots_of(self, topic: str) -> list[int]:
        """The slots of a topic's queues, those of deleted queues too."""
        return [slot for slot, (name, _) in enumerate(self.queues()) if name == topic]

    def add_slot(self, topic: str, queue_id: int) -> int:
        """Give the queue a slot; needs the write lock.

        The slot of a name is its line, and NAMES_BYTES alone decides which lines count: with a
        separate count of slots, a death between the two stores would move all later names by one.
        """
        self._read_names()
        found = self.slot(topic, queue_id)
        if found is not None:
            return found  # its writer died right after naming it
        with self._lock:
            number = len(self._names)
            if number >= self._capacity:
                self._grow(2 * self._capacity)
            words = self.words
            line = name_line(number, topic, queue_id)
            self._fs.write(self._open_names(), line, words[Word.NAMES_BYTES])
            base = (SLOTS + number * SLOT_SIZE) // 8
            words[base] = 0
            words[base + 1] = 0
            words[Word.NAMES_BYTES] = words[Word.NAMES_BYTES] + len(line)
            self._names.append((topic, queue_id))
            self._slots[topic, queue_id] = number
            self._names_read = words[Word.NAMES_BYTES], number + 1
            return number

    def queues(self) -> list[tuple[str, int]]:
        """The queue of each slot, in slot order; one that was deleted and made anew comes twice."""
        if self.words[Word.NAMES_BYTES] != self._names_read[0]:
            self._read_names()
        return list(self._names)

    def pending_keys(self) -> int:
        """1 + the log offset from which index keys are pending, 0 = none."""
        start = int(self.words[Word.KEYS_FROM])
        return 1 + start if start < self.words[Word.LOG_END] else 0

    def next_offset(self, slot: int) -> int:
        """The queue offset that the next message of the queue gets."""
        word = self.slot_word(slot)  # first: it may map more
        return int(self.words[word])

    def next_offsets(self, count: int) -> list[int]:
        """The same of the first slots, of all at once."""
        if not count:
            return []
        self.slot_word(count - 1)  # it may map more
        step = SLOT_SIZE // 8
        found: list[int] = self.words[SLOTS // 8 :: step][:count].tolist()
        return found

    def queue_end(self, topic: str, queue_id: int) -> int:
        """The same by name, 0 if it has no slot: used at every read."""
        slot = self._slots.get((topic, queue_id))
        if slot is None or slot >= self._capacity:
            slot = self.slot(topic, queue_id)
            return 0 if slot is None else self.next_offset(slot)
        end: int = self.words[(SLOTS + slot * SLOT_SIZE) // 8]
        if end == GONE:
            slot = self.slot(topic, queue_id)
            return 0 if slot is None else self.next_offset(slot)
        return end

    def mapped_offset(self, slot: int) -> int:
        """The same for a slot number, 0 for a slot that is not mapped."""
        return self.next_offset(slot) if slot < self._capacity else 0

    def set_next_offset(self, slot: int, value: int) -> None:
        """Store the queue's next offset; needs the write lock."""
        word = self.slot_word(slot)
        self.words[word] = value

    def synced_offset(self, slot: int) -> int:
        """The device has all units of the queue below this offset."""
        word = self.slot_word(slot) + 1
        return int(self.words[word])

    def set_synced_offset(self, slot: int, value: int) -> None:
        """Store the queue's synced offset."""
        word = self.slot_word(slot) + 1
        self.words[word] = value

    def close(self) -> None:
        """Unmap and close; what other processes see does not change.

        This process goes on seeing the last state: a thread whose put returns just now still reads
        which waiters it must wake.
        """
        descriptors, self._names_fd, self.fd = (self._names_fd, self.fd), -1, -1
        for descriptor in descriptors:
            if descriptor >= 0:
                self._fs.close(descriptor)
        left: Any = bytearray(self.map[:])
        self.map, self.words = left, memoryview(left).cast("q")  # the mapping goes with its views

    def slot_word(self, slot: int) -> int:
        """Index of the slot's first word; the word is mapped then."""
        if slot >= self._capacity:
            with self._lock:
                self._grow(slot + 1)
        return (SLOTS + slot * SLOT_SIZE) // 8

    def _grow(self, slots: int) -> None:
        """Map at least this many slots; a writer extends the file, readers find it extended."""
        size = self._size()
        wanted = SLOTS + slots * SLOT_SIZE
        if size < wanted and self._writable:
            self._fs.reserve(self.fd, 0, wanted)
            size = wanted
        self._attach(size)  # views of the old map stay valid: both maps show the same file

    def _open_names(self) -> int:
        if self._names_fd < 0:
            self._names_fd = self._fs.open(self._names_path, writable=self._writable, create=True)
        return self._names_fd

    def _read_names(self) -> None:
        with self._lock:
            found = self._unread_names()
            if found is None:
                return
            names, end, count = found
            del self._names[count:]  # of a read that a signal interrupted: they are read again
            for name in names:
                self._slots[name] = len(self._names)
                self._names.append(name)
            self._names_read = end, len(self._names)

    def _unread_names(self) -> tuple[list[tuple[str, int]], int, int] | None:
        """The names that were added since the last read, where they end, and how many are known."""
        while True:
            end = self.words[Word.NAMES_BYTES]
            if end < self._names_read[0]:  # a first writer began anew
                self._names, self._slots, self._names_read = [], {}, (0, 0)
            read, count = self._names_read
            if end == read:
                return None
            try:
                return self._names_between(read, end, count), end, count
            except CorruptFileError:
                if self.words[Word.NAMES_BYTES] == end:
                    raise  # else a first writer has cut the file meanwhile

    def _names_between(self, read: int, end: int, count: int) -> list[tuple[str, int]]:
        """Read the names in a part of their file; the first one is that of slot ``count``."""
        try:
            fd = self._fs.open(self._names_path, writable=False)
        except FileNotFoundError:
            raise CorruptFileError(self._names_path, 0, f"it is missing ({_REMEDY})") from None
        except OSError as error:
            if error.errno not in NO_FILE:
                raise
            raise CorruptFileError(self._names_path, 0, f"it is no file ({_REMEDY})") from None
        try:
            size = self._fs.size(fd)
            if size < end:
                what = f"it has {size} bytes of {end} ({_REMEDY})"
                raise CorruptFileError(self._names_path, size, what)
            return read_name_lines(self._fs.read(fd, end - read, read), count)
        except IsADirectoryError:
            raise CorruptFileError(self._names_path, 0, f"it is a folder ({_REMEDY})") from None
        except QueueNamesError as error:
            raise CorruptFileError(
                self._names_path, read + error.position, f"{error.reason} ({_REMEDY})"
            ) from None
        finally:
            self._fs.close(fd)


def _place(info: os.stat_result) -> tuple[int, int]:
    """Device and inode of a file, as words; some file systems number from 2^63 on."""
    return as_word(info.st_dev), as_word(info.st_ino)


class SharedStateBounds:
    """The bounds of a store that rmqctl processes write, read from their shared state without a
    lock.

    Implements :class:`storage.read.bounds.Bounds`.
    """

    def __init__(self, shared: SharedState) -> None:
        self.shared = shared
        self.first_made = self.made()  # before its names are read
        self.lock_time = JavaStart(str(shared.path.parent.parent / LOCK))

    @classmethod
    def open(cls, root: Path, *, log_file_size: int) -> Self | None:
        """Bounds from the shared state of ``root``, or None if it has none that can be trusted.

        Takes no lock and creates nothing.
        """
        try:
            shared = SharedState(FileSystem(), root, writable=False)
        except OSError:
            return None
        from .shared_state_check import contradiction

        bounds = cls(shared)
        if shared.stale(log_file_size=log_file_size) or contradiction(shared, root, log_file_size):
            bounds.close()
            return None
        try:
            shared.queues()
        except CorruptFileError as error:
            bounds.close()
            go_on_without(error, "the queues are read from their own files")
            return None
        return bounds

    def log_end(self) -> int:
        """End of the last whole record, exclusive."""
        end: int = self.shared.words[_LOG_END]
        return end

    def finished_to(self) -> int:
        """Where the log ends when the batch of a dead writer is finished
        (append/interrupted_append.py)."""
        words = self.shared.words
        end: int = words[Word.TO if words[Word.STAGE] == STAGE_DISPATCH else _LOG_END]
        return end

    def keys_from(self) -> int:
        """The index files have all keys of records below this log offset."""
        return int(self.shared.words[_KEYS_FROM])

    def index_is_whole(self) -> bool:
        """True: the writers see to it."""
        return True

    def next_offset(self, topic: str, queue_id: int) -> int:
        """The queue's max offset (exclusive), 0 for a queue that has no message."""
        return self.shared.queue_end(topic, queue_id)

    def agrees(self, topic: str, queue_id: int, row: ReadOnlyFiles) -> bool:
        """Whether a queue can end where the shared state says, by its files; for a queue's first
        read."""
        from .shared_state_check import queue_agrees

        for _ in range(_LOOKS):
            if queue_agrees(self.shared, topic, queue_id, row):
                return True
            time.sleep(0.0005)  # a writer may be between two stores
        return False

    def first_contradiction(
        self, first: tuple[str, int], files: StoreFiles
    ) -> tuple[str, int] | None:
        """A queue that cannot end where the shared state says, None if there is none.

        ``first`` is looked at before the others. Each is looked at once.
        """
        from .shared_state_check import queue_agrees

        for topic, queue_id in (first, *self.shared.queues()):
            row = files.queue(topic, queue_id)
            if row is not None and not queue_agrees(self.shared, topic, queue_id, row):
                return topic, queue_id
        return None

    def made(self) -> int:
        """When the shared state was made; it differs after it was made anew."""
        return int(self.shared.words[Word.MADE])

    def queues(self) -> list[tuple[str, int]]:
        """All queues that ever got a unit; a writer may have died after naming another one."""
        names = self.shared.queues()
        ends = self.shared.next_offsets(len(names))
        return [queue for queue, end in zip(names, ends, strict=True) if end > 0]

    def files_generation(self) -> int:
        """A number that changes when files are deleted."""
        return int(self.shared.words[_FILES_GENERATION])

    def steady(self, generation: int, *, checked: bool) -> Steady:
        """What a read in one step compares first; ``checked``: what :meth:`valid` does, too."""
        known = self.lock_time.known if checked else None
        return self.shared.words, known, self.first_made, generation

    def valid(self) -> bool:
        """Whether the shared state still describes the store: no Java broker has run meanwhile,
        and no first writer has made it anew, with other slots."""
        words = self.shared.words
        return bool(
            words[_MAGIC] == SHARED_STATE_MAGIC
            and words[_MADE] == self.first_made
            and words[_LOCK_MTIME] == self.lock_time.ns()
        )

    def close(self) -> None:
        """Release the shared state."""
        self.lock_time.close()
        self.shared.close()
