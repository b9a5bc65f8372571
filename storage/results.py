"""Outcomes with RocketMQ's names, and the values that carry them.

The members are spelled as in org.apache.rocketmq.store.PutMessageStatus, AppendMessageStatus and
GetMessageStatus: an expected outcome is a value, not an exception.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.read.message_rows import MessageRows

    from .format.prepared import Ints


class PutMessageStatus(StrEnum):
    """The outcome of a put.

    The first four mean that the message *is* stored and readable at its offset.
    """

    PUT_OK = "PUT_OK"
    """Stored as requested."""
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """Stored; with SYNC_FLUSH the device did not confirm in time that it has it."""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """Stored; a slave did not confirm in time that it has it. Not given here: there are no
    slaves."""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """Stored; no slave was there to copy it. Not given here: there are no slaves."""
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    """Not stored: the store is closing, is read only, or its disk is full."""
    CREATE_MAPEDFILE_FAILED = "CREATE_MAPEDFILE_FAILED"
    """Not stored: no further file of the log could be made."""
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    """Not stored: the topic or the body breaks a limit."""
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    """Not stored: keys, tags and properties are longer than 32,767 bytes."""
    OS_PAGECACHE_BUSY = "OS_PAGECACHE_BUSY"
    """Not stored: the machine was too busy writing. A Java broker's answer."""
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    """Not stored: something broke while writing."""
    LMQ_CONSUME_QUEUE_NUM_EXCEEDED = "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"
    """Not stored: too many LMQs. A Java broker's answer."""

    @property
    def stored(self) -> bool:
        """Whether the message is in the store in spite of the status."""
        return self in _STORED

    @property
    def illegal(self) -> bool:
        """Whether the message itself is the cause: no later put will store it, either."""
        return self in _ILLEGAL


_STORED = frozenset(
    {
        PutMessageStatus.PUT_OK,
        PutMessageStatus.FLUSH_DISK_TIMEOUT,
        PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
        PutMessageStatus.SLAVE_NOT_AVAILABLE,
    }
)
_ILLEGAL = frozenset({PutMessageStatus.MESSAGE_ILLEGAL, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED})


class GetMessageStatus(StrEnum):
    """The finding of a read at an offset of a queue
    (org.apache.rocketmq.store.GetMessageStatus)."""

    FOUND = "FOUND"
    """There are messages."""
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    """There are messages, but none that the subscription selects."""
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    """The messages are just being deleted."""
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    """The queue has no file for the offset."""
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    """The offset lies after the end of the queue."""
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    """The offset is the end of the queue: nothing new yet."""
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    """The offset lies below the first message that is left."""
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    """There is no such queue."""
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    """The queue is empty."""


class PutMessageResult(NamedTuple):
    """The offsets of a run of records.

    ``commitlog_offsets[i]`` is the byte position of record i in the commit log and
    ``queue_offsets[i]`` its offset in its queue (0 for a record that gets no unit).
    Both are empty when nothing was stored.
    """

    status: PutMessageStatus
    commitlog_offsets: Ints = ()
    queue_offsets: Ints = ()
    store_timestamp: int = 0
    reason: str = ""


MOST_BYTES_TOGETHER: Final = 1 << 20
"""Bytes of records at which an answer for several reads ends."""


class GetMessageResult(NamedTuple):
    """One read of a queue: messages in queue order, and where to go on.

    ``next_begin_offset`` is the queue offset of the next read; ``min_offset`` and ``max_offset``
    (exclusive) are the queue's bounds when it was read; ``buffer_total_size`` counts record bytes.
    ``rows``, for a read that asked for fields, are the messages; the list is empty then.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageExt]
    buffer_total_size: int = 0
    rows: MessageRows | None = None


class QueryMessageResult(NamedTuple):
    """Messages that an index lookup found, oldest first, and the raw hits.

    ``index_offsets`` are the commit log offsets as the index gave them, newest first; hash
    collisions are not filtered (the broker compares no keys).
    """

    messages: list[MessageExt]
    index_offsets: list[int]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int
