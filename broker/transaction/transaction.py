"""How transactions end (EndTransactionProcessor and TransactionalMessageBridge of 4.9).

A half message waits in RMQ_SYS_TRANS_HALF_TOPIC. Its end is an *op message* whose body is the half
message's queue offset; before a commit's op message the message itself is stored again under its
real topic. Both records are put at once here, where RocketMQ puts one after the other. So no crash
in between can lead to a second check and commit of a committed message.

A check stores half messages again, so a transaction may have several. It is committed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from broker.api.transactions import LocalTransactionState
from broker.errors import BrokerSystemError, NoPermissionError
from broker.send.send import prepared, put_outcome
from broker.tables.shared_table import READ_ONLY
from storage.format.dispatch import is_possible_topic
from storage.format.encode import MessageInner
from storage.format.host import pack_host
from storage.format.java_numbers import parse_int
from storage.format.message import (
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    MessageExt,
)
from storage.format.properties import encode_properties
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from broker.api.transactions import EndTransactionRequest
    from broker.config import BrokerConfig
    from broker.send.message_builder import MessageBuilder
    from storage.results import PutMessageResult

REMOVE_TAG: Final = "d"
"""Tag of an op message (TransactionalMessageUtil.REMOVETAG)."""

_OP_PROPERTIES: Final = encode_properties(
    {PROPERTY_TAGS: REMOVE_TAG, PROPERTY_WAIT_STORE_MSG_OK: "true"}
)


class TransactionalMessageService:
    """Ends transactions. Holds no state; safe for threads.

    ``put`` is MessageStore.put, None where the store is open for reading only; ``read_message``
    reads the message at a commit log offset, ``find`` those of a topic with a unique id. ``ending``
    is held while a transaction ends whose half message may have been stored more than once.
    """

    def __init__(
        self,
        config: BrokerConfig,
        builder: MessageBuilder,
        *,
        put: Callable[..., PutMessageResult] | None,
        read_message: Callable[[int], MessageExt | None],
        find: Callable[[str, str], Sequence[MessageExt]],
        ending: Callable[[], AbstractContextManager[object]],
        now: Callable[[], int],
    ) -> None:
        self._timeout_ms = config.transaction_timeout_ms
        self._find = find
        self._ending = ending
        self._builder = builder
        self._put = put
        self._read_message = read_message
        self._now = now
        self._store_host = pack_host(config.store_host)

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """Commit or roll back a half message; see Broker.end_transaction.

        A transaction that was committed by another of its half messages is not committed again: a
        late answer may come to the first one while the producer is asked about its copy.
        """
        if self._put is None:
            raise NoPermissionError(READ_ONLY)
        if request.state is LocalTransactionState.UNKNOW:
            return
        half = self._half_message(request)
        op = self._op_message(half)
        if request.state is not LocalTransactionState.COMMIT_MESSAGE:
            put_outcome(self._put(prepared([op]), whole=True))
        elif not self._may_have_copies(half):
            put_outcome(self._put(prepared([self._committed(half), op]), whole=True))
        else:
            with self._ending():
                records = [op] if self._is_committed(half) else [self._committed(half), op]
                put_outcome(self._put(prepared(records), whole=True))

    def _may_have_copies(self, half: MessageExt) -> bool:
        """Whether a check may have stored the half message again, or this is such a copy."""
        properties = half.properties
        return (
            not 0 <= self._now() - half.born_timestamp <= self._timeout_ms
            or PROPERTY_TRANSACTION_CHECK_TIMES in properties
            or PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS in properties
        )

    def _is_committed(self, half: MessageExt) -> bool:
        """Whether consumers see the message of this transaction already."""
        unique_id = half.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        if not unique_id:
            return False
        topic, queue_id = real_queue(half)
        return any(
            found.sys_flag & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
            == MessageSysFlag.TRANSACTION_COMMIT_TYPE
            and (found.queue_id, found.born_timestamp) == (queue_id, half.born_timestamp)
            and found.get_property(PROPERTY_PRODUCER_GROUP)
            == half.get_property(PROPERTY_PRODUCER_GROUP)
            for found in self._find(topic, unique_id)
        )

    def _half_message(self, request: EndTransactionRequest) -> MessageExt:
        """Find the half message; refuses one that does not match the request."""
        half = self._read_message(request.commitlog_offset)
        if half is None or half.topic != TRANS_HALF_TOPIC:
            raise BrokerSystemError(
                f"no half message begins at {request.commitlog_offset} of the commit log"
            )
        group = half.get_property(PROPERTY_PRODUCER_GROUP)
        if group != request.producer_group:
            raise BrokerSystemError(
                f"the half message is of producer group {group}, not {request.producer_group}"
            )
        if half.queue_offset != request.transaction_state_table_offset:
            raise BrokerSystemError(
                f"the half message has queue offset {half.queue_offset}, "
                f"not {request.transaction_state_table_offset}"
            )
        return half

    def _committed(self, half: MessageExt) -> MessageInner:
        """Make the record that consumers will see. REAL_TOPIC, REAL_QID and TRAN_MSG stay."""
        topic, queue_id = real_queue(half)
        bits = half.sys_flag & ~MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
        return self._builder.again(
            half,
            topic,
            queue_id,
            half.properties,
            sys_flag=bits | MessageSysFlag.TRANSACTION_COMMIT_TYPE,
            prepared_transaction_offset=half.commitlog_offset,
        )

    def _op_message(self, half: MessageExt) -> MessageInner:
        return MessageInner(
            TRANS_OP_HALF_TOPIC,
            half.queue_id,
            str(half.queue_offset).encode(),
            _OP_PROPERTIES,
            self._now(),
            self._store_host,
            self._store_host,
            tags=REMOVE_TAG,
        )


def real_queue(half: MessageExt) -> tuple[str, int]:
    """Give topic and queue that a half message is for. Raises BrokerSystemError."""
    topic = half.get_property(PROPERTY_REAL_TOPIC)
    queue_id = parse_int(half.get_property(PROPERTY_REAL_QUEUE_ID) or "")
    if not topic or queue_id is None:
        raise BrokerSystemError(
            f"the half message at {half.commitlog_offset} of the commit log names no real topic"
        )
    if not is_possible_topic(topic):
        raise BrokerSystemError(
            f"the half message at {half.commitlog_offset} of the commit log has {topic!r} as its "
            "real topic, which can be none"
        )
    return topic, queue_id
