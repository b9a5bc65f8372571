"""Appending a batch that compiled code has encoded, in one compiled step.

Only what is open, has room and is known goes this way: log, queues and index. Whatever else there
may be is left to :mod:`.append`, whose stages and bytes are the same. It has no pure form of its
own: where nothing is compiled there are no such batches.
"""

from __future__ import annotations

from mmap import mmap
from typing import TYPE_CHECKING, Any, Final

from storage.coordination.shared_state import SharedState, Word
from storage.index.pending_keys import MOST_PENDING
from storage.results import PutMessageResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.config import StoreConfig
    from storage.format.prepared_table import PreparedTable
    from storage.index.pending_keys import PendingKeys
    from storage.index.writer import IndexWriter

    from .fast_append import FastAppender

_NO_ROOM: Final = 2
_NO_QUEUE: Final = 3
_NO_INDEX: Final = 4
"""What the compiled step says that it does not know (append_batch.c)."""
_LOG_END: Final = Word.LOG_END
_KEYS_FROM: Final = Word.KEYS_FROM


class BatchAppender:
    """The short way for a batch; needs the gate."""

    def __init__(
        self,
        config: StoreConfig,
        shared: SharedState,
        one: FastAppender,
        index: IndexWriter,
        keys: PendingKeys,
        make_room: Callable[[int], bool],
    ) -> None:
        """``make_room`` has blocks for so many bytes at the end of the log, or says False."""
        self._config = config
        self._make_room = make_room
        self._shared = shared
        self._one = one
        self._index = index
        self._keys = keys
        self._compiled: Any = one.compiled
        self._seen = 0  # records of batches so far
        if self._compiled is not None and not config.message_index_enable:
            self._compiled.use_index(None, 0, 0, 0, 0, 0)

    def append(self, records: PreparedTable, now_ms: int) -> PutMessageResult | None:
        """Append the records if nothing stands in the way; None = nothing done.

        May put keys (see PendingKeys.put). Raises OSError.
        """
        compiled, one = self._compiled, self._one
        if compiled is None:
            return None
        if not one.in_run:
            self._seen += len(records)
            if self._seen >= MOST_PENDING:
                one.begin_run()
        words = self._shared.words
        if words[_KEYS_FROM] != words[_LOG_END] or self._keys.has_own:
            self._keys.put()
        unknown = 0
        while True:
            found = compiled.append_batch(*records.parts, now_ms)
            if type(found) is PutMessageResult:
                return found
            # In this order it asks, so each is told once.
            if found <= unknown or not self._learn(found, records, now_ms):
                return None
            unknown = found

    def _learn(self, unknown: int, records: PreparedTable, now_ms: int) -> bool:
        """Tell the compiled form what it does not know; False if that can not be."""
        one = self._one
        if unknown == _NO_ROOM:
            start, size = self._shared.words[_LOG_END], len(records.buffer)
            if one.have_room(start, start + size, now_ms):
                return True
            return self._make_room(size) and one.have_room(start, start + size, now_ms)
        if unknown == _NO_QUEUE:
            counts = records.queue_counts()
            return all(
                one.learn(topic, queue_id, count)
                for (topic, queue_id), count in zip(records.queues, counts, strict=True)
            )
        if unknown == _NO_INDEX:
            found = self._index.room_for(len(records.key_hashes), in_run=one.in_run)
            if found is None or type(found[0]) is not mmap:
                return False
            mapped, name, first, end = found
            config = self._config
            self._compiled.use_index(
                mapped, name, config.max_hash_slot_num, config.max_index_num, first, end
            )
            return True
        return False
