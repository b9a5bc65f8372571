"""Sending: what a producer requests, and where its messages went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from storage.format.message import AUTO_CREATE_TOPIC_KEY_TOPIC, Message, MessageQueue

if TYPE_CHECKING:
    from storage.format.prepared import Ints

DEFAULT_TOPIC_QUEUE_NUMS = 4
"""Queues of a topic that is created by sending to it (defaultTopicQueueNums of producers)."""


class SendStatus(StrEnum):
    """What became of a message that *is* stored (org.apache.rocketmq.client.producer.SendStatus).

    All but SEND_OK mean that it may not survive everything it was meant to survive.
    """

    SEND_OK = "SEND_OK"
    """Stored as requested."""
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """Stored; the device did not confirm it in time."""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """Stored; a slave did not confirm it in time."""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """Stored; no slave was there to copy it."""


class SendOptions(NamedTuple):
    """What a send carries beside its messages (SendMessageRequestHeader).

    ``default_topic`` and ``default_topic_queue_nums`` control how an unknown topic is created;
    ``sys_flag`` how the body is compressed. ``born_timestamp`` None means now; ``born_host``
    ``ip:port``, None means this process's. ``reconsume_times`` and ``max_reconsume_times`` (None:
    the group's) go with messages for a retry topic. ``timeout_ms`` is how long the client waits for
    the answer, None without limit: a remote broker gives up then, one in this process cannot.
    """

    producer_group: str = "CLIENT_INNER_PRODUCER"
    default_topic: str = AUTO_CREATE_TOPIC_KEY_TOPIC
    default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    sys_flag: int = 0
    born_timestamp: int | None = None
    born_host: str | None = None
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    timeout_ms: int | None = None


DEFAULT_SEND = SendOptions()


class SendResult(NamedTuple):
    """Where a message, or a batch, went (org.apache.rocketmq.client.producer.SendResult).

    Of a batch, ``queue_offset`` is that of the first message, the others follow one by one;
    ``msg_id`` and ``offset_msg_id`` join the ids of all with commas.
    """

    send_status: SendStatus
    message_queue: MessageQueue
    queue_offset: int
    msg_id: str
    offset_msg_id: str
    store_timestamp: int = 0


class RowColumns(NamedTuple):
    """Messages to store, as columns: item i of each is of message i."""

    topics: str | Sequence[str]
    bodies: Sequence[bytes]
    queue_ids: int | Sequence[int] | None
    """None spreads the messages of one topic over its write queues, message by message."""
    properties: Sequence[bytes]
    """Those of users, encoded (storage.format.properties)."""
    tags: Sequence[str | None]
    keys: Sequence[str]
    """Separated by blanks; empty for none."""
    flags: Sequence[int]


class ColumnSendResult(NamedTuple):
    """Where the messages of a column went, item i for body i.

    ``unique_ids`` are the msg_ids in ASCII; ``commitlog_offsets`` with ``store_host`` (packed) make
    the offset_msg_ids (storage.format.message_id).
    """

    send_status: SendStatus
    topic: str | Sequence[str]
    queue_ids: int | Sequence[int]
    queue_offsets: Ints
    unique_ids: Sequence[bytes]
    commitlog_offsets: Ints
    store_host: bytes
    store_timestamp: int


class SendApi(Protocol):
    """Storing messages."""

    def send(
        self, message: Message, queue_id: int | None = None, options: SendOptions = DEFAULT_SEND
    ) -> SendResult:
        """Store one message (SEND_MESSAGE_V2); ``queue_id`` None lets the broker choose a write
        queue.

        Stored by the store's flush_disk_type when this returns.
        """
        ...

    def send_batch(
        self,
        messages: Sequence[Message],
        queue_id: int | None = None,
        options: SendOptions = DEFAULT_SEND,
    ) -> SendResult:
        """Store messages of one topic in one queue, all or none (SEND_BATCH_MESSAGE)."""
        ...

    def send_column(
        self,
        topic: str,
        bodies: Sequence[bytes],
        queue_ids: int | Sequence[int] | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        keys: Sequence[str] | None = None,
        flag: int = 0,
        options: SendOptions = DEFAULT_SEND,
    ) -> ColumnSendResult:
        """Store many messages that differ in body and keys only, as one ``send`` each would.

        ``queue_ids`` None spreads them over the write queues, message by message.
        """
        ...

    def send_rows(self, rows: RowColumns, options: SendOptions = DEFAULT_SEND) -> ColumnSendResult:
        """Store many messages that differ in any field, as one ``send`` each would, all or none.

        Raises MessageIllegalError also for what only ``send`` stores: delayed and half messages.
        """
        ...
