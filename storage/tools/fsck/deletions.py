"""What other processes delete while a check runs: what is gone is not missing.

Retention deletes the oldest files of the log, then those of queues and index. The deletion of a
topic removes the files of its queues; its records stay. Both can be seen before a file goes, or
together with that, so a finding is judged by what is there at its moment, not by what was there
when the check began.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.configs.deleted_topics import DELETED_FILE, DeletedTopics, read_deleted_topics
from storage.errors import CorruptFileError
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, MAX_QUEUE_OFFSET
from storage.format.names import COMMITLOG, CONSUMEQUEUE, OURS, parse_file_name

from .orphan_records import QueueKey

if TYPE_CHECKING:
    from storage.readonly import StoreView

_ALL: Final = 1 << 63


class Deletions:
    """Made when a check begins, before it reads anything else."""

    def __init__(self, view: StoreView) -> None:
        self._view = view
        self._files = view.files.apart()  # listing anew drops maps, which the check still reads
        self._deleted_file = view.root / OURS / DELETED_FILE
        self._read_as: tuple[int, int] | None = None
        self._deleted: DeletedTopics = {}
        self._first = self._began_at = self._files.log.first()
        self._deleted_before = self._deleted_topics()
        self._folders = frozenset(self._files.queue_folders())
        self.next_offsets: dict[QueueKey, int] = {}
        """The queues' ends when the check began."""

    def log_min(self) -> int:
        """First offset of the log's oldest file now."""
        if not Path(self._files.log.path(self._first)).exists():
            files = self._files.log.relist()
            self._first = files[0] if files else self._began_at
        return self._first

    def queue_has_gone(self, key: QueueKey) -> bool:
        """Whether a queue's files were deleted with its topic since the check began; there may be
        new ones."""
        topic = key[0]
        if self._deleted_topics().get(topic, 0) > self._deleted_before.get(topic, 0):
            return True
        if (
            key in self._folders
            and not (self._view.root / CONSUMEQUEUE / topic / str(key[1])).exists()
        ):
            return True
        end = self.next_offsets.get(key, 0)
        try:
            return end > 0 and self._view.bounds.next_offset(*key) < end  # it begins anew
        except CorruptFileError:  # the bounds come from the files now, and these lack too much
            return False

    def records_gone_to(self, key: QueueKey) -> int:
        """The log offset before which a queue's records are gone, or have no units any more."""
        return _ALL if self.queue_has_gone(key) else self.log_min()

    def units_gone_to(self, key: QueueKey) -> int:
        """The queue offset before which a queue's units were deleted since the check began."""
        if self.queue_has_gone(key):
            return MAX_QUEUE_OFFSET
        row = self._files.queue(*key)
        files = [] if row is None or self.log_min() == self._began_at else row.relist()
        return files[0] // CQ_STORE_UNIT_SIZE if files else 0

    def has_gone(self, file: str) -> bool:
        """Whether a file of log or queues, by its path in the store, was deleted since the check
        began, or would have been."""
        folder, _, name = file.rpartition("/")
        first = parse_file_name(name)
        if first is None or os.path.lexists(self._view.root / file):
            return False
        if folder == COMMITLOG:
            return first < self.log_min()
        part, *queue = folder.split("/")
        if part != CONSUMEQUEUE or len(queue) != 2 or not queue[1].isdecimal():
            return False
        return first < self.units_gone_to((queue[0], int(queue[1]))) * CQ_STORE_UNIT_SIZE

    def _deleted_topics(self) -> DeletedTopics:
        try:
            status = self._deleted_file.stat()
            ident = status.st_ino, status.st_mtime_ns
            if ident != self._read_as:
                self._read_as, self._deleted = ident, read_deleted_topics(self._view.root)
        except (FileNotFoundError, NotADirectoryError):
            self._read_as, self._deleted = None, {}
        except CorruptFileError:  # which another part of the check reports
            self._deleted = {}
        return self._deleted
