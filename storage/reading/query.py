"""Finding messages by key (DefaultMessageStore.queryMessage)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from storage.model import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, MessageExt
from storage.results import QueryMessageResult

if TYPE_CHECKING:
    from .index_reader import IndexReader
    from .record_reader import RecordReader

FOREVER: Final = (1 << 63) - 1
"""Java's Long.MAX_VALUE: no end of the time range."""


def query_message(
    index: IndexReader,
    records: RecordReader,
    log_end: int,
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
    found = index.query(topic, key, max_num, begin, end)
    if not found.offsets:
        return QueryMessageResult([], [], 0, 0)
    read = (records.look(offset, log_end) for offset in sorted(found.offsets))
    messages = [message for message in read if message is not None]
    return QueryMessageResult(
        messages,
        found.offsets,
        found.index_last_update_timestamp,
        found.index_last_update_phyoffset,
    )


def carries_key(message: MessageExt, topic: str, key: str) -> bool:
    """Tell whether a hit really is the topic's and has the key, as UNIQ_KEY or among its KEYS."""
    if message.topic != topic:
        return False
    return key == message.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or (
        key in message.keys
    )
