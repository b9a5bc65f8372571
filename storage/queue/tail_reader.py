"""A queue whose end is read again and again, as by a consumer that waits for its next message.

The facts that such a read needs are remembered: where the queue begins, its newest file, its word
of the shared state. A message after a pause finds all caches cold, and its reader waits for each
step. So a few messages at the end of a queue are read in one go. Everything else is left to
:class:`MessageReader`, which has the queue followed.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from storage.coordination.shared_state import Word
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.log.record_reader import UNUSUAL, read_run
from storage.results import GetMessageResult, GetMessageStatus

if TYPE_CHECKING:
    from storage.coordination.shared_state import SharedState
    from storage.files.read_files import ReadOnlyFiles
    from storage.log.record_reader import QueueKey

_MOST: Final = 8
"""Messages; for more of them the separate steps do not matter, and they may exceed one answer."""
_FOUND: Final = GetMessageStatus.FOUND
_GENERATION: Final = Word.FILES_GENERATION
_LONG: Final = Struct(">q")
_new: Final = tuple.__new__


class TailReader:
    """Reads new messages at the end of one queue, as long as no file has been deleted."""

    __slots__ = (
        "_first",
        "_generation",
        "_key",
        "_log",
        "_max_bytes",
        "_min_offset",
        "_most",
        "_row",
        "_shared",
        "_word",
    )

    def __init__(
        self,
        key: QueueKey,
        row: ReadOnlyFiles,
        log: ReadOnlyFiles,
        shared: SharedState,
        slot: int,
        min_offset: int,
        max_count: int,
        max_bytes: int,
    ) -> None:
        """Follow the queue of a slot of the shared state, which has messages."""
        self._key = key
        self._row = row
        self._log = log
        self._shared = shared
        self._word = shared.slot_word(slot)
        self._min_offset = min_offset
        self._most = min(_MOST, max_count)
        self._max_bytes = max_bytes
        self._generation = self._shared.words[_GENERATION]
        last = self._shared.words[self._word] - 1
        self._first = last - last % (row.file_size // CQ_STORE_UNIT_SIZE)

    def holds(self, offset: int) -> bool:
        """Whether the remembered facts are of use for messages from an offset on."""
        within = (offset - self._first) * CQ_STORE_UNIT_SIZE
        same = bool(self._shared.words[_GENERATION] == self._generation)
        return same and 0 <= within < self._row.file_size

    def read(self, offset: int, max_msg_nums: int) -> GetMessageResult | None:
        """Give what MessageReader.get_message would, without a filter; None: that must be
        called."""
        key, words = self._key, self._shared.words
        end = words[self._word]
        count = end - offset
        if not 0 < count <= self._most or count > max_msg_nums or offset < self._min_offset:
            return None
        units = self._row.opened.get(self._first * CQ_STORE_UNIT_SIZE)
        start = (offset - self._first) * CQ_STORE_UNIT_SIZE
        if start < 0 or units is None or key.topic_field is None:
            return None
        view = units.view[start : start + count * CQ_STORE_UNIT_SIZE]
        if len(view) != count * CQ_STORE_UNIT_SIZE or words[_GENERATION] != self._generation:
            return None
        (place,) = _LONG.unpack_from(view)
        first = place - place % self._log.file_size
        file = self._log.opened.get(first)
        if file is None:
            return None
        messages, total = read_run(
            view,
            file.view,
            first,
            key.topic,
            key.topic_field,
            key.queue_id,
            offset,
            count,
            self._max_bytes,
            UNUSUAL,
        )
        if len(messages) != count:
            return None
        return _new(GetMessageResult, (_FOUND, end, self._min_offset, end, messages, total, None))
