"""What the first writer does when it cannot trust the shared state: find where the store ends.

The rules are those of RocketMQ's load and recover (CommitLog.recoverNormally and
recoverAbnormally, ConsumeQueue.recover and truncateDirtyLogicFiles, IndexService.load), with these
differences, all of which keep more whole messages (FORMAT.md, "Damage and what recovery does"):

* damage does not end the log where whole records surely follow (log.py);
* a log whose last files are missing is no shorter log: it is refused;
* units that are missing are written again, also on a clean start and also for whole queues;
* index files are repaired, not deleted (index.py).

Bytes after the end are zeroed, so that no left-over record is ever taken for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from storage.configs.deleted_topics import STAGED_FILE, end_deleted_topics, read_deleted_topics
from storage.coordination.shared_state import STATE_CLOSED, Word
from storage.files.checkpoint_file import StoreCheckpoint
from storage.files.read_files import StoreFiles
from storage.format.names import ABORT, OURS
from storage.read.log_presence import check_log_is_here

from .index import IndexRecovery
from .log import LogRecovery
from .queues import QueueRecovery
from .redispatch import Redispatch

if TYPE_CHECKING:
    from storage.append.append import Appender
    from storage.config import StoreConfig
    from storage.coordination.shared_state import SharedState
    from storage.files.fs import FileSystem


@dataclass(slots=True)
class RecoveryReport:
    """What a recovery found and did. Offsets are commit log bytes."""

    clean_shutdown: bool
    log_min: int = 0
    log_end: int = 0
    records: int = 0
    units_written: int = 0
    keys_written: int = 0
    notes: list[str] = field(default_factory=list)


class Recovery:
    """One recovery of one store. Needs the write lock, with no other writer there."""

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
        self._log = appender.log
        self._report = RecoveryReport(not (root / ABORT).exists())

    def run(self) -> RecoveryReport:
        """Find the end, repair what is derived, and fill the shared state; its magic stays 0.

        Raises CorruptFileError for files that RocketMQ refuses to load too, and for log files that
        are not there (storage.read.log_presence): before anything was changed. Raises OSError.
        """
        self._check_log_is_here()
        report = self._report
        shared = self._shared
        shared.invalidate()
        self._fs.unlink(self._root / OURS / STAGED_FILE)  # of a deletion that does not count
        log = LogRecovery(self._fs, self._root, self._log, clean_shutdown=report.clean_shutdown)
        files = log.files
        if report.clean_shutdown:
            # A death in here leaves a store that was not closed cleanly: units are there and keys
            # are not, and after a clean exit keys are added only for what the queues lack.
            self._fs.touch(self._root / ABORT)
            self._fs.sync_dir(self._root)
        checkpoint = StoreCheckpoint(self._fs, self._root).read()
        start = log.start_file(checkpoint.min_timestamp)
        report.log_min = files[0] if files else 0
        queues = QueueRecovery(self._fs, self._root, self._config, report.log_min)
        queues.load(None if report.clean_shutdown else files[start] if files else 0)
        walked, report.log_end = log.walk(start, checkpoint.physic_msg_timestamp)
        # Units first: without the log files that they name, the next opening after a death in here
        # would refuse the store, as one that has lost files.
        queues.truncate(report.log_end)
        log.clear_from(report.log_end)
        end_deleted_topics(self._root, report.log_end, self._fs)
        report.records = log.records
        report.notes += queues.notes + log.notes
        words = shared.words
        words[Word.LOG_END] = words[Word.FROM] = words[Word.TO] = report.log_end
        words[Word.LOG_MIN] = report.log_min
        words[Word.FLUSHED_TO] = report.log_end if report.clean_shutdown else report.log_min
        for topic, queue_id, following in queues.next_offsets():
            slot = shared.add_slot(topic, queue_id)
            shared.set_next_offset(slot, following)
            if report.clean_shutdown:
                shared.set_synced_offset(slot, following)
        index = self._appender.index
        keys_from = None
        index.use_newest()
        newest = index.newest_header()
        cut = newest is not None and newest.end_phy_offset >= report.log_end
        if not report.clean_shutdown or cut or not index.is_whole():
            mending = IndexRecovery(self._fs, self._root, self._config, index, self._log)
            keys_from, notes = mending.run(checkpoint.index_msg_timestamp, report.log_end)
            report.notes += notes
        index.use_newest()
        redispatch = Redispatch(
            self._config,
            self._appender,
            shared,
            queues,
            self._log,
            log.row,
            report,
            read_deleted_topics(self._root),
        )
        redispatch.run(walked, log.heads, keys_from)
        words[Word.KEYS_FROM] = report.log_end
        words[Word.LAST_STORE_TIMESTAMP] = max(
            words[Word.LAST_STORE_TIMESTAMP], checkpoint.physic_msg_timestamp
        )
        words[Word.STATE] = STATE_CLOSED
        return report

    def _check_log_is_here(self) -> None:
        files = StoreFiles(self._root, self._config)
        try:
            check_log_is_here(files, self._config)
        finally:
            files.budget.drop()
