"""Opening and closing a store for writing: the first writer in, the last writer out.

The sequences (docs/internals/concurrency.md) keep a Java broker out while any rmqctl process is in,
let exactly the first one judge the shared state, and let exactly the last one remove ``abort``,
whichever process is killed at any instant.
"""

from __future__ import annotations

import errno
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from storage.append.append import Appender
from storage.coordination.java_interference import JavaInterference
from storage.coordination.shared_state import (
    SHARED_STATE_MAGIC,
    STAGE_DELETE,
    STATE_CLOSED,
    STATE_OPEN,
    SharedState,
    Word,
)
from storage.coordination.shared_state_check import contradiction
from storage.coordination.write_lock import WriteLock
from storage.files.access import not_writable, refuse_unwritable
from storage.files.creating import remove_left
from storage.files.ownership import refuse_to_shut_out
from storage.format.names import (
    ABORT,
    COMMITLOG,
    CONFIG,
    CONSUMEQUEUE,
    INDEX,
    LOCK,
    OURS,
    REBUILT_FOLDER,
)
from storage.platform.mounts import NETWORK, file_system_of

from .errors import (
    CorruptFileError,
    StoreBrokenError,
    StoreContradictionError,
    StoreNotWritableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.files.fs import FileSystem
    from storage.recovery.store import RecoveryReport

    from .config import StoreConfig


class Session:
    """One process's membership among the writers of a store."""

    def __init__(
        self, fs: FileSystem, root: Path, config: StoreConfig, *, gate_timeout_ms: int
    ) -> None:
        """Join the writers. Blocks for the write lock; runs recovery when it is first in and must.

        Raises StoreInUseError, WriteLockTimeoutError, StoreNotWritableError, StoreVersionError and
        CorruptFileError; nothing is held then.
        """
        self._fs = fs
        self._root = root
        self._has_left = self._is_copy = False
        self.report: RecoveryReport | None = None
        """The report of recovery, if this opening ran one."""
        _refuse_network_file_system(root)
        _refuse_several_file_systems(root)
        try:
            refuse_unwritable(root)
            refuse_to_shut_out(root)
            self.write_lock = WriteLock(root, root / LOCK, timeout_ms=gate_timeout_ms)
        except OSError as error:
            raise not_writable(root, error) from error
        try:
            with self.write_lock.held():
                self._come_in(config)
        except BaseException:
            self.write_lock.close()
            raise

    def _come_in(self, config: StoreConfig) -> None:
        write_lock, fs, root = self.write_lock, self._fs, self._root
        write_lock.share()
        try:
            first = write_lock.try_alone()
            write_lock.share_again()
            if first:  # no other writer is in; killed ones may have left files
                for folder in (OURS, CONFIG):
                    remove_left(root / folder)
                _remove_rebuilt(root)
            fs.make_dirs(root / OURS)
            self.shared = SharedState(fs, root, writable=True)
            try:
                self._judge_and_announce(config, first=first)
            except BaseException:
                self.shared.close()
                raise
        except BaseException as error:
            # While the write lock is still held: the next opener must not take itself for the
            # second.
            write_lock.unshare()
            if isinstance(error, OSError):
                raise not_writable(root, error) from error
            raise

    def _judge_and_announce(self, config: StoreConfig, *, first: bool) -> None:
        fs, root, shared = self._fs, self._root, self.shared
        shared.check_version()
        self.appender = Appender(fs, root, config, shared)
        try:
            rivals = self.rivals = JavaInterference(fs, root, shared)
            if not first and shared.words[Word.MAGIC] != SHARED_STATE_MAGIC:
                raise StoreBrokenError(f"{root} is open in another version of rmqctl; end that")
            if not first:
                shared.queues()  # damaged names raise here, before anything is held or written
                wrong = contradiction(shared, root, config.mapped_file_size_commit_log)
                if wrong is not None:
                    raise StoreContradictionError(
                        f"{shared.path} cannot be right: {wrong}; end all writers of {root}, "
                        "the next one makes it anew"
                    )
            trusted = not first or not shared.distrust(
                log_file_size=config.mapped_file_size_commit_log
            )
            trusted = trusted and (not first or self.appender.index.is_whole())
            if not (trusted and rivals.come_in(first=first) and self._resolve(first)) and first:
                from storage.recovery.store import (
                    Recovery,
                )  # takes 8 ms, which a plain start does not need

                rivals.forget()
                self.report = Recovery(fs, root, config, shared, self.appender).run()
                shared.validate()
                rivals.come_in(first=True)
            self.write_lock.shared = shared
            fs.touch(root / ABORT)
            fs.sync_dir(root)
            shared.words[Word.STATE] = STATE_OPEN
        except BaseException:
            self.appender.close()
            raise

    def _resolve(self, first: bool) -> bool:
        """Finish a dead writer's batch; False if its files are not as it left them, or are damaged.

        Beside others that is an error: only a first writer may begin anew. What a full disk keeps
        from being finished stays: the next put, or the deletion of old files, tries it again.
        """
        try:
            try:
                self.appender.resolve()
            except OSError as error:
                half_deleted = self.shared.words[Word.STAGE] == STAGE_DELETE
                if half_deleted or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
            if first and not self.shared.words[Word.STAGE]:
                with suppress(OSError):  # the next put reports a full disk
                    self.appender.put_keys()
        except (StoreBrokenError, CorruptFileError):
            if first:
                return False
            raise
        return True

    def undo_rivals(self) -> None:
        """Undo what Java brokers did that tried to start beside us, if there was one."""
        if self.rivals.attempted():
            with self.write_lock.held():
                self.rivals.undo()

    def leave(self, sync_all: Callable[[], None], first: Sequence[Callable[[], None]] = ()) -> None:
        """Call all of ``first``, and leave, even if one of them raises; a second call completes a
        leave that a signal interrupted. The last one out calls ``sync_all`` and marks the store
        cleanly closed. If that fails, ``abort`` stays and the next opener recovers. A forked copy
        does nothing: a thread of the parent may hold any lock.

        Raises the error of one of ``first``, and StoreError.
        """
        if self._is_copy:
            return
        leaving = ExitStack()  # from the last to the first
        leaving.callback(self.write_lock.close)
        leaving.callback(self.shared.close)
        leaving.callback(self.appender.close)
        leaving.callback(self._shut)
        if not self._has_left:
            leaving.callback(self._go_out, sync_all)
        for step in reversed(first):
            leaving.callback(step)
        leaving.close()

    def forsake(self) -> None:
        """Do not leave: this is a forked copy."""
        self._is_copy = True

    def _go_out(self, sync_all: Callable[[], None]) -> None:
        write_lock, fs, root, shared = self.write_lock, self._fs, self._root, self.shared
        try:
            with write_lock.held():
                try:
                    last = write_lock.try_alone() and not shared.words[Word.FAILED]
                    if last or self.rivals.attempted():
                        self.rivals.undo()
                    if last:
                        self.appender.resolve()
                        sync_all()
                        self.rivals.forget()
                        shared.words[Word.STATE] = STATE_CLOSED
                        fs.unlink(root / ABORT)
                        fs.sync_dir(root)
                    elif self.appender.keys.has_own and not shared.words[Word.FAILED]:
                        self.appender.put_keys()
                finally:
                    write_lock.unshare()
                    write_lock.shut()  # late threads must not put beside Java
        except OSError as error:
            raise not_writable(root, error) from error

    def _shut(self) -> None:
        self._has_left = True
        self.write_lock.shut()
        self.write_lock.shared = None


def _remove_rebuilt(root: Path) -> None:
    """Remove what a rebuild has left that was killed: one that runs has the write lock."""
    folder = root / OURS / REBUILT_FOLDER
    if folder.is_dir() and not folder.is_symlink():
        from shutil import rmtree  # takes 5 ms, which a plain start does not need

        rmtree(folder, ignore_errors=True)


def _refuse_several_file_systems(root: Path) -> None:
    """Files of the log, the queues and the index are made in ``rmqctl/`` and renamed, since a Java
    broker loads no folder with an unfinished file in it; that needs one file system."""
    here = _device_of(root / OURS) or _device_of(root)
    for name in (COMMITLOG, CONSUMEQUEUE, INDEX):
        if _device_of(root / name) not in (None, here):
            raise StoreNotWritableError(
                root,
                f"its folder {name} is on another file system than {OURS}/, where new files are "
                "made; move the whole store to one file system (reading works as it is)",
            )


def _device_of(folder: Path) -> int | None:
    """The file system of a folder; None if it is not there, or may not be looked at."""
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def _refuse_network_file_system(root: Path) -> None:
    """Raise for a network file system: locks and maps are not shared reliably over a network."""
    kind = file_system_of(root)
    if kind in NETWORK:
        raise StoreNotWritableError(
            root, f"it lies on a {kind} file system, where locks between hosts cannot be trusted"
        )
