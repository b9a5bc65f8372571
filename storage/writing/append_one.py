"""Appending one plain record, step by step as :mod:`.append` does it, with nothing between.

Only what is open, has room and is known goes this way; whatever else there may be (a new file, a
new queue, a nearly full disk) is left to the general one. Both write the same bytes in the same
order of stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.format.encode import cached_tags_code
from storage.format.layout import BLANK_SIZE
from storage.format.unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.results import PutMessageResult, PutMessageStatus
from storage.sharing.page import STAGE_DISPATCH, STAGE_NONE, STAGE_RECORDS, SharedPage, Word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storage.config import StoreConfig
    from storage.files.mapped_file import MappedFile
    from storage.files.mapped_file_queue import MappedFileQueue
    from storage.format.prepared_one import PreparedOne

    from .consumequeue import ConsumeQueueTable
    from .pending_keys import PendingKeys

_PUT_OK: Final = PutMessageStatus.PUT_OK
_make_result: Final = PutMessageResult._make
_pack_unit: Final = CQ_STORE_UNIT.pack


class OneAppender:
    """The short way for one record; needs the gate."""

    def __init__(
        self,
        config: StoreConfig,
        page: SharedPage,
        log: MappedFileQueue,
        queues: ConsumeQueueTable,
        keys: PendingKeys,
    ) -> None:
        self._page = page
        self._log_size = config.mapped_file_size_commit_log
        self._unit_size = config.mapped_file_size_consume_queue
        self._log_files = log.opened
        self._queues = queues.opened
        # By queue: the word of its next offset, which stays the same, and its open files.
        self._tails: dict[tuple[str, int], tuple[int, Mapping[int, MappedFile]]] = {}
        self._keys = keys
        self._looked_ms = -1  # when the log file was last seen to have a name
        self.checked_space_to = -1
        """Log offset up to which the disk is known to have room."""

    def append(self, record: PreparedOne, now_ms: int) -> PutMessageResult | None:
        """Append the record if nothing stands in the way; None = nothing done."""
        words = self._page.words
        start = words[Word.LOG_END]
        size = record.size
        end = start + size
        file = self._log_files.get(start - start % self._log_size)
        if (
            file is None
            or end > self.checked_space_to
            or (position := start - file.file_from_offset) + size > file.reserved_to
            or position + size + BLANK_SIZE > self._log_size
        ):
            return None
        if now_ms != self._looked_ms:  # a system call, so once a millisecond
            if file.deleted:
                return None
            self._looked_ms = now_ms
        topic, queue_id, _, _, _, _, _, _, _, _, _, tags, keys, _, _ = record.message
        tail = self._tails.get((topic, queue_id))
        if tail is None:
            self._learn((topic, queue_id))
            return None
        word, unit_files = tail
        queue_offset = words[word]
        unit_start = queue_offset * CQ_STORE_UNIT_SIZE
        unit_file = unit_files.get(unit_start - unit_start % self._unit_size)
        if unit_file is None:
            self._learn((topic, queue_id))
            return None
        unit_position = unit_start - unit_file.file_from_offset
        if unit_position + CQ_STORE_UNIT_SIZE > unit_file.reserved_to:
            return None
        timestamp = words[Word.LAST_STORE_TIMESTAMP]
        if now_ms > timestamp:
            timestamp = now_ms
        image = record.encode(queue_offset, start, timestamp)
        unit = _pack_unit(start, size, cached_tags_code(tags))

        words[Word.FROM] = start
        words[Word.TO] = end
        words[Word.STAGE] = STAGE_RECORDS
        file.map[position : position + size] = image
        words[Word.STAGE] = STAGE_DISPATCH
        unit_file.map[unit_position : unit_position + CQ_STORE_UNIT_SIZE] = unit
        words[word] = queue_offset + 1
        words[Word.LAST_STORE_TIMESTAMP] = timestamp
        words[Word.LOG_END] = end
        words[Word.STAGE] = STAGE_NONE
        self._keys.note(start, end, (topic, keys, start, timestamp))
        return _make_result((_PUT_OK, (start,), (queue_offset,), timestamp, ""))

    def _learn(self, queue: tuple[str, int]) -> None:
        """Remember where the queue is written, for its next message."""
        slot = self._page.slot(*queue)
        files = self._queues.get(queue)
        if slot is not None and files is not None:
            self._tails[queue] = (self._page.slot_word(slot), files.opened)
