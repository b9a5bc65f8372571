"""How transactions end (EndTransactionProcessor and TransactionalMessageBridge of 4.9).

A half message waits in RMQ_SYS_TRANS_HALF_TOPIC. Its end is an *op message* beside it, whose body
is the half message's queue offset; before a commit's op message the message itself is stored again
under its real topic. Both records are put at once here, where RocketMQ puts one after the other:
no death in between can have a committed message asked about, and committed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerSystemError, NoPermissionError
from broker.port.transactions import LocalTransactionState
from broker.sending.send import prepared, put_outcome
from broker.tables.shared_table import READ_ONLY
from storage.format.encode import MessageInner
from storage.format.host import pack_host
from storage.format.properties import encode_properties
from storage.format.sys_flag import MessageSysFlag
from storage.model import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_WAIT_STORE_MSG_OK,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    MessageExt,
)

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.port.transactions import EndTransactionRequest
    from broker.sending.message_builder import MessageBuilder
    from storage.results import PutMessageResult

REMOVE_TAG: Final = "d"
"""Tag of an op message (TransactionalMessageUtil.REMOVETAG)."""

_OP_PROPERTIES: Final = encode_properties(
    {PROPERTY_TAGS: REMOVE_TAG, PROPERTY_WAIT_STORE_MSG_OK: "true"}
)


class TransactionalMessageService:
    """Ends transactions. Holds no state; safe for threads.

    ``put`` is MessageStore.put, None where the store is open for reading only; ``look`` gives the
    message at a commit log offset.
    """

    def __init__(
        self,
        config: BrokerConfig,
        builder: MessageBuilder,
        *,
        put: Callable[..., PutMessageResult] | None,
        look: Callable[[int], MessageExt | None],
        now: Callable[[], int],
    ) -> None:
        self._builder = builder
        self._put = put
        self._look = look
        self._now = now
        self._store_host = pack_host(config.store_host)

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """Commit or roll back a half message; see Broker.end_transaction."""
        if self._put is None:
            raise NoPermissionError(READ_ONLY)
        if request.state is LocalTransactionState.UNKNOW:
            return
        half = self._half_message(request)
        records = [self._op_message(half)]
        if request.state is LocalTransactionState.COMMIT_MESSAGE:
            records.insert(0, self._committed(half))
        put_outcome(self._put(prepared(records), whole=True))

    def _half_message(self, request: EndTransactionRequest) -> MessageExt:
        """Find the half message; refuses one that is not what the request says it is."""
        half = self._look(request.commitlog_offset)
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
    queue_id = half.get_property(PROPERTY_REAL_QUEUE_ID) or ""
    if not topic or not (queue_id.isascii() and queue_id.isdigit()):
        raise BrokerSystemError(
            f"the half message at {half.commitlog_offset} of the commit log names no real topic"
        )
    return topic, int(queue_id)
