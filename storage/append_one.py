"""Appending one plain record, step by step as :mod:`storage.append` does it, with nothing between.

Only what is open, has room and is known goes this way; whatever else there may be (a new file, a
new queue, a nearly full disk) is left to the general one. Both write the same bytes in the same
order of stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .format.layout import BLANK_SIZE
from .format.unit import CQ_STORE_UNIT_SIZE
from .page import STAGE_DISPATCH, STAGE_NONE, STAGE_RECORDS, SharedPage, Word
from .results import PutMessageResult, PutMessageStatus

if TYPE_CHECKING:
    from .config import StoreConfig
    from .consumequeue import ConsumeQueueTable
    from .format.prepared_one import PreparedOne
    from .index import IndexWriter
    from .mapped_file_queue import MappedFileQueue

_PUT_OK: Final = PutMessageStatus.PUT_OK


class OneAppender:
    """The short way for one record; needs the gate."""

    def __init__(
        self,
        config: StoreConfig,
        page: SharedPage,
        log: MappedFileQueue,
        queues: ConsumeQueueTable,
        index: IndexWriter,
    ) -> None:
        self._page = page
        self._log_size = config.mapped_file_size_commit_log
        self._unit_size = config.mapped_file_size_consume_queue
        self._log_files = log.opened
        self._queues = queues.opened
        self._index = index
        self._words_of: dict[tuple[str, int], int] = {}  # a queue keeps its slot
        self._indexed = config.message_index_enable
        self._looked_ms = -1  # when the log file was last seen to have a name
        self.checked_space_to = -1
        """Log offset up to which the disk is known to have room."""

    def append(self, record: PreparedOne, now_ms: int) -> PutMessageResult | None:
        """Append the record if nothing stands in the way; None = nothing done."""
        page = self._page
        words = page.words
        start = words[Word.LOG_END]
        end = start + record.size
        file = self._log_files.get(start - start % self._log_size)
        if (
            file is None
            or end > self.checked_space_to
            or (position := start - file.file_from_offset) + record.size > file.reserved_to
            or end + BLANK_SIZE > file.file_from_offset + self._log_size
        ):
            return None
        if now_ms != self._looked_ms:  # a system call, so once a millisecond
            if file.deleted:
                return None
            self._looked_ms = now_ms
        queue = record.queue
        word = self._words_of.get(queue)
        if word is None:
            slot = page.slot(*queue)
            if slot is None:
                return None
            word = self._words_of[queue] = page.slot_word(slot)
            words = page.words
        files = self._queues.get(queue)
        if files is None:
            return None
        queue_offset = words[word]
        unit_start = queue_offset * CQ_STORE_UNIT_SIZE
        unit_file = files.opened.get(unit_start - unit_start % self._unit_size)
        if unit_file is None:
            return None
        unit_position = unit_start - unit_file.file_from_offset
        if unit_position + CQ_STORE_UNIT_SIZE > unit_file.reserved_to:
            return None
        timestamp = words[Word.LAST_STORE_TIMESTAMP]
        if now_ms > timestamp:
            timestamp = now_ms
        image = record.encode(queue_offset, start, timestamp)
        unit = record.unit(start)

        words[Word.FROM] = start
        words[Word.TO] = end
        self._index.begin()
        words[Word.STAGE] = STAGE_RECORDS
        file.map[position : position + record.size] = image
        words[Word.STAGE] = STAGE_DISPATCH
        unit_file.map[unit_position : unit_position + CQ_STORE_UNIT_SIZE] = unit
        hashes = record.key_hashes
        if hashes and self._indexed:
            self._index.put(hashes, [start] * len(hashes), timestamp)
        words[word] = queue_offset + 1
        words[Word.LAST_STORE_TIMESTAMP] = timestamp
        words[Word.LOG_END] = end
        words[Word.STAGE] = STAGE_NONE
        return PutMessageResult(_PUT_OK, (start,), (queue_offset,), timestamp)
