"""Finding messages by key (DefaultMessageStore.queryMessage)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native
from storage.model import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, MessageExt
from storage.results import QueryMessageResult

from .pending_keys import NO_HITS
from .record_reader import UNUSUAL

if TYPE_CHECKING:
    from storage.files.read_files import FileRow

    from .bounds import Bounds
    from .index_reader import IndexReader, QueryOffsetResult
    from .pending_keys import PendingKeys
    from .record_reader import RecordReader

_new: Final = tuple.__new__
FOREVER: Final = (1 << 63) - 1
"""Java's Long.MAX_VALUE: no end of the time range."""


class KeySources(NamedTuple):
    """Where keys are looked for: the index files, and behind them the log."""

    index_files: IndexReader
    pending: PendingKeys | None
    """None for a store without an index."""
    bounds: Bounds
    follow_slots: bool
    """The bounds are those of rmqctl's writers (see IndexReader.query)."""


def query_message(
    sources: KeySources,
    records: RecordReader,
    topic: str,
    key: str,
    max_num: int,
    begin: int,
    end: int,
) -> QueryMessageResult:
    """Find the newest ``max_num`` messages of a topic with a key, oldest first.

    Times in ms, both ends included. Hash collisions are not filtered, as in RocketMQ. Hits that
    can not be read are left out.
    """
    usual = _usual(sources, records.log, topic, key, max_num, begin, end)
    if usual is not None:
        return usual
    found, log_end = query_offsets(sources, topic, key, max_num, begin, end)
    if not found.offsets:
        return QueryMessageResult([], [], 0, 0)
    messages = []
    for offset in sorted(found.offsets):
        message = records.look(offset, log_end)
        if message is not None:
            messages.append(message)
    return _new(QueryMessageResult, (messages, *found))


def _usual(
    sources: KeySources, log: FileRow, topic: str, key: str, max_num: int, begin: int, end: int
) -> QueryMessageResult | None:
    """The same in one compiled step where nothing has to be opened and all records are usual ones.

    That is so while rmqctl's writers have the store, all keys are in files that are mapped, and
    so are the log's; else None.
    """
    index, pending, bounds, follow_slots = sources
    compiled = native.compiled
    if compiled is None or not follow_slots or pending is None or index.older:
        return None
    keys_from = bounds.keys_from()
    log_end = bounds.log_end()
    if keys_from < log_end:
        return None
    most = index.max_hits
    try:
        found = compiled.query_key(
            index.files,
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


def query_offsets(
    sources: KeySources,
    topic: str,
    key: str,
    max_num: int,
    begin: int,
    end: int,
    *,
    capped: bool = True,
) -> tuple[QueryOffsetResult, int]:
    """Where the records of these messages may lie, newest first, and the log's end at that time.

    ``capped``: a broker's own limit holds, too.
    """
    index, pending, bounds, follow_slots = sources
    # In this order: what is put into the index from now on is in the log below this end.
    keys_from = None if pending is None else bounds.keys_from()
    log_end = bounds.log_end()
    hits = NO_HITS
    if pending is not None and keys_from is not None and keys_from < log_end:
        hits = pending.find(topic, key, keys_from, log_end)
    found = index.query(
        topic, key, max_num, begin, end, keys_from, hits, follow_slots, capped=capped
    )
    return found, log_end


def carries_key(message: MessageExt, topic: str, key: str) -> bool:
    """Tell whether a hit really is the topic's and has the key, as UNIQ_KEY or among its KEYS."""
    if message.topic != topic:
        return False
    return key == message.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or (
        key in message.keys
    )
