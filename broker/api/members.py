"""Members of groups, holders of queues, and requests of a broker to its clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from storage.read.tag_filter import SUB_ALL

from .offsets import ConsumeFromWhere

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

    from .transactions import CheckTransactionState


class ConsumeType(StrEnum):
    """How a consumer gets its messages (heartbeat.ConsumeType)."""

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    """It pulls by itself."""
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    """A push consumer: it is rebalanced, and its listener is called."""


class MessageModel(StrEnum):
    """Which members of a group get a message (heartbeat.MessageModel)."""

    BROADCASTING = "BROADCASTING"
    """Every member."""
    CLUSTERING = "CLUSTERING"
    """One member."""


class SubscriptionData(NamedTuple):
    """A group's subscription to a topic (heartbeat.SubscriptionData).

    ``sub_version`` is when it was made, ms; the larger one wins. ``tags_set`` and ``code_set`` (the
    tags' Java hashes) are empty for ``*`` and for expressions that are no list of tags.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str = "TAG"


class ConsumerData(NamedTuple):
    """A consumer's part of a heartbeat (heartbeat.ConsumerData).

    ``queues`` are those that it has now, None if it does not say (RocketMQ: they are asked for).
    """

    group_name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscriptions: tuple[SubscriptionData, ...] = ()
    queues: tuple[MessageQueue, ...] | None = None


class HeartbeatData(NamedTuple):
    """A client, its consumer groups and its producer groups by name (heartbeat.HeartbeatData)."""

    client_id: str
    producers: tuple[str, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()


class ClientDescription(NamedTuple):
    """A live client of a group, for people and tools (GET_CONSUMER_CONNECTION_LIST).

    ``since`` is when it joined, ms. ``host`` and ``pid`` are for display only; no decision uses
    them. ``consumer`` is the group's part of its last heartbeat.
    """

    client_id: str
    host: str
    pid: int
    since: int
    last_heartbeat: int
    consumer: ConsumerData | None = None


class ConsumeDirectlyStatus(StrEnum):
    """A listener's result for a message passed to it directly (CMResult)."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class ConsumeDirectlyResult(NamedTuple):
    """Answer to CONSUME_MESSAGE_DIRECTLY; no progress was touched."""

    order: bool
    auto_commit: bool
    consume_result: ConsumeDirectlyStatus
    remark: str
    spent_time_mills: int


class ClientHandler(Protocol):
    """Requests of a broker to a connected client; called from the broker's threads, may not block
    for longer than a moment (``consume_message_directly`` runs the listener)."""

    def notify_consumer_ids_changed(self, group: str) -> None:
        """The members of a group have changed: rebalance (NOTIFY_CONSUMER_IDS_CHANGED)."""
        ...

    def notify_topics_changed(self, topics: Collection[str]) -> None:
        """Topics that a consumer subscribes to were made, changed or deleted: ask for their queues.
        RocketMQ has no such request: its clients ask every 30 s."""
        ...

    def reset_offset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Progress was moved: suspend, drop these queues (by id), go on from there, resume
        (RESET_CONSUMER_CLIENT_OFFSET)."""
        ...

    def check_transaction_state(self, request: CheckTransactionState) -> None:
        """Report the state of a half message, by ``end_transaction`` (CHECK_TRANSACTION_STATE)."""
        ...

    def consumer_status(self, group: str, topic: str) -> Mapping[MessageQueue, int]:
        """Give the progress in memory, by queue (GET_CONSUMER_STATUS_FROM_CLIENT)."""
        ...

    def consumer_running_info(self, group: str) -> Mapping[str, Any]:
        """Give settings, subscriptions, queues in work and statistics, ready for JSON
        (GET_CONSUMER_RUNNING_INFO)."""
        ...

    def consume_message_directly(self, group: str, message: MessageExt) -> ConsumeDirectlyResult:
        """Have the group's listener consume one message (CONSUME_MESSAGE_DIRECTLY)."""
        ...


class MemberApi(Protocol):
    """Members of groups and the locks on queues."""

    def connect(self, client_id: str, handler: ClientHandler) -> None:
        """Register ``handler`` for ``client_id``; before its first heartbeat.

        Raises BrokerSystemError if the id is connected here already, and NoPermissionError on a
        read-only store.
        """
        ...

    def heartbeat(self, data: HeartbeatData) -> None:
        """Join groups or stay in them, and leave those that it does not name (HEART_BEAT).

        Creates the group and its retry topic where allowed. A new member, or a topic added or
        removed, notifies all members of the group. Raises ClientIdInUseError if another process has
        a member of the same id in a group that divides its queues: both would take the same queues.
        The other groups of the heartbeat are joined all the same. Raises WriteLockTimeoutError,
        and nothing is joined, while another process is stopped that is about to join.
        """
        ...

    def unregister_client(
        self, client_id: str, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """Leave a group, and notify the other members (UNREGISTER_CLIENT)."""
        ...

    def disconnect(self, client_id: str) -> None:
        """Leave all groups; the client gets no further calls. Calling twice is fine."""
        ...

    def consumer_ids(self, group: str) -> list[str]:
        """Ids of a group's live members, sorted by UTF-16 unit (GET_CONSUMER_LIST_BY_GROUP)."""
        ...

    def consumer_connection(self, group: str) -> list[ClientDescription]:
        """Live members of a group with their descriptions; empty if there is none."""
        ...

    def lock_queues(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> set[MessageQueue]:
        """Lock queues for one member, or keep them locked; gives those that it holds now
        (LOCK_BATCH_MQ).

        A dead process holds nothing, and a client nothing of a group that it has left. Raises
        BrokerSystemError for a client that is not connected, or does not consume in the group
        (RocketMQ locks for any).
        """
        ...

    def unlock_queues(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        """Release queues that the member holds (UNLOCK_BATCH_MQ)."""
        ...

    def check_client(self, client_id: str, group: str, subscription: SubscriptionData) -> None:
        """Check a subscription; raises SubscriptionParseError (CHECK_CLIENT_CONFIG)."""
        ...

    def consumer_running_info(self, group: str, client_id: str) -> Mapping[str, Any]:
        """Ask a live member for its state (GET_CONSUMER_RUNNING_INFO); blocks for up to 10 s.

        Raises BrokerSystemError if it is not online or fails, and BrokerError with code
        CONSUME_MSG_TIMEOUT if it does not answer.
        """
        ...

    def consumer_status(self, group: str, topic: str, client_id: str) -> Mapping[MessageQueue, int]:
        """Ask a live member for its progress in memory (INVOKE_BROKER_TO_GET_CONSUMER_STATUS).

        Blocks and raises as ``consumer_running_info``.
        """
        ...

    def consume_message_directly(
        self, group: str, client_id: str, commitlog_offset: int
    ) -> ConsumeDirectlyResult:
        """Have a live member's listener consume a stored message (CONSUME_MESSAGE_DIRECTLY).

        Blocks and raises as ``consumer_running_info``; no progress is touched.
        """
        ...
