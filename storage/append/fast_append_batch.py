"""Appending a batch that compiled code has encoded, in one compiled step.

This path takes only batches whose log, queues and index are open, have room and are known.
Everything else is left to :mod:`.append`, whose stages and bytes are the same. It has no pure form:
where nothing is compiled there are no such batches.
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
"""What the compiled step reports as unknown (append_batch.c)."""
_LOG_END: Final = Word.LOG_END
_KEYS_FROM: Final = Word.KEYS_FROM


class BatchAppender:
    """The fast path for a batch; needs the write lock."""

    def __init__(
        self,
        config: StoreConfig,
        shared: SharedState,
        one: FastAppender,
        index: IndexWriter,
        keys: PendingKeys,
        make_room: Callable[[int], bool],
    ) -> None:
        """``make_room`` reserves blocks for so many bytes at the end of the log, or returns
        False."""
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
        """Append the records if nothing prevents it; None = nothing done.

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
            # It asks in this order, so each is registered once.
            if found <= unknown or not self._learn(found, records, now_ms):
                return None
            unknown = found

    def _learn(self, unknown: int, records: PreparedTable, now_ms: int) -> bool:
        """Register what the compiled form does not know; False if that cannot be."""
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
