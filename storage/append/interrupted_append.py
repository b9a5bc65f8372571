"""Finishing or undoing the batch of a dead writer (crash table: docs/internals/append.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.coordination.shared_state import (
    STAGE_DELETE,
    STAGE_DISPATCH,
    STAGE_KEYS,
    STAGE_NONE,
    STAGE_RECORDS,
    SharedState,
    Word,
)
from storage.errors import StoreBrokenError
from storage.format.delay import parse_delay_levels
from storage.format.dispatch import DispatchRequest, read_request
from storage.format.record import BLANK_MAGIC, CheckKind, check_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.config import StoreConfig
    from storage.files.mapped_file_queue import MappedFileQueue
    from storage.index.pending_keys import PendingKeys
    from storage.queue.writer import ConsumeQueueTable


class Resolver:
    """Brings the files in order by the stage that the shared state names. Needs the write lock."""

    def __init__(
        self,
        config: StoreConfig,
        shared: SharedState,
        log: MappedFileQueue,
        queues: ConsumeQueueTable,
        keys: PendingKeys,
        finish_deletion: Callable[[], object],
    ) -> None:
        self._shared = shared
        self._log = log
        self._queues = queues
        self._keys = keys
        self._finish_deletion = finish_deletion
        self._delay_levels_ms = parse_delay_levels(config.message_delay_level)

    def run(self) -> None:
        """Finish or undo the batch; a death in here leaves the stage as it is, for the next
        process."""
        words = self._shared.words
        stage, start, end = words[Word.STAGE], words[Word.FROM], words[Word.TO]
        if stage == STAGE_RECORDS:
            self._undo(start, end)
        elif stage == STAGE_DISPATCH:
            self._finish(start, end)
        elif stage == STAGE_KEYS:
            self._keys.redo()
        elif stage == STAGE_DELETE:
            self._finish_deletion()
        words[Word.STAGE] = STAGE_NONE

    def _undo(self, start: int, end: int) -> None:
        """Zero what was being written; a file that began with it is deleted."""
        if start % self._log.file_size == 0:
            self._log.delete(start)
            return
        file = self._log.find(start)
        if file is not None:
            file.write(start - file.file_from_offset, bytes(end - start))

    def _finish(self, start: int, end: int) -> None:
        """Write the units of the whole records in [start, end) again."""
        words = self._shared.words
        file = self._log.find(start)
        if file is None:
            raise StoreBrokenError(
                f"{self._log.path(start - start % self._log.file_size)}, the last commit log file, "
                "is missing; end all writers and open the store anew"
            )
        data = file.read(start - file.file_from_offset, end - start)
        if int.from_bytes(data[4:8], "big", signed=True) == BLANK_MAGIC:
            words[Word.LOG_END] = start + int.from_bytes(data[:4], "big")
            return
        requests = []
        position = 0
        while position < len(data):
            found = check_record(data, position, len(data), check_crc=False)
            if found.kind is not CheckKind.MESSAGE:
                raise StoreBrokenError(
                    f"{file.path} is damaged at byte {start + position - file.file_from_offset}: "
                    f"{found.reason}; run 'rmqctl store fsck'"
                )
            requests.append(
                read_request(data, position, found.size, self._delay_levels_ms, first=start)
            )
            position += found.size
        for request in requests:
            self._dispatch(request)
        words[Word.LOG_END] = end

    def _dispatch(self, request: DispatchRequest) -> None:
        """Write the units of one record, and move the queues' next offsets."""
        shared = self._shared
        unit = request.unit()
        timestamp = request.store_timestamp
        for topic, queue_id, queue_offset in request.units:
            slot = shared.slot(topic, queue_id)
            if slot is None:
                slot = shared.add_slot(topic, queue_id)
            self._queues.at_slot(topic, queue_id, slot)
            self._queues.put(topic, queue_id, queue_offset, unit, timestamp)
            shared.set_next_offset(slot, max(shared.next_offset(slot), queue_offset + 1))
        words = shared.words
        words[Word.LAST_STORE_TIMESTAMP] = max(words[Word.LAST_STORE_TIMESTAMP], timestamp)
