"""Deleting old files (DefaultMessageStore.CleanCommitLogService and CleanConsumeQueueService).

The oldest commit log files are deleted when their time is over. Queue and index files follow when
nothing in them points into the log any more. The last file of each kind always stays. Runs only on
stores that rmqctl made, in one process at a time, or when a command requests it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.coordination.shared_state import STAGE_DELETE, SharedState, Word
from storage.errors import CorruptFileError
from storage.files.bounded import read_at
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, StoreUnit
from storage.format.index_file import INDEX_HEADER_SIZE, IndexHeader
from storage.format.names import COMMITLOG, CONSUMEQUEUE, INDEX
from storage.retention import due_now, log_files, rules_by_hand, rules_of

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.fs import FileSystem

    from .append import Appender

FILES_PER_RUN: Final = 10
"""RocketMQ deletes at most this many log files in one run (deleteFilesBatchMax)."""


@dataclass(frozen=True, slots=True)
class DeletedFiles:
    """Names of the files that a run deleted, relative to the store."""

    log_files: tuple[str, ...] = ()
    queue_files: tuple[str, ...] = ()
    index_files: tuple[str, ...] = ()
    damaged: tuple[CorruptFileError, ...] = ()
    """Files that are too short to show what they refer to: they stay, and all after them, too."""
    left: int = 0
    """Log files that are old enough and stay, as they do not lie before ``before``."""


class Retention:
    """Decides and deletes. Methods need the write lock."""

    def __init__(
        self,
        fs: FileSystem,
        root: Path,
        config: StoreConfig,
        shared: SharedState,
        appender: Appender,
    ) -> None:
        self._fs = fs
        self._root = root
        self._config = config
        self._shared = shared
        self._appender = appender
        self._damaged: list[CorruptFileError] = []

    def run(
        self,
        now_ms: int,
        *,
        manual: bool = False,
        reserved_ms: int | None = None,
        before: int | None = None,
    ) -> DeletedFiles:
        """Delete what is due at ``now_ms``; ``manual``: age alone decides, at whatever hour.

        That age is ``reserved_ms``, else fileReservedTime. Log files that begin at or after
        ``before`` stay, and those with records whose keys the disk has no room for.

        A death in between leaves files that the next run deletes. Raises OSError.
        """
        self._damaged = []
        all_keys = self._put_keys()  # while all their records are there
        expired = self._expired_log_files(now_ms, manual=manual, reserved_ms=reserved_ms)
        if not all_keys:
            has_keys = self._shared.words[Word.KEYS_FROM]
            size = self._config.mapped_file_size_commit_log
            expired = [first for first in expired if first + size <= has_keys]
        going = expired if before is None else [first for first in expired if first < before]
        log_files = going[:FILES_PER_RUN]
        words = self._shared.words
        if log_files:
            # Readers stop reading below the new minimum before the files are deleted.
            words[Word.LOG_MIN] = log_files[-1] + self._config.mapped_file_size_commit_log
            words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
            for first in log_files:
                self._appender.log.delete(first)
            self._fs.sync_dir(self._root / COMMITLOG)
        log_min = words[Word.LOG_MIN]
        cleaned = DeletedFiles(
            tuple(f"{COMMITLOG}/{first:020d}" for first in log_files),
            tuple(self._delete_queue_files(log_min)),
            tuple(self._delete_index_files(log_min) if all_keys else ()),
            tuple(self._damaged),
            len(expired) - len(going),
        )
        if cleaned.log_files or cleaned.queue_files or cleaned.index_files:
            words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
        return cleaned

    def _put_keys(self) -> bool:
        """Put pending index keys; False if that, or finishing an append, fails, as on a full disk,
        which deleting ends. Only the ends of log and queues are not in order then, which stay, and
        the index. Raises OSError if a topic is half deleted."""
        try:
            self._appender.put_keys()
        except OSError:
            if self._shared.words[Word.STAGE] == STAGE_DELETE:
                raise
            return False
        return True

    def _expired_log_files(
        self, now_ms: int, *, manual: bool, reserved_ms: int | None
    ) -> list[int]:
        """First offsets of the log files that may go now, oldest first."""
        config = self._config
        rules = rules_by_hand(config, reserved_ms) if manual else rules_of(self._root, config)
        log_end = self._shared.words[Word.LOG_END]
        files = log_files(self._root, config, rules, log_end, now_ms)
        return [file.first for file in due_now(files, now_ms)]

    def _delete_queue_files(self, log_min: int) -> list[str]:
        """Leading files whose last unit points below the log, of every queue."""
        deleted = []
        file_size = self._config.mapped_file_size_consume_queue
        for topic, queue_id in self._shared.queues():
            files = self._appender.queues.files(topic, queue_id)
            for first in files.offsets()[:-1]:
                at = file_size - CQ_STORE_UNIT_SIZE
                last = self._read(files.path(first), at, CQ_STORE_UNIT_SIZE)
                if last is None or StoreUnit.unpack_from(last).commitlog_offset >= log_min:
                    break
                files.delete(first)
                deleted.append(f"{CONSUMEQUEUE}/{topic}/{queue_id}/{first:020d}")
        return deleted

    def _delete_index_files(self, log_min: int) -> list[str]:
        """Leading index files whose newest key points below the log."""
        deleted = []
        for name in self._appender.index.names()[:-1]:
            head = self._read(self._root / INDEX / name, 0, INDEX_HEADER_SIZE)
            if head is None or IndexHeader.unpack_from(head).end_phy_offset >= log_min:
                break
            self._appender.index.delete(name)
            deleted.append(f"{INDEX}/{name}")
        return deleted

    def _read(self, path: Path, position: int, size: int) -> bytes | None:
        """So many bytes of a file; None if they are not there. Then it is damaged, or was deleted
        by another program meanwhile."""
        try:
            data = read_at(path, position, size)
        except FileNotFoundError:
            if path.exists():
                self._damaged.append(CorruptFileError(path, 0, "it is no file"))
            return None
        if len(data) == size:
            return data
        length = path.stat().st_size
        reason = f"the file ends before byte {position + size}, which it must have"
        self._damaged.append(CorruptFileError(path, length, reason))
        return None
