"""Reading: pulls, bounds of queues, and messages by place, key and id."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from storage.format.message import MessageExt
from storage.read.tag_filter import SUB_ALL
from storage.results import GetMessageStatus

from .offsets import OffsetCommit

if TYPE_CHECKING:
    from storage.read.by_time import Boundary
    from storage.read.message_columns import ColumnBatch
    from storage.read.message_rows import MessageRows

MAX_TIMESTAMP = (1 << 63) - 1


class PullStatus(StrEnum):
    """What a pull brought (org.apache.rocketmq.client.consumer.PullStatus)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    """Nothing at the offset yet: pull again with the same offset."""
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    """Nothing of the subscription: pull again at once from ``next_begin_offset``."""
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"
    """The offset lies outside of the queue; ``next_begin_offset`` is the nearest in it."""


class PullRequest(NamedTuple):
    """One pull of one queue (PullMessageRequestHeader).

    ``max_msg_nums`` below 1 counts as 1. ``suspend_timeout_ms`` > 0: if there is nothing new, the
    answer is held so long until there is. ``commit`` is progress to note with the pull.
    ``expression`` None means the subscription of the group's last heartbeat, which must not be
    older than ``sub_version``.

    ``pulls`` > 1: the results of this pull and of up to that many consecutive ones may come as one
    answer; each but the last is then a full one of ``max_msg_nums``. There may be fewer, as with a
    filter, or past ``MOST_BYTES_TOGETHER``.

    ``fields`` not None: where nothing is filtered, many usual messages may come as the rows of a
    table that has these fields.
    """

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int = 32
    expression: str | None = SUB_ALL
    expression_type: str = "TAG"
    suspend_timeout_ms: int = 0
    commit: OffsetCommit | None = None
    sub_version: int = 0
    client_id: str = ""
    pulls: int = 1
    fields: frozenset[str] | None = None


class PullResult(NamedTuple):
    """What a pull brought. ``get_status`` is the status of the store's read.

    Messages are in queue order; their tags match by hash only. ``min_offset`` and ``max_offset``
    (exclusive) are the queue's bounds when it was read. ``rows``, for a pull that asked for fields,
    are the messages; the list is empty then.
    """

    pull_status: PullStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    messages: list[MessageExt]
    get_status: GetMessageStatus
    suggest_which_broker_id: int = 0
    rows: MessageRows | None = None


class QueryResult(NamedTuple):
    """Messages that an index lookup found, oldest first; keys of equal hash are among them.

    The last two are the end of the index: store timestamp and commit log offset.
    """

    messages: list[MessageExt]
    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class Handoff(Protocol):
    """Work that an answer leaves to do, and that may block. It is called, or left, once."""

    def __call__(self) -> None:
        """Do the work in the broker's thread that brought the answer: no thread has to be woken.

        Other answers wait meanwhile, for 20 ms as a rule. So the work should be quick.
        """
        ...

    def late(self) -> None:
        """Do what cannot wait for the end of the work: another thread calls this while the work
        takes longer, or as it ends. Does not block."""
        ...

    def leave(self) -> None:
        """Leave the work to a thread of the client; does not block."""
        ...


class PullApi(Protocol):
    """Reading messages."""

    def pull(self, request: PullRequest) -> PullResult:
        """Read a queue (PULL_MESSAGE); blocks while the answer is held.

        Raises SubscriptionGroupNotExistError, NoPermissionError, TopicNotExistError,
        SubscriptionParseError, BrokerSystemError for a queue that is not there, and BrokerError
        with code SUBSCRIPTION_NOT_EXIST or SUBSCRIPTION_NOT_LATEST.
        """
        ...

    def pull_async(
        self, request: PullRequest, answer: Callable[[PullResult | Exception], Handoff | None]
    ) -> None:
        """Read a queue without blocking: ``answer`` gets the result, or what ``pull`` raises.

        It is called at once, in this thread, unless the answer is held: then from the broker's
        thread for held pulls. It is always called once, when the broker closes at the latest, and
        may neither block nor raise. It returns work that might block.
        """
        ...

    def pull_column(
        self, topic: str, queue_id: int, offset: int, count: int, max_bytes: int = 8 << 20
    ) -> ColumnBatch:
        """Read many messages of a queue at once, unfiltered, without an object for each.

        About ``max_bytes`` of records, at least one message if there is one. No group is checked.
        """
        ...

    def wait_for_messages(
        self, known: int | None, timeout_ms: int, topic: str | None = None
    ) -> int:
        """Wait until messages (of ``topic``) may have arrived since this gave ``known``.

        Returns the value to pass in next time; None answers at once. May return early.
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
        """Offset of a store time, ms (SEARCH_OFFSET_BY_TIMESTAMP); None: 4.9's nearest message.

        Raises BrokerSystemError for a time other than 0 before 1990 or after 2200.
        """
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
        """All messages with a UNIQ_KEY, in log order: retries keep theirs (QUERY_MESSAGE)."""
        ...
