"""Syncing what was written to the device.

ASYNC_FLUSH: a background thread syncs the log every 500 ms, and queues and checkpoint every 60 s.
SYNC_FLUSH: a put returns after a sync that covers it; one sync serves all threads that wait
(org.apache.rocketmq.store.CommitLog.GroupCommitService). A failed sync is never repeated as if
nothing was lost: the shared state says FAILED and every process refuses to write. A sync that could
not begin, as its file could not be opened, has lost nothing: it is an error of the call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.coordination.leadership import TimedServices
from storage.coordination.shared_state import SYNC_FAILED, SharedState, Word
from storage.errors import StoreBrokenError, StoreNotWritableError, WriteLockTimeoutError
from storage.files.bounded import read_first
from storage.files.checkpoint_file import StoreCheckpoint
from storage.files.fs import FileSystem, NotOpenedError
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET
from storage.format.index_file import INDEX_HEADER_SIZE, IndexHeader
from storage.format.names import (
    CHECKPOINT,
    COMMITLOG,
    CONSUMEQUEUE,
    INDEX,
    file_name,
    is_index_file_name,
    parse_file_name,
)
from storage.results import PutMessageStatus

from .group_commit import GroupCommit

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.coordination.write_lock import WriteLock

_FAILED: Final = Word.FAILED
_FLUSHED_TO: Final = Word.FLUSHED_TO
_LOG_END: Final = Word.LOG_END
_MANY_FILES: Final = 64
_NEWEST: Final = 3
"""Log files that may have something that is not synced."""


def sync_newest_log_files(root: Path) -> None:
    """Sync the end of the log of a store that this process need not have open.

    That is the newest files: writers sync the log each 500 ms, and hardly fill one meanwhile.
    Raises StoreNotWritableError.
    """
    fs = FileSystem()
    folder = root / COMMITLOG
    if not folder.is_dir():
        return
    try:
        paths = sorted(path for path in folder.iterdir() if parse_file_name(path.name) is not None)
        for path in paths[-_NEWEST:]:
            with suppress(FileNotFoundError):  # retention deleted it meanwhile
                fd = fs.open(path, writable=False)
                try:
                    fs.sync(fd)
                finally:
                    fs.close(fd)
        fs.sync_dir(folder)
    except OSError as error:
        raise StoreNotWritableError(folder, error.strerror or str(error)) from error


class _GrownQueue(NamedTuple):
    """A queue with units that are not on the device.

    ``following`` and ``synced`` are queue offsets, ``files`` the first offsets (bytes) of the files
    that hold what lies between.
    """

    slot: int
    following: int
    synced: int
    folder: Path
    files: Sequence[int]


class Flusher:
    """Syncs a store's files by name, with descriptors of its own, beside the appenders."""

    def __init__(
        self,
        fs: FileSystem,
        root: Path,
        config: StoreConfig,
        shared: SharedState,
        write_lock: WriteLock,
    ) -> None:
        self._fs = fs
        self._root = root
        self._config = config
        self._log_size = config.mapped_file_size_commit_log
        self._shared = shared
        self._write_lock = write_lock
        self._checkpoint = StoreCheckpoint(fs, root)
        self.timeout = config.sync_flush_timeout_ms / 1000
        """Seconds that a put waits for the device (syncFlushTimeout)."""
        self._syncing = threading.Lock()  # one sync at a time; guards the next field
        self._newest: tuple[int, int] | None = None  # of the newest log file: offset, descriptor
        self._commits = GroupCommit(lambda: shared.words[_FLUSHED_TO], self.sync_log)

    # -- the log ------------------------------------------------------------------------------

    def sync_put(self, end: int) -> PutMessageStatus:
        """Return when the device has the log up to ``end``.

        FLUSH_DISK_TIMEOUT if that takes longer than syncFlushTimeout (the message is stored). The
        thread that syncs returns when the device does, which may be later than that. Raises
        StoreBrokenError when the sync fails: then the state of the device is unknown. Raises
        StoreNotWritableError if it cannot begin: the message is stored, the next sync covers it.
        """
        start = time.monotonic()
        limit = self.timeout
        if not self._commits.commit(end, limit) or time.monotonic() - start > limit:
            return PutMessageStatus.FLUSH_DISK_TIMEOUT
        return PutMessageStatus.PUT_OK

    def sync_log(self) -> None:
        """Sync the log as far as it goes now. Blocks. Raises as :meth:`sync_put`."""
        try:
            with self._syncing:
                if self._shared.words[_FLUSHED_TO] < self._shared.words[_LOG_END]:
                    self._sync_log()
        except OSError as error:
            raise self._not_begun(error) from error

    def _sync_log(self) -> None:
        words = self._shared.words
        start, end = words[_FLUSHED_TO], words[_LOG_END]
        newest, size = self._newest, self._log_size
        if words[_FAILED] or newest is None or not newest[0] < start < end <= newest[0] + size:
            self._sync_files(start, end)
            return
        self._sync_newest(newest[0])  # nearly always: it is open, and holds all that is not synced
        if words[_FAILED]:
            self._shared.refuse_after_failure()
        self._note_synced(end)

    def _sync_files(self, start: int, end: int) -> None:
        """Sync these bytes of the log, in all their files."""
        size = self._log_size
        self._shared.refuse_after_failure()
        files = range(start - start % size, end, size)
        for first in files[:-1]:
            self._sync_file(self._log_file(first))
        self._sync_newest(files[-1])
        if files[-1] >= start:  # made since: its maker may have died before syncing it
            self._sync_folders({self._root / COMMITLOG})
        # The kernel reports lost pages once: perhaps to another process, during our sync.
        self._shared.refuse_after_failure()
        self._note_synced(end)

    def _note_synced(self, end: int) -> None:
        """Tell all processes how far the device has the log; one that synced later has more."""
        if self._shared.words[_FLUSHED_TO] < end:
            self._shared.words[_FLUSHED_TO] = end

    def _sync_newest(self, first: int) -> None:
        """Sync the log file that begins at ``first``, and keep it open: it comes again and again.

        An open descriptor gets an error for each page that the kernel lost. The file's times are
        not read: after a reader of the times the next write changes them, and the sync writes them.
        """
        if self._newest is None or self._newest[0] != first:
            self._close_newest()
            try:
                fd = self._fs.open(self._log_file(first), writable=False)
            except FileNotFoundError:
                return  # retention deleted it meanwhile
            self._newest = first, fd
        self._sync(self._newest[1], self._log_file(first))

    def _log_file(self, first: int) -> Path:
        return self._root / COMMITLOG / file_name(first)

    def _close_newest(self) -> None:
        newest, self._newest = self._newest, None
        if newest is not None:
            self._fs.close(newest[1])

    def has_failed(self) -> bool:
        """Whether no process may write any more: a sync failed, or files contradict each other."""
        return bool(self._shared.words[_FAILED])

    def close(self) -> None:
        """Close what is kept open; the next sync opens it again. Twice is fine."""
        with self._syncing:
            self._close_newest()

    # -- everything ---------------------------------------------------------------------------

    def sync_all(self) -> None:
        """Sync log, queues and index, then write the checkpoint. Needs the write lock.

        Only queues that grew since their last sync are touched. The index must have all keys: a
        Java broker does not dispatch again what the checkpoint covers. Nothing is left open. Raises
        as :meth:`sync_put`; what was not synced then is synced by the next call.
        """
        try:
            self._sync_everything()
        except OSError as error:
            raise self._not_begun(error) from error

    def sync_ahead(self, interval: float, between: Callable[[], None]) -> None:
        """Sync queues and the newest index file as far as they go now, without the write lock.

        Little is left to :meth:`sync_all` then, for which other writers wait. Meanwhile the log is
        synced each ``interval`` seconds, after a call of ``between``. Raises as :meth:`sync_put`.
        """
        self._shared.refuse_after_failure()
        last = time.monotonic()
        try:
            for queue in self._grown_queues():
                for first in queue.files:
                    self._sync_file(queue.folder / file_name(first))
                if time.monotonic() - last >= interval:
                    between()
                    self.sync_log()
                    last = time.monotonic()
            newest = self._shared.words[Word.INDEX_FILE]
            if newest:
                self._sync_file(self._root / INDEX / f"{newest:017d}")
        except OSError as error:
            raise self._not_begun(error) from error

    def _sync_everything(self) -> None:
        words = self._shared.words
        timestamp = words[Word.LAST_STORE_TIMESTAMP]
        before = self._checkpoint.read()
        try:
            self.sync_log()
        finally:
            self.close()
        with self._syncing:
            self._shared.refuse_after_failure()
            self._sync_queues(timestamp)
            if words[Word.INDEX_FILE]:
                newest = f"{words[Word.INDEX_FILE]:017d}"
                self._sync_index_files(newest, before.index_msg_timestamp)
        self._write_checkpoint(
            before._replace(
                physic_msg_timestamp=max(before.physic_msg_timestamp, timestamp),
                logics_msg_timestamp=max(before.logics_msg_timestamp, timestamp),
            )
        )

    def note_full_index(self, path: Path) -> None:
        """Sync an index file that has filled up and note it in the checkpoint. Needs the write
        lock.

        The checkpoint then covers all older files too. A writer may have died before it synced one
        of them, so those that it did not cover yet are synced first. Raises StoreBrokenError, and
        OSError if a sync cannot begin, or a file is not there.
        """
        before = self._checkpoint.read()
        with self._syncing:
            end_timestamp = self._sync_index_files(path.name, before.index_msg_timestamp)
        vouched = max(before.index_msg_timestamp, end_timestamp)  # 0 if the file was deleted
        self._write_checkpoint(before._replace(index_msg_timestamp=vouched))

    def _sync_index_files(self, newest: str, vouched_timestamp: int) -> int:
        """Sync the files up to ``newest`` that the checkpoint does not cover yet.

        Gives the store time of the last key of ``newest``.
        """
        folder = self._root / INDEX
        end_timestamp = 0
        for name in sorted(entry.name for entry in folder.iterdir()):
            if is_index_file_name(name) and name <= newest and (folder / name).is_file():
                data = read_first(folder / name, INDEX_HEADER_SIZE).ljust(INDEX_HEADER_SIZE, b"\0")
                end_timestamp = IndexHeader.unpack_from(data).end_timestamp
                if end_timestamp >= vouched_timestamp or name == newest:
                    self._sync_file(folder / name)
        self._sync_folders({folder})
        return end_timestamp

    def _write_checkpoint(self, data: CheckpointData) -> None:
        self._checkpoint.write(data, lambda fd: self._sync(fd, self._root / CHECKPOINT))

    def _sync_queues(self, timestamp: int) -> None:
        size = self._config.mapped_file_size_consume_queue
        folders: set[Path] = set()
        done: list[tuple[int, int]] = []
        for queue in self._grown_queues():
            for first in queue.files:
                self._sync_file(queue.folder / file_name(first))
            if queue.files[-1] >= queue.synced * CQ_STORE_UNIT_SIZE:
                folders.add(queue.folder)
            if queue.synced == 0:
                folders |= {queue.folder.parent, queue.folder.parent.parent}
            # 4.9's time search needs a file time at or after that of its last unit.
            end = queue.following * CQ_STORE_UNIT_SIZE
            newest = queue.folder / file_name((end - 1) // size * size)
            try:
                self._fs.set_modified(newest, timestamp)
            except FileNotFoundError:
                continue  # the topic was deleted meanwhile
            except PermissionError:
                continue  # left to the next sync, by a process of a user who may set it
            done.append((queue.slot, queue.following))
        self._sync_folders(folders)
        for slot, following in done:
            self._shared.set_synced_offset(slot, following)

    def _grown_queues(self) -> Iterator[_GrownQueue]:
        """Queues with units that are not on the device."""
        size = self._config.mapped_file_size_consume_queue
        for slot, (topic, queue_id) in enumerate(self._shared.queues()):
            following = self._shared.next_offset(slot)
            synced = self._shared.synced_offset(slot)
            if not 0 <= synced <= following:
                synced = 0  # a wrong word: sync all once more
            if following <= synced or following > MAX_QUEUE_OFFSET:
                continue
            start = synced * CQ_STORE_UNIT_SIZE
            end = following * CQ_STORE_UNIT_SIZE
            folder = self._root / CONSUMEQUEUE / topic / str(queue_id)
            files: Sequence[int] = range(start - start % size, end, size)
            if len(files) > _MANY_FILES:  # or the shared state is wrong: list the files
                files = [first for first in _first_offsets(folder) if first in files]
                if not files:
                    continue
            yield _GrownQueue(slot, following, synced, folder, files)

    def _sync_file(self, path: Path) -> None:
        try:
            fd = self._fs.open(path, writable=False)
        except FileNotFoundError:
            return  # retention deleted it meanwhile
        try:
            self._sync(fd, path)
        finally:
            self._fs.close(fd)

    def _sync(self, fd: int, path: Path) -> None:
        try:
            self._fs.sync(fd)
        except OSError as error:
            raise self._failed(path, error) from error

    def _sync_folders(self, folders: set[Path]) -> None:
        for path in sorted(folders):
            try:
                self._fs.sync_dir(path)
            except FileNotFoundError:  # the topic was deleted meanwhile
                continue
            except NotOpenedError:
                raise
            except OSError as error:
                raise self._failed(path, error) from error

    def _failed(self, path: Path, error: OSError) -> StoreBrokenError:
        """Make all processes refuse to write, since the state of the device is unknown."""
        self._shared.fail(SYNC_FAILED)
        return StoreBrokenError(
            f"the device did not take {path} ({error.strerror}); what was acknowledged before "
            "is safe, end all writers of the store and open it anew"
        )

    def _not_begun(self, error: OSError) -> StoreNotWritableError:
        """The error of a sync that lost nothing: no sync of the system has failed."""
        path = Path(error.filename) if error.filename else self._root
        reason = error.strerror or str(error)
        return StoreNotWritableError(
            path, f"{reason}; all that was put is stored, and the next sync syncs it"
        )


class FlushService:
    """The background thread of a long-lived writer; ends when a sync fails, never unnoticed.

    It also runs the store's timed services. When it ends, another process is elected for them.
    """

    def __init__(
        self,
        flusher: Flusher,
        write_lock: WriteLock,
        config: StoreConfig,
        services: TimedServices,
        *,
        sync_all: Callable[[], None],
        pending_keys: Callable[[], int],
        put_keys: Callable[[], None],
        make_next_file: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        """``sync_all`` and ``put_keys`` need the write lock; ``pending_keys`` changes when keys are
        put, and is 0 while none are pending. ``on_error`` gets what ends the thread. What the next
        round may do better is logged: no descriptor, a full disk, a busy write lock."""
        self._flusher = flusher
        self._write_lock = write_lock
        self._interval = config.flush_interval_commit_log_ms / 1000
        self._thorough = config.flush_consume_queue_thorough_interval_ms / 1000
        self._services = services
        self._sync_all = sync_all
        self._pending_keys = pending_keys
        self._put_keys = put_keys
        self._make_file_ahead = make_next_file
        self._pending_before = 0
        self._on_error = on_error
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.started = False
        self._last_thorough = time.monotonic()
        self._is_ahead = False  # of the next sync of all
        self._failure = ""  # of the last round, which is logged once

    def start(self) -> None:
        """Start the thread, unless it runs, or the system gives no thread: then the next call tries
        again."""
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="flush", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter ends; closing syncs everything
                    return
                self._thread = thread
            self.started = True

    def stop(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def tick(self) -> None:
        """One round: the timed services, a log file ahead, a sync of the log, each minute a sync of
        all.

        Index keys that have been pending for a whole round are put.
        """
        self._services.tick()
        self._make_file_ahead()
        self._flusher.sync_log()
        pending = self._pending_keys()
        if pending and pending == self._pending_before:
            with self._write_lock.held():
                self._put_keys()
        self._pending_before = pending
        if time.monotonic() - self._last_thorough >= self._thorough:
            self._sync_ahead()
            with self._write_lock.held():
                self._last_thorough = time.monotonic()  # before it: an error is no reason to hurry
                self._is_ahead = False
                self._sync_all()

    def _sync_ahead(self) -> None:
        """Sync what a sync of all would, without the write lock; once before each of these.

        What cannot be synced is left to that one, which says so.
        """
        if not self._is_ahead:
            self._is_ahead = True  # before it: an error is no reason to repeat it
            with suppress(StoreNotWritableError):
                self._flusher.sync_ahead(self._interval, self._make_file_ahead)

    def _run(self) -> None:
        try:
            self._run_rounds()
        except Exception as error:  # noqa: BLE001 - the store refuses writes, and says why
            self._on_error(error)
        finally:
            self._services.close()

    def _run_rounds(self) -> None:
        pause, work = self._interval / 4, self._make_file_ahead  # a fast writer soon needs it
        while not self._stop.wait(pause):
            try:
                work()
                self._failure = ""
            except WriteLockTimeoutError:
                pass  # another process is stopped or very busy; nothing is lost by waiting
            except (StoreBrokenError, StoreNotWritableError, OSError) as error:
                if self._flusher.has_failed():
                    raise
                self._log_once(error)
            pause, work = self._interval, self.tick

    def _log_once(self, error: Exception) -> None:
        """Log what a round raised, unless the round before raised the same."""
        import logging

        if self._failure != f"{error}":
            self._failure = f"{error}"
            logging.getLogger("rmqctl.storage").warning(
                "syncing the store failed, and is tried again: error=%s", error
            )


def _first_offsets(folder: Path) -> list[int]:
    """First offsets of the files in a folder, ascending."""
    try:
        names = [parse_file_name(path.name) for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(first for first in names if first is not None)
