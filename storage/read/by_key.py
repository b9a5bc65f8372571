"""Finding messages by key (DefaultMessageStore.queryMessage)."""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from storage import native
from storage.format.message import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, MessageExt
from storage.index.keys_from_log import NO_HITS, PendingKeys
from storage.index.reader import IndexReader
from storage.log.record_reader import UNUSUAL
from storage.results import QueryMessageResult

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from storage.config import StoreConfig
    from storage.coordination.java_start import Steady
    from storage.files.read_files import ReadMap
    from storage.index.prefix import UnconfirmedIndex
    from storage.index.reader import QueryOffsetResult
    from storage.log.record_reader import RecordReader
    from storage.readonly import StoreView

    from .bounds import Bounds

_new: Final = tuple.__new__
query_key: Final = native.form("query_key", native.nothing)
query_at_once: Final = native.form("query_at_once", native.nothing)
_Constants = tuple[int, int, int, dict[int, "ReadMap"], int, int]
"""Slots and entries of an index file, most hits; maps of the log, size of its files, unusual
flags."""


class KeyReader:
    """Searches for keys in the index files of one store, and then in its log. Thread-safe."""

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        bounds: Bounds,
        records: RecordReader,
        *,
        follow_slots: bool,
    ) -> None:
        """``follow_slots``: the bounds are those of rmqctl's writers (see IndexReader.query)."""
        self.index = IndexReader(root, config)
        self._bounds = bounds
        self._records = records
        self._log = records.log
        self._pending = PendingKeys(records.log) if config.message_index_enable else None
        self._follow_slots = follow_slots
        index, log = self.index, self._log
        sizes = index.slots, index.entries, index.max_hits
        common = *sizes, log.opened, log.file_size, UNUSUAL
        # of queries in one step; None where there are none
        self._common: _Constants | None = common if follow_slots and self._pending else None
        self._unsure: UnconfirmedIndex | None = None
        if self._pending is not None and not bounds.index_is_whole():
            from storage.index.prefix import UnconfirmedIndex

            self._unsure = UnconfirmedIndex(root, config, self.index, records)

    def at_once(
        self, steady: Steady, topic: str, key: str, max_num: int, begin: int, end: int
    ) -> QueryMessageResult | None:
        """Give what :meth:`messages` would, if the store is as ``steady`` says, all keys are in
        mapped files, and all records are common ones; else None."""
        index, common = self.index, self._common
        if common is None or index.older:
            return None
        found = query_at_once(steady, common, index.files, topic, key, begin, end, max_num)
        return None if found is None else _new(QueryMessageResult, found)

    def messages(
        self, topic: str, key: str, max_num: int, begin: int, end: int
    ) -> QueryMessageResult:
        """Find the newest ``max_num`` messages of a topic with a key, oldest first.

        Times in ms, both ends included. Hash collisions are not filtered, as in RocketMQ. Hits
        that cannot be read are left out.
        """
        if self._follow_slots:
            usual = self._usual(topic, key, max_num, begin, end)
            if usual is not None:
                return usual
        found, log_end = self.offsets(topic, key, max_num, begin, end)
        if not found.offsets:
            return QueryMessageResult([], [], 0, 0)
        look = self._records.look
        read = [look(offset, log_end) for offset in sorted(found.offsets)]
        messages = [message for message in read if message is not None]
        return _new(QueryMessageResult, (messages, *found))

    def _usual(
        self, topic: str, key: str, max_num: int, begin: int, end: int
    ) -> QueryMessageResult | None:
        """The same in one compiled step where no file must be opened and all records are common
        ones.

        That holds while rmqctl's writers have the store, all keys are in mapped files, and the
        log's files are mapped; else None.
        """
        index, log = self.index, self._log
        files = index.files  # before older ones are listed
        if self._pending is None or index.older:
            return None
        keys_from = self._bounds.keys_from()  # first, as below
        log_end = self._bounds.log_end()
        if keys_from < log_end:
            return None
        most = index.max_hits
        try:
            found = query_key(
                files,
                index.slots,
                index.entries,
                topic,
                key,
                begin,
                end,
                keys_from,
                max_num if max_num < most else most,
                log.opened,
                log.file_size,
                log_end,
                UNUSUAL,
            )
        except OverflowError:  # times that no machine word holds
            return None
        return None if found is None else _new(QueryMessageResult, found)

    def offsets(
        self, topic: str, key: str, max_num: int, begin: int, end: int, *, capped: bool = True
    ) -> tuple[QueryOffsetResult, int]:
        """Where the records of these messages may lie, newest first; and the log's end at that
        time.

        ``capped``: a broker's own limit holds, too.
        """
        pending, bounds = self._pending, self._bounds
        if self._unsure is not None:
            log_end = bounds.log_end()
            most = min(max_num, self.index.max_hits) if capped else max_num
            return self._unsure.query(topic, key, most, begin, end, log_end), log_end
        # In this order: keys put into the index from now on are of records below this end.
        keys_from = None if pending is None else bounds.keys_from()
        log_end = bounds.log_end()
        hits = NO_HITS
        if pending is not None and keys_from is not None and keys_from < log_end:
            hits = pending.find(topic, key, keys_from, log_end)
        found = self.index.query(
            topic, key, max_num, begin, end, keys_from, hits, self._follow_slots, capped=capped
        )
        return found, log_end


def carries_key(message: MessageExt, topic: str, key: str) -> bool:
    """Tell whether a hit really is of the topic and has the key, as UNIQ_KEY or in its KEYS."""
    if message.topic != topic:
        return False
    return key == message.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or (
        key in message.keys
    )


def find_unique(view: StoreView, topic: str, msg_id: str) -> list[MessageExt]:
    """All messages of a topic with a unique id, oldest first: retries keep theirs.

    Those that can be read, by the index and the part of the log that goes into it next. There is
    no limit as of a broker's answer. Of those that have it as a key only, the newest ones are
    given, as many as a broker's answer has.
    """
    most = view.config.max_msgs_num_batch
    found = view.query_message(topic, msg_id, most)
    messages: Iterable[MessageExt] = found.messages
    if len(found.index_offsets) >= most:  # there may be older ones
        looked = map(view.look_message_by_offset, view.key_offsets(topic, msg_id))
        messages = (message for message in looked if message is not None)
    by_id: list[MessageExt] = []
    by_key: deque[MessageExt] = deque(maxlen=most)
    for message in messages:
        if carries_key(message, topic, msg_id):
            unique_id = message.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
            (by_id if unique_id == msg_id else by_key).append(message)
    return sorted([*by_id, *by_key], key=attrgetter("commitlog_offset")) if by_key else by_id
