"""Deleting old files (DefaultMessageStore.CleanCommitLogService and CleanConsumeQueueService).

The oldest commit log files are deleted when their time is over. Queue and index files follow when
nothing in them points into the log any more. The last file of each kind always stays. Runs only on
stores that rmqctl made, in one process at a time, or when a command requests it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.coordination.shared_state import SharedState, Word
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

    def run(
        self, now_ms: int, *, manual: bool = False, reserved_ms: int | None = None
    ) -> DeletedFiles:
        """Delete what is due at ``now_ms``; ``manual``: age alone decides, at whatever hour.

        That age is ``reserved_ms``, else fileReservedTime.

        A death in between leaves files that the next run deletes. Raises OSError.
        """
        self._appender.put_keys()  # while all their records are there
        log_files = self._expired_log_files(now_ms, manual=manual, reserved_ms=reserved_ms)
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
            tuple(self._delete_index_files(log_min)),
        )
        if cleaned.log_files or cleaned.queue_files or cleaned.index_files:
            words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
        return cleaned

    def _expired_log_files(
        self, now_ms: int, *, manual: bool, reserved_ms: int | None
    ) -> list[int]:
        """First offsets of the log files that may go now, oldest first."""
        config = self._config
        rules = rules_by_hand(config, reserved_ms) if manual else rules_of(self._root, config)
        log_end = self._shared.words[Word.LOG_END]
        files = log_files(self._root, config, rules, log_end, now_ms)
        return [file.first for file in due_now(files, now_ms)[:FILES_PER_RUN]]

    def _delete_queue_files(self, log_min: int) -> list[str]:
        """Leading files whose last unit points below the log, of every queue."""
        deleted = []
        file_size = self._config.mapped_file_size_consume_queue
        for topic, queue_id in self._shared.queues():
            files = self._appender.queues.files(topic, queue_id)
            for first in files.offsets()[:-1]:
                with files.path(first).open("rb") as file:
                    file.seek(file_size - CQ_STORE_UNIT_SIZE)
                    last = file.read(CQ_STORE_UNIT_SIZE)
                if StoreUnit.unpack_from(last).commitlog_offset >= log_min:
                    break
                files.delete(first)
                deleted.append(f"{CONSUMEQUEUE}/{topic}/{queue_id}/{first:020d}")
        return deleted

    def _delete_index_files(self, log_min: int) -> list[str]:
        """Leading index files whose newest key points below the log."""
        deleted = []
        for name in self._appender.index.names()[:-1]:
            with (self._root / INDEX / name).open("rb") as file:
                header = IndexHeader.unpack_from(file.read(INDEX_HEADER_SIZE))
            if header.end_phy_offset >= log_min:
                break
            self._appender.index.delete(name)
            deleted.append(f"{INDEX}/{name}")
        return deleted
