"""The store for writers: open, put, read, wait, flush, close. Wiring only.

Reading uses a :class:`storage.readonly.StoreView` with maps of its own; writing uses the write lock
and the :class:`storage.append.append.Appender`. Durability: FORMAT.md and flush.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from storage.append.flush import Flusher, FlushService
from storage.append.group_put import GroupPut
from storage.coordination.leadership import TimedServices
from storage.coordination.locks import ForkAware, at_fork
from storage.coordination.shared_state import SharedStateBounds, Word
from storage.coordination.waiter import Waiter
from storage.coordination.wakeup import Notifier

from .clock import now_ms as now_ms
from .config import FlushDiskType, StoreConfig
from .deadlines import MAX_CLOSE_S
from .errors import (
    StoreBrokenError,
    StoreClosedError,
    StoreError,
    StoreNotFoundError,
    StoreNotWritableError,
)
from .files.access import is_descriptor_missing, not_writable
from .files.fs import FileSystem
from .format.encode import prepare
from .format.prepared_table import PreparedTable
from .layout import create_store, was_created_here
from .results import PutMessageResult, PutMessageStatus
from .session import Session

if TYPE_CHECKING:
    from storage.append.file_deletion import DeletedFiles
    from storage.append.lmq import LmqPut
    from storage.append.send_template import SendTemplate
    from storage.format.message import Message

    from .format.encode import MessageInner
    from .format.prepared import PreparedRecords
    from .readonly import StoreView
    from .recovery.store import RecoveryReport

LARGE_BODY: Final = 16 << 10
"""Bytes of a body from which its checksum takes too long to compute under the write lock."""
# Names of this module are found faster than attributes of a class.
_FAILED: Final = Word.FAILED
_STAGE: Final = Word.STAGE
_LOG_END: Final = Word.LOG_END
_FLUSHED_TO: Final = Word.FLUSHED_TO
_WANTED: Final = Word.LOCK_WANTED
_CONFIGS: Final = Word.CONFIGS


class MessageStore(ForkAware):
    """A store opened for writing, one of any number of such openings in any processes.

    All methods may be called from any thread. After a fork the child must open the store itself.
    """

    __slots__ = (
        "_append_one",
        "_appender",
        "_broken",
        "_clock",
        "_closed",
        "_exclusive",
        "_flush_service",
        "_flusher",
        "_fs",
        "_full_index",
        "_group_put",
        "_has_waiters",
        "_put_alone",
        "_ringer",
        "_session",
        "_shared",
        "_turns",
        "_view",
        "_waiter",
        "_write_lock",
        "config",
        "root",
        "services",
    )

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        *,
        exclusive: bool,
        clock: Callable[[], int],
        fs: FileSystem,
        gate_timeout_ms: int,
    ) -> None:
        self.root = root
        self.config = config
        self._clock = clock
        self._fs = fs
        self._closed = False
        self._broken: str | None = None
        self._view: StoreView | None = None
        self._session = Session(fs, root, config, gate_timeout_ms=gate_timeout_ms)
        shared = self._shared = self._session.shared
        write_lock = self._write_lock = self._session.write_lock
        self._appender = self._session.appender
        self._waiter = Waiter(shared, root)
        self._ringer = Notifier(shared, root)
        self._flusher = Flusher(fs, root, config, shared, write_lock)
        self.services = TimedServices(root)
        self._flush_service = FlushService(
            self._flusher,
            write_lock,
            config,
            self.services,
            sync_all=self._sync_all,
            pending_keys=shared.pending_keys,
            put_keys=self._put_keys,
            make_next_file=self._appender.make_next_file,
            on_error=self._break,
        )
        self.services.add(self._session.undo_rivals, interval_ms=1_000, first_ms=1_000)
        if was_created_here(root):
            self.services.add(self._clean_when_due, interval_ms=10_000, first_ms=60_000)
        at_fork(self)
        # For put_message, where every attribute look-up counts:
        self._append_one = self._appender.one.quick
        self._full_index = self._appender.index.full
        self._has_waiters = self._ringer.has_waiters
        self._exclusive = exclusive
        self._turns = write_lock.thread_mutex
        self._put_alone = self._appender.one.put_alone(
            write_lock,
            None if clock is now_ms else clock,
            write_lock.give_up,
            self._ringer.wake_for,
            exclusive=exclusive,
        )
        self._group_put = (
            self._join() if config.flush_disk_type is FlushDiskType.SYNC_FLUSH else None
        )
        if exclusive:
            try:
                write_lock.keep()
            except BaseException:
                self.close()
                raise

    @classmethod
    def open(
        cls,
        root: Path | str,
        config: StoreConfig | None = None,
        *,
        exclusive: bool = False,
        clock: Callable[[], int] = now_ms,
        fs: FileSystem | None = None,
        gate_timeout_ms: int = 10_000,
    ) -> Self:
        """Open an existing store for writing; runs recovery if no other process has it open.

        ``config`` None takes the sizes that the store records, or detects them from its files.
        ``exclusive`` keeps the write lock until close: no lock a message, no other writer. Raises
        StoreNotFoundError, StoreInUseError (a Java broker), WriteLockTimeoutError,
        StoreNotWritableError, UnsupportedStoreError, StoreVersionError, CorruptFileError.
        """
        from .detect import detect_config

        root = Path(root).absolute()
        if not root.is_dir():
            raise StoreNotFoundError(root, "not a folder" if root.exists() else "no such folder")
        return cls(
            root,
            detect_config(root, config),
            exclusive=exclusive,
            clock=clock,
            fs=fs or FileSystem(),
            gate_timeout_ms=gate_timeout_ms,
        )

    @classmethod
    def create(
        cls, root: Path | str, config: StoreConfig | None = None, *, fs: FileSystem | None = None
    ) -> None:
        """Make an empty store in a folder that is missing or empty.

        Settings of ``config`` that differ from the defaults are recorded: an opener without a
        ``config`` gets them, ``flush_disk_type`` too.

        Raises StoreNotWritableError, also when the folder holds something.
        """
        root = Path(root).absolute()
        try:
            create_store(fs or FileSystem(), root, config or StoreConfig())
        except OSError as error:
            raise not_writable(root, error) from error

    # -- writing ------------------------------------------------------------------------------

    def put(self, records: PreparedRecords | LmqPut, *, whole: bool = False) -> PutMessageResult:
        """Append records in order; ``whole`` places them in one file, as RocketMQ a batch. A LmqPut
        is one message that goes to LMQs too.

        When it returns PUT_OK they are readable at their offsets after any kill of any process, and
        with SYNC_FLUSH also after a power loss. Statuses that mean "not stored" leave no trace.
        Raises StoreBrokenError after a failed write or sync: then the store refuses writes until
        it is opened anew. Raises StoreNotWritableError if no descriptor is free: nothing is stored.
        With SYNC_FLUSH also if the sync cannot begin, and says so: the records are stored, and not
        known to be on the device. Blocks for the write lock (WriteLockTimeoutError).
        """
        self.check_usable()
        now, put_batch = None, self._appender.one.put_batch
        if put_batch and type(records) is PreparedTable and self._flush_service.started:
            now = put_batch(*records.parts)
            if type(now) is PutMessageResult:
                return now
        with self._write_lock.held():
            begin = self._shared.words[_LOG_END]
            try:
                result = self._appender.append(records, now or self._clock(), whole=whole)
            except BaseException as error:
                self._recover_from(error, begin)
                raise
            if self._full_index:
                self._note_full_index()
            end = self._shared.words[_LOG_END]
        if result.status is not PutMessageStatus.PUT_OK:
            return result
        result = self._see_to_sync(result, end)
        if self._ringer.has_waiters():
            self._ringer.notify({topic for topic, _ in records.queues})
        return result

    def put_message(self, message: MessageInner) -> PutMessageResult:
        """Append one message; what ``put(prepare((message,)))`` does, in half the time. Raises
        InvalidMessageError for a topic or properties that their length fields cannot hold."""
        if self._closed or self._broken is not None or len(message.body) > LARGE_BODY:
            return self.put(prepare((message,)))
        if self._group_put is not None:
            return self._group_put.put(message)
        if self._put_alone is not None and self._flush_service.started:
            found = self._put_alone(message)
            if found is not None:
                return found
        words = self._shared.words
        write_lock = self._write_lock
        if self._turns.locked():
            write_lock.wait_turn()
        with self._turns:  # held() takes 2 us for the same
            try:
                if not write_lock.holding:
                    write_lock.take()
                begin = words[_LOG_END]
                try:
                    if words[_FAILED] or words[_STAGE]:
                        self._appender.get_ready()
                    now = self._clock()
                    result = self._append_one(message, now)
                    if result is None:
                        result = self._appender.append_message(message, now)
                except BaseException as error:
                    self._recover_from(error, begin)
                    raise
                if self._full_index:
                    self._note_full_index()
                end = words[_LOG_END]
            finally:
                if not self._exclusive and (
                    not write_lock.holding or words[_WANTED] != write_lock.heard
                ):
                    try:
                        write_lock.give_back()
                    except BaseException:  # of a signal that came just now
                        write_lock.give_back()
                        raise
        if not self._flush_service.started:
            result = self._see_to_sync(result, end)
        if self._has_waiters() and result.status is PutMessageStatus.PUT_OK:
            self._ringer.wake_for(message.topic)
        return result

    def put_sent(self, message: Message, queue_id: int, template: SendTemplate) -> Any:
        """Append a plain message by a template, and give an answer of its ``result_type``; durable
        as ``put_message``. None: nothing is done, and the caller must use ``put_message``."""
        put_sent = self._appender.one.put_sent
        if put_sent is None or self._broken is not None or not self._flush_service.started:
            return None
        return put_sent(message, queue_id, template)

    def put_sent_batch(
        self, messages: Sequence[Message], queue_id: int, template: SendTemplate
    ) -> Any:
        """Append plain messages of one topic that have their ids, as ``put_sent`` one of them.

        Gives an answer of the template's ``result_type``, or what ``encode_sent`` of
        storage.format.plain_message gives: then nothing is done, and the caller puts the records
        with ``put``. None: nothing is done, and the caller has to encode them.
        """
        put_sent_batch = self._appender.one.put_sent_batch
        if put_sent_batch is None or self._broken is not None or not self._flush_service.started:
            return None
        return put_sent_batch(messages, queue_id, template)

    def _join(self) -> GroupPut:
        """Make threads put single messages together: each waits for the device."""
        return GroupPut(
            self._session,
            self._flusher,
            self._ringer,
            self._clock,
            recover_from=self._recover_from,
            note_full_index=self._note_full_index,
            at_once=self._put_alone,
            alone=lambda message: self.put(prepare((message,))),
        )

    def _see_to_sync(self, result: PutMessageResult, end: int) -> PutMessageResult:
        """Sync now or request a later sync, as flushDiskType says."""
        if result.status is not PutMessageStatus.PUT_OK:
            return result
        if self._group_put is not None:
            return result._replace(status=self._flusher.sync_put(end))
        if not self._flush_service.started:
            self._flush_service.start()
        return result

    def _recover_from(self, error: BaseException, begin: int | None = None) -> None:
        """After an error inside a batch: put the files in order while the write lock is still
        held. ``begin``: where the log ended before it; None if that is unknown."""
        words = self._shared.words
        if words[_LOG_END] == begin and not words[_STAGE] and is_descriptor_missing(error):
            raise StoreNotWritableError(
                self.root,
                f"{error}; nothing of this call is stored, the next one may succeed: close files "
                "or raise 'ulimit -n'",
            ) from error
        try:
            self._appender.resolve()
        except (OSError, StoreBrokenError) as second:
            self._broken = str(second)
        if isinstance(error, OSError):
            self._broken = f"writing {self.root} failed: {error.strerror or error}"
            raise StoreBrokenError(
                f"{self._broken}; this message may be stored or not, everything acknowledged is; "
                "mend that and open the store anew"
            ) from error

    def _note_full_index(self) -> None:
        for path in self._appender.index.full_files():
            try:
                self._flusher.note_full_index(path)
            except OSError:  # no descriptor, or a Java broker is starting: at the next put
                return
            self._appender.index.noted()

    def flush(self) -> None:
        """Sync everything that was put so far, queues and index too, to the device. Blocks.

        Raises StoreBrokenError after a failed sync, StoreNotWritableError if it cannot begin, or
        the checkpoint cannot be written; the next one may succeed.
        """
        self.check_usable()
        with self.write_lock():
            self._sync_all()

    def sync_log_to(self, end: int) -> None:
        """Return when the device has the log up to ``end``; at once if it has. Raises as
        ``flush``."""
        self.check_open()
        if self._shared.words[_FLUSHED_TO] < end:
            self._flusher.sync_log()

    def _sync_all(self) -> None:
        self._put_keys()
        self._flusher.sync_all()

    def _put_keys(self) -> None:
        """Put the index keys of single messages that are still pending."""
        try:
            self._appender.put_keys()
        except BaseException as error:
            if not self._shared.words[_STAGE] and is_descriptor_missing(error):
                raise StoreNotWritableError(
                    self.root,
                    f"{error}; all that was put is stored, and the next sync puts its keys",
                ) from error
            self._recover_from(error)
            raise
        if self._full_index:
            self._note_full_index()

    def clean(
        self,
        *,
        manual: bool = False,
        reserved_ms: int | None = None,
        before: int | None = None,
    ) -> DeletedFiles:
        """Delete log, queue and index files whose time is over; never the last of a kind.

        ``manual``: at whatever hour; ``reserved_ms`` then stands for fileReservedTime. ``before``:
        only log files that begin before this offset of the log.
        Runs by itself every 10 s in one process of a store that rmqctl made (start_services). Works
        after a failed write, too: that of a full disk ends by it. Raises StoreBrokenError after a
        failed sync.
        """
        from storage.append.file_deletion import Retention

        with self.write_lock():
            self._shared.refuse_after_failure()
            retention = Retention(self._fs, self.root, self.config, self._shared, self._appender)
            return retention.run(
                self._clock(), manual=manual, reserved_ms=reserved_ms, before=before
            )

    def _clean_when_due(self) -> None:
        """Raises CorruptFileError of a damaged file, after what could be deleted is."""
        damaged = self.clean().damaged
        if damaged:
            raise damaged[0]

    def delete_queues(self, topic: str, before: Callable[[], None] = lambda: None) -> int:
        """Delete all queues of a topic, and leave its records; gives how many there were.

        Other processes may read and write the store meanwhile. ``before`` is called first, under
        the same write lock, when nothing refuses the deletion. The next message of each queue gets
        offset 0. On the device when this returns. Raises what ``before`` raises,
        StoreNotWritableError and CorruptFileError: nothing has happened unless it has returned.
        """
        self.check_usable()
        may_begin = False  # an append, or a deletion, of a dead writer is finished first

        def nothing_refuses() -> None:
            nonlocal may_begin
            before()
            may_begin = True

        with self._write_lock.held():
            try:
                return self._appender.delete_queues(topic, nothing_refuses)
            except OSError as error:
                reason = error.strerror or str(error)
                if may_begin and self._shared.words[_STAGE]:
                    reason += "; the next process that writes the store finishes the deletion"
                path = Path(error.filename) if error.filename else self.root
                raise StoreNotWritableError(path, reason) from error

    def start_services(self) -> None:
        """Start the background thread: regular syncs, and the timed services if elected."""
        self.check_open()
        self._flush_service.start()

    @contextmanager
    def write_lock(self) -> Iterator[None]:
        """Hold the right to append and to replace config files for a block (milliseconds)."""
        self.check_open()
        with self._write_lock.held():
            yield

    def config_changes(self) -> int:
        """A number that changes when topics or groups are changed, in any process."""
        return int(self._shared.words[_CONFIGS])

    # -- reading ------------------------------------------------------------------------------

    @property
    def view(self) -> StoreView:
        """The store for reading; shows everything that was put by any process."""
        if self._view is None or self._closed:
            self.check_open()
            from .readonly import StoreView

            self._view = StoreView(self.root, self.config, SharedStateBounds(self._shared))
        return self._view

    def queues(self) -> list[tuple[str, int]]:
        """As ``StoreView.queues``, without loading the readers of messages."""
        self.check_open()
        return sorted(SharedStateBounds(self._shared).queues())

    @property
    def log_end(self) -> int:
        """Commit log offset after the last whole record."""
        self.check_open()
        return int(self._shared.words[_LOG_END])

    def wait(
        self, known_log_end: int, timeout_ms: int, topics: Collection[str] | None = None
    ) -> int:
        """Wait until the log has grown beyond ``known_log_end`` with records for ``topics`` (None:
        any) or ``timeout_ms`` is over; gives its end. Wakes within a millisecond of a put in any
        process; may come back early. For one thread at a time."""
        self.check_open()
        return self._waiter.wait(known_log_end, timeout_ms, topics)

    def wake(self) -> None:
        """Make the waiting thread return, or the next one that waits. From any thread."""
        self._waiter.wake()

    # -- life ---------------------------------------------------------------------------------

    def now(self) -> int:
        """The store's clock, ms."""
        return self._clock()

    @property
    def recovery(self) -> RecoveryReport | None:
        """The report of recovery, if this opening ran one."""
        return self._session.report

    def close(self, within_s: float = MAX_CLOSE_S) -> None:
        """Leave the store; the last one out syncs everything and removes ``abort``.

        Closing twice is fine, also after an interrupted first time. Raises StoreBrokenError if the
        last sync fails (``abort`` stays), and WriteLockTimeoutError if another process holds the
        write lock and makes no progress for ``within_s``: then the store is left all the same, and
        all puts are in the files. The wait for the device has no limit.
        """
        self._closed = True
        self._session.write_lock.hurry(within_s)
        first = [self._flush_service.stop, self._waiter.close, self._ringer.close]
        first += [self.services.close, self._flusher.close]
        if self._view is not None:
            first.append(self._view.close)
        self._session.leave(self._sync_all, first)

    def after_fork(self) -> None:
        """Mark the inherited copy dead; the kernel's locks stay with the parent."""
        self._closed = True
        self._session.forsake()
        self._broken = "the store was opened before a fork; open it in the child"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _break(self, error: Exception) -> None:
        """Refuse writes from now on: the flush thread has ended."""
        import logging

        expected = isinstance(error, StoreError)
        cause = f"{error}" if expected else f"{type(error).__name__}: {error}"
        reason = f"syncing {self.root} has ended ({cause})"
        self._broken = self._broken or reason
        logging.getLogger("rmqctl.storage").error(
            "the store takes no messages any more: error=%s",
            reason,
            exc_info=None if expected else error,
        )

    def check_open(self) -> None:
        """Raise StoreClosedError after ``close``, and in a forked child."""
        if self._closed:
            raise StoreClosedError(self._broken or f"{self.root} has been closed")

    def check_usable(self) -> None:
        """Raise StoreBrokenError if the store refuses writes until it is opened anew, and
        StoreClosedError after ``close``, and in a forked child."""
        self.check_open()
        if self._broken is not None:
            raise StoreBrokenError(f"{self._broken}; open the store anew")
