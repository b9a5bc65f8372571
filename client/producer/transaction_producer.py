"""Transaction messages: stored at once, visible only when the sender's own transaction has
committed.

    send half message -> local transaction -> END_TRANSACTION: commit, rollback, or not known yet
                                                                        |
    broker: 60 s later, at most 15 times: CHECK_TRANSACTION_STATE -> listener -> END_TRANSACTION

TransactionMQProducer and DefaultMQProducerImpl.sendMessageInTransaction of 4.9.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from broker.api.send import SendResult, SendStatus
from broker.api.transactions import (
    CheckTransactionState,
    EndTransactionRequest,
    LocalTransactionState,
)
from broker.errors import BrokerError
from broker.validation import check_group, check_types
from client.arguments import check_kind, check_methods
from client.errors import UNANSWERED, ClientError
from client.hooks import EndTransactionContext, EndTransactionHook, call_hooks
from client.runtime.client_manager import CLIENT_MANAGER, ClientManager
from storage.format.host import unpack_host
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
)
from storage.format.message_id import parse_offset_msg_id

from .bounded_executor import BoundedExecutor
from .config import ProducerConfig
from .producer import Producer

if TYPE_CHECKING:
    from os import PathLike

    from broker.api.broker import Broker
    from client.runtime.client_config import ClientConfig
    from client.runtime.instance import ClientInstance
    from storage.format.message import Message, MessageExt

logger = logging.getLogger("rmqctl.client")

_LISTENER: Final = ("execute_local_transaction", "check_local_transaction")
_OF_HALF_MESSAGES: Final = (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_PRODUCER_GROUP,
)
"""Properties that the message has only while it is sent as a half message."""
_LAST_CHECKS_MS: Final = 2_500
_ENDINGS: Final = (*UNANSWERED, BrokerError, ClientError)


class TransactionListener(Protocol):
    """The sender's local transaction and its later check (TransactionListener)."""

    def execute_local_transaction(
        self, message: Message, arg: object
    ) -> LocalTransactionState | None:
        """Do the local transaction: the half message is stored, and its UNIQ_KEY names it.

        None, errors and other values that are no state mean UNKNOW: the broker will ask. A state's
        name counts as the state.
        """
        ...

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState | None:
        """Return the transaction's state; called by another thread, perhaps after a restart,
        perhaps in another process of the group."""
        ...


class TransactionSendResult(NamedTuple):
    """A half message, and the result of its local transaction (TransactionSendResult).

    ``send_result`` describes the half message: its offsets are those in the half topic.
    """

    send_result: SendResult
    local_transaction_state: LocalTransactionState
    transaction_id: str


class TransactionProducer(Producer):
    """A producer whose messages may depend on a local transaction.

    Examples:
        >>> from rmqctl import LocalTransactionState, TransactionProducer
        >>> class Orders:
        ...     def execute_local_transaction(self, message, arg):
        ...         return LocalTransactionState.COMMIT_MESSAGE
        ...     def check_local_transaction(self, message):
        ...         return LocalTransactionState.UNKNOW
        >>> producer = TransactionProducer("order-service", Orders())
        >>> producer.state
        <ServiceState.CREATE_JUST: 'CREATE_JUST'>
    """

    def __init__(
        self,
        group: str,
        listener: TransactionListener,
        *,
        brokers: Iterable[Broker] = (),
        config: ProducerConfig | None = None,
        client_config: ClientConfig | None = None,
        manager: ClientManager = CLIENT_MANAGER,
    ) -> None:
        """Make a producer of ``group``. Any process of a group may answer its checks.

        Raises what Producer raises, ClientArgumentError too for a listener without its methods.
        """
        check_methods("the listener", listener, _LISTENER, "a TransactionListener")
        super().__init__(
            group, brokers=brokers, config=config, client_config=client_config, manager=manager
        )
        self.listener: Final = listener
        self.end_transaction_hooks: Final[list[EndTransactionHook]] = []
        """Called when a transaction ends; append yours before ``start``."""
        self._checks = BoundedExecutor(
            f"TransactionCheck {group}",
            self.config.check_thread_pool_size,
            self.config.check_request_hold_max,
        )

    @classmethod
    def open(
        cls,
        store: str | PathLike[str],
        group: str,
        config: ProducerConfig | None = None,
        *,
        create: bool = False,
        listener: TransactionListener | None = None,
    ) -> Self:
        """See Producer.open; ``listener`` is required."""
        check_group(group)
        check_kind("config", config, ProducerConfig)
        check_methods("the listener", listener, _LISTENER, "a TransactionListener")
        assert listener is not None
        own = listener
        return cls._owning(
            store, create, lambda brokers: cls(group, own, brokers=brokers, config=config)
        )

    def shutdown(self) -> None:
        """See Producer.shutdown. Questions that still wait are answered first, unless the listener
        takes long: the broker asks again."""
        try:
            self._checks.shutdown(min(self.config.send_msg_timeout_ms, _LAST_CHECKS_MS))
        finally:
            super().shutdown()

    def send_message_in_transaction(
        self, message: Message, arg: object = None
    ) -> TransactionSendResult:
        """Store a message that no consumer sees, run the listener with ``arg``, and end it by its
        answer.

        A delay level has no effect. If the half message is stored but not SEND_OK, the listener is
        not called and the message is rolled back. Ending is one-way: if it does not reach the
        broker, the broker asks. Raises the errors of ``send``; then nothing has happened.

        Afterwards, also after an error, the message has the properties that it had, and its
        UNIQ_KEY: ``send`` sends it as any other.
        """
        check_types((message,))
        properties = message.properties
        before = {name: properties.get(name) for name in _OF_HALF_MESSAGES}
        properties.pop(PROPERTY_DELAY_TIME_LEVEL, None)
        properties[PROPERTY_TRANSACTION_PREPARED] = "true"
        properties[PROPERTY_PRODUCER_GROUP] = self.group
        try:
            return self._send_half(message, arg)
        finally:
            for name, value in before.items():
                if value is None:
                    properties.pop(name, None)
                else:
                    properties[name] = value

    def _send_half(self, message: Message, arg: object) -> TransactionSendResult:
        result = self.send(message)
        transaction_id = message.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
        state = LocalTransactionState.ROLLBACK_MESSAGE
        if result.send_status is SendStatus.SEND_OK:
            state = self._execute(message, arg)
        store_host, commitlog_offset = parse_offset_msg_id(result.offset_msg_id)
        broker_name = result.message_queue.broker_name
        request = EndTransactionRequest(
            self.group,
            result.queue_offset,
            commitlog_offset,
            state,
            msg_id=result.msg_id,
            transaction_id=transaction_id,
        )
        try:
            broker = self.instance.routes.broker(broker_name)
            self._end(broker, request, message, unpack_host(store_host))
        except ClientError as error:
            logger.warning("a transaction could not be ended: msg_id=%s %s", result.msg_id, error)
        return TransactionSendResult(result, state, transaction_id)

    def check_transaction_state(self, broker: Broker, request: CheckTransactionState) -> None:
        """Let the listener answer in a thread of its own; see ProducerInner."""
        if not self._checks.submit(lambda: self._check(broker, request)):
            logger.warning("too many transactions to check: msg_id=%s", request.msg_id)

    def _execute(self, message: Message, arg: object) -> LocalTransactionState:
        try:
            answer = self.listener.execute_local_transaction(message, arg)
        except Exception:
            logger.exception("a local transaction failed: message=%r", message)
            return LocalTransactionState.UNKNOW
        return _state_of(answer, message.properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX))

    def _check(self, broker: Broker, request: CheckTransactionState) -> None:
        message = request.message
        state = LocalTransactionState.UNKNOW
        try:
            state = _state_of(self.listener.check_local_transaction(message), request.msg_id)
        except BaseException:  # sys.exit() in this thread would end no more than the thread
            logger.exception("a check of a local transaction failed: msg_id=%s", request.msg_id)
        end = EndTransactionRequest(
            self.group,
            request.transaction_state_table_offset,
            request.commitlog_offset,
            state,
            from_check=True,
            msg_id=message.msg_id,
            transaction_id=request.transaction_id,
        )
        self._end(broker, end, message, message.store_host)

    def _end(
        self, broker: Broker, request: EndTransactionRequest, message: Message, store_host: str
    ) -> None:
        """End a transaction one-way: after any error the broker asks again."""
        context = EndTransactionContext(
            producer_group=self.group,
            message=message,
            broker_name=broker.name,
            store_host=store_host,
            msg_id=request.msg_id,
            transaction_id=request.transaction_id,
            transaction_state=request.state,
            from_transaction_check=request.from_check,
            client_id=self.instance.client_id,
        )
        call_hooks((hook.end_transaction for hook in self.end_transaction_hooks), context)
        try:
            broker.end_transaction(request)
        except _ENDINGS as error:
            logger.warning("a transaction was not ended: msg_id=%s %s", request.msg_id, error)

    def _trace(self, instance: ClientInstance) -> None:
        from client.trace.trace_hooks import EndTransactionTraceHook

        super()._trace(instance)
        if self._dispatcher is not None:
            self.end_transaction_hooks.append(
                EndTransactionTraceHook(self._dispatcher, instance.clock)
            )


def _state_of(answer: object, msg_id: str | None) -> LocalTransactionState:
    """Read a listener's answer: a state or the name of one; any other value is UNKNOW."""
    for state in LocalTransactionState:
        if isinstance(answer, str) and answer == state:
            return state
    if answer is not None:
        logger.warning(
            "a transaction listener gave %r, which is none of %s, and counts as UNKNOW: msg_id=%s",
            answer,
            ", ".join(LocalTransactionState),
            msg_id,
        )
    return LocalTransactionState.UNKNOW
