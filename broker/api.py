"""The port: what a client needs of a broker, in requests and results that could cross a wire.

``broker.embedded.EmbeddedBroker`` answers over a store in this process. A client can not tell it
from a broker behind a socket, and a test can stand between them: any object with these methods
may refuse, fail or answer late.

Answers that RocketMQ has named are values; every refusal is a BrokerError with RocketMQ's response
code and remark. A broker in this process may also raise the StoreErrors of its store. All methods
may be called from any thread. Offsets, queue ids and times (ms since the epoch) are plain ints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.model import AUTO_CREATE_TOPIC_KEY_TOPIC, Message, MessageExt, MessageQueue
from storage.results import GetMessageStatus

from .subscription import SUB_ALL

if TYPE_CHECKING:
    from storage.format.prepared import Ints
    from storage.reading.columns import ColumnBatch
    from storage.reading.timesearch import Boundary

DEFAULT_TOPIC_QUEUE_NUMS = 4
"""Queues of a topic that is created by sending to it (defaultTopicQueueNums of producers)."""
MAX_TIMESTAMP = (1 << 63) - 1


class SendStatus(StrEnum):
    """What became of a message that *is* stored (org.apache.rocketmq.client.producer.SendStatus).

    All but SEND_OK tell that it may not survive everything it was meant to survive.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendOptions(NamedTuple):
    """What a send says beside its messages (SendMessageRequestHeader).

    ``default_topic`` and ``default_topic_queue_nums`` say how an unknown topic is created;
    ``sys_flag`` how the body is compressed. ``born_timestamp`` None means now; ``born_host``
    ``ip:port``, None means this process's.
    """

    producer_group: str = "CLIENT_INNER_PRODUCER"
    default_topic: str = AUTO_CREATE_TOPIC_KEY_TOPIC
    default_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    sys_flag: int = 0
    born_timestamp: int | None = None
    born_host: str | None = None
    reconsume_times: int = 0


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


class ColumnSendResult(NamedTuple):
    """Where the messages of a column went, item i for body i.

    ``unique_ids`` are the msg_ids in ASCII; ``commitlog_offsets`` with ``store_host`` (packed) make
    the offset_msg_ids (storage.format.message_id).
    """

    send_status: SendStatus
    topic: str
    queue_ids: int | Sequence[int]
    queue_offsets: Ints
    unique_ids: Sequence[bytes]
    commitlog_offsets: Ints
    store_host: bytes
    store_timestamp: int


class PullStatus(StrEnum):
    """What a pull brought (org.apache.rocketmq.client.consumer.PullStatus)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    """Nothing at the offset yet: ask again with the same offset."""
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    """Nothing of the subscription: ask again at once from ``next_begin_offset``."""
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"
    """The offset lies outside of the queue; ``next_begin_offset`` is the nearest in it."""


class OffsetCommit(NamedTuple):
    """Progress of a group in a queue: the next offset to consume.

    ``generation`` is the one that ``query_consumer_offset`` gave; see OffsetQuery.
    """

    topic: str
    queue_id: int
    offset: int
    generation: int = 0


class OffsetQuery(NamedTuple):
    """What a broker knows about a group's progress in a queue.

    ``offset`` None: nothing (QUERY_NOT_FOUND), the client decides where to begin. ``stored`` is
    False for an offset that the broker made up by the rule of young queues. ``generation`` counts
    deliberate moves (resets); a commit that names an older one is dropped.
    """

    offset: int | None
    generation: int = 0
    stored: bool = True


class PullRequest(NamedTuple):
    """One pull of one queue (PullMessageRequestHeader).

    ``max_msg_nums`` below 1 counts as 1. ``suspend_timeout_ms`` > 0: if there is nothing new, the
    answer is held back so long until there is. ``commit`` is taken note of with the pull.
    """

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    expression: str = SUB_ALL
    expression_type: str = "TAG"
    suspend_timeout_ms: int = 0
    commit: OffsetCommit | None = None


class PullResult(NamedTuple):
    """What a pull brought. ``get_status`` is the store's own word for it.

    Messages are in queue order; their tags match by hash only. ``min_offset`` and ``max_offset``
    (exclusive) are the queue's bounds when it was read.
    """

    pull_status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageExt]
    get_status: GetMessageStatus
    suggest_which_broker_id: int = 0


class QueryResult(NamedTuple):
    """Messages that an index lookup found, oldest first; keys of equal hash are among them.

    The last two tell how far the index reaches: store timestamp and commit log offset.
    """

    messages: list[MessageExt]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class Broker(Protocol):
    """A broker as clients see it; the rules of each method are those of the real one."""

    @property
    def name(self) -> str:
        """The broker's name, part of every MessageQueue."""
        ...

    # -- topics and groups

    def topics(self) -> Mapping[str, TopicConfig]:
        """All topics by name, system topics too (GET_ALL_TOPIC_CONFIG)."""
        ...

    def topic(self, topic: str) -> TopicConfig | None:
        """One topic's settings; None if there is no such topic (GET_TOPIC_CONFIG)."""
        ...

    def update_topic(self, config: TopicConfig, note: Mapping[str, str] | None = None) -> bool:
        """Create or change a topic (UPDATE_AND_CREATE_TOPIC); False if it is so already.

        ``note`` goes to the change journal: who, from where, why.
        """
        ...

    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """All consumer groups by name (GET_ALL_SUBSCRIPTIONGROUP_CONFIG)."""
        ...

    def update_group(
        self, config: SubscriptionGroupConfig, note: Mapping[str, str] | None = None
    ) -> bool:
        """Create or change a group (UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)."""
        ...

    # -- sending

    def send(
        self, message: Message, queue_id: int | None = None, options: SendOptions = DEFAULT_SEND
    ) -> SendResult:
        """Store one message (SEND_MESSAGE_V2); None lets the broker choose among write queues.

        Stored as the store's flush_disk_type says when this returns.
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

    # -- reading

    def pull(self, request: PullRequest) -> PullResult:
        """Read a queue (PULL_MESSAGE); blocks while the answer is held back."""
        ...

    def pull_column(
        self, topic: str, queue_id: int, offset: int, count: int, max_bytes: int = 8 << 20
    ) -> ColumnBatch:
        """Read many messages of a queue at once, unfiltered, without an object for each.

        About ``max_bytes`` of records, at least one message if there is one. No group is asked.
        """
        ...

    def wait_for_messages(
        self, known: int | None, timeout_ms: int, topic: str | None = None
    ) -> int:
        """Wait until messages (of ``topic``) may have arrived since this gave ``known``.

        Gives what to hand in next time; None answers at once. May come back early.
        """
        ...

    def min_offset(self, topic: str, queue_id: int) -> int:
        """First offset that is still there; 0 for a queue without messages (GET_MIN_OFFSET)."""
        ...

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Next offset to be written; 0 for a queue without messages (GET_MAX_OFFSET)."""
        ...

    def search_offset(
        self, topic: str, queue_id: int, timestamp: int, boundary: Boundary | None = None
    ) -> int:
        """Offset of a store time (SEARCH_OFFSET_BY_TIMESTAMP); None: 4.9's nearest message."""
        ...

    def view_message(self, commitlog_offset: int) -> MessageExt | None:
        """The message whose record begins there; None if none does (VIEW_MESSAGE_BY_ID)."""
        ...

    def query_message(
        self,
        topic: str,
        key: str,
        max_num: int = 64,
        begin_timestamp: int = 0,
        end_timestamp: int = MAX_TIMESTAMP,
    ) -> QueryResult:
        """Messages with a key, stored between two times (QUERY_MESSAGE); at most 64."""
        ...

    def query_unique(self, topic: str, unique_id: str) -> list[MessageExt]:
        """Messages with a UNIQ_KEY, in log order: retries keep theirs (QUERY_MESSAGE)."""
        ...

    # -- progress

    def query_consumer_offset(self, group: str, topic: str, queue_id: int) -> OffsetQuery:
        """How far a group is in a queue (QUERY_CONSUMER_OFFSET)."""
        ...

    def update_consumer_offsets(
        self, group: str, commits: Sequence[OffsetCommit]
    ) -> list[OffsetQuery]:
        """Commit progress, and give what holds now (UPDATE_CONSUMER_OFFSET).

        Merged, never overwritten: within a generation the larger offset stays. A result of a newer
        generation means that the progress was moved: go on from its offset.
        """
        ...

    def consumer_offsets(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """All committed offsets: (group, topic) to queue id to offset (GET_ALL_CONSUMER_OFFSET)."""
        ...

    def close(self) -> None:
        """Leave; held pulls are answered, progress is written. Closing twice is fine."""
        ...
