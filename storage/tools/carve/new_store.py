"""Filling a new store with records of another one, and making it appear when it is whole.

It is filled in a folder beside the target, ``.NAME.carving``, and renamed when everything is on the
device. A killed process leaves that folder, unlocked; the next one removes it and begins anew.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from storage.append.flush import Flusher
from storage.coordination.shared_state import Word
from storage.errors import StoreBrokenError, StoreInUseError, StoreNotWritableError
from storage.files.creating import name_beside
from storage.files.fs import FileSystem
from storage.results import PutMessageStatus
from storage.session import Session

if TYPE_CHECKING:
    from types import TracebackType

    from storage.config import StoreConfig
    from storage.format.prepared_exact import ExactColumns

_TIMEOUT_MS: Final = 10_000
_SYNC_BYTES: Final = 32 << 20
"""Bytes of the log that are synced at once while more records come."""


@contextmanager
def staged_folder(target: Path, fs: FileSystem | None = None) -> Iterator[Path]:
    """A folder to make a store in; it becomes ``target`` when the block ends without an error.

    ``target`` must be missing or empty: StoreNotWritableError. StoreInUseError while another
    process makes the same one. After an error nothing is left of it.
    """
    fs = fs or FileSystem()
    folder = target.with_name(name_beside(target.name, ".carving"))
    fd = _locked(folder, target)
    try:
        _check_free(target)
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        yield folder
        _check_free(target)
        try:
            fs.sync_dir(folder)
            fs.rename(folder, target)
            fs.sync_dir(target.parent)
        except OSError as error:
            raise StoreNotWritableError(target, error.strerror or str(error)) from error
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(fd)


def _locked(folder: Path, target: Path) -> int:
    """Make the folder if it is missing, and lock it against other processes.

    The lock ends with its process, and with the folder when that is renamed.
    """
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise StoreNotWritableError(folder, error.strerror or str(error)) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), folder.stat()):
                return fd
        except BlockingIOError:
            os.close(fd)
            raise StoreInUseError(target, "another rmqctl that is making it") from None
        except FileNotFoundError:
            pass
        os.close(fd)  # it was finished and renamed meanwhile: try again


def _check_free(target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise StoreNotWritableError(target, "it is there already and not empty")


class ExactWriter:
    """Appends records that keep their store times to a new store, as its only process.

    The store has been made (storage.layout.create_store) and holds no record yet. On the device,
    and cleanly closed, when the block is left.
    """

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        begins: Mapping[tuple[str, int], int],
        fs: FileSystem | None = None,
    ) -> None:
        """``begins`` are the queue offsets at which queues begin, where that is not 0.

        Then the log begins with its second file, like one whose first file was deleted: fillers
        before a queue's first message name the log's byte 0, and a Java broker passes over only
        what lies before its log.
        """
        self._fs = fs or FileSystem()
        self._root = root
        self._session = Session(self._fs, root, config, gate_timeout_ms=_TIMEOUT_MS)
        session = self._session
        self._flusher = Flusher(self._fs, root, config, session.shared, session.write_lock)
        self._sync: threading.Thread | None = None
        self._sync_error: StoreBrokenError | None = None
        if begins:
            with session.write_lock.held():
                words = session.shared.words
                start = config.mapped_file_size_commit_log
                for word in (Word.KEYS_FROM, Word.LOG_END, Word.LOG_MIN, Word.FLUSHED_TO):
                    words[word] = start
                for (topic, queue_id), offset in begins.items():
                    session.shared.set_next_offset(session.shared.add_slot(topic, queue_id), offset)

    def put(self, columns: ExactColumns) -> None:
        """Append a batch. Waits for the device only where an index file is full; the device gets
        the log meanwhile.

        Raises StoreNotWritableError (no space, or a record that fits into no file of the log), and
        StoreBrokenError when a sync of earlier batches has failed.
        """
        if self._sync_error is not None:
            raise self._sync_error
        session = self._session
        try:
            with session.write_lock.held():
                result = session.appender.append(columns, 0)
                index = session.appender.index
                for path in index.full_files() if index.full else ():
                    self._flusher.note_full_index(path)
                    index.noted()
        except OSError as error:
            raise StoreNotWritableError(self._root, error.strerror or str(error)) from error
        if result.status is not PutMessageStatus.PUT_OK:
            raise StoreNotWritableError(self._root, result.reason)
        self._sync_beside()

    def _sync_beside(self) -> None:
        """Begin a sync of the log if much of it is not synced and none runs."""
        words = self._session.shared.words
        if words[Word.LOG_END] - words[Word.FLUSHED_TO] < _SYNC_BYTES:
            return
        if self._sync is None or not self._sync.is_alive():
            self._sync = threading.Thread(target=self._sync_log, name="carve-sync", daemon=True)
            with suppress(RuntimeError):  # the system gives no thread: the last sync does all
                self._sync.start()

    def _sync_log(self) -> None:
        # Where a file cannot be opened nothing was lost: the last sync tries again.
        with suppress(OSError, StoreNotWritableError):
            try:
                self._flusher.sync_log()
            except StoreBrokenError as error:
                self._sync_error = error  # the next put raises it

    def next_offset(self, topic: str, queue_id: int) -> int:
        """The queue offset after a queue's last message."""
        slot = self._session.shared.slot(topic, queue_id)
        return 0 if slot is None else self._session.shared.next_offset(slot)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        if self._sync is not None and self._sync.ident is not None:
            self._sync.join()
        try:  # a session leaves without an error a store whose sync has failed
            self._session.leave(self._sync_all if kind is None else _nothing)
            if kind is None and self._sync_error is not None:
                raise self._sync_error
        finally:
            self._flusher.close()

    def _sync_all(self) -> None:
        self._session.appender.put_keys()
        self._flusher.sync_all()


def _nothing() -> None:
    pass
