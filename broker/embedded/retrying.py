"""Retries and transactions of a broker in this process: wiring only."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from broker.api.send import DEFAULT_SEND
from storage.clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.api.send import SendOptions, SendResult
    from broker.api.send_back import SendBackRequest
    from broker.api.transactions import EndTransactionRequest
    from broker.config import BrokerConfig
    from broker.retry.deliver_early import EarlyDeliveryHandler
    from broker.retry.redrive import RedriveHandler
    from broker.retry.send_back import SendBackHandler
    from broker.send.message_builder import MessageBuilder
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from broker.transaction.transaction import TransactionalMessageService
    from storage.errors import RocketMQError
    from storage.format.message import Message, MessageExt
    from storage.readonly import StoreView
    from storage.store import MessageStore


class RetryingRole:
    """The Retrying and Transactions roles of an EmbeddedBroker."""

    config: BrokerConfig
    _store: MessageStore | None
    _topics: TopicManager
    _groups: GroupManager

    @cached_property
    def _builder(self) -> MessageBuilder:
        """Makes what is stored."""
        raise AttributeError("_builder")

    @property
    def view(self) -> StoreView:
        """The store for reading."""
        raise AttributeError("view")

    def send_message_back(self, request: SendBackRequest) -> None:
        """See Broker.send_message_back."""
        self._send_back.send_message_back(request)

    def send_messages_back(self, requests: Sequence[SendBackRequest]) -> list[RocketMQError | None]:
        """See Broker.send_messages_back."""
        return self._send_back.send_messages_back(requests)

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """See Broker.end_transaction."""
        self._transactions.end_transaction(request)

    def send(
        self, message: Message, queue_id: int | None = None, options: SendOptions = DEFAULT_SEND
    ) -> SendResult:
        """See Broker.send."""
        raise AttributeError("send")

    @cached_property
    def redriving(self) -> RedriveHandler:
        """Sends dead letters again."""
        from broker.retry.redrive import RedriveHandler

        return RedriveHandler(
            self._topics, self._groups, send=self.send, writable=self._store is not None
        )

    @cached_property
    def cutting_short(self) -> EarlyDeliveryHandler:
        """Ends the wait of delayed messages."""
        from broker.retry.deliver_early import EarlyDeliveryHandler
        from storage.configs.early_deliveries import EarlyDeliveries

        return EarlyDeliveryHandler(
            self._topics, self._builder, self._store, lambda: EarlyDeliveries(self.view.root)
        )

    @cached_property
    def _send_back(self) -> SendBackHandler:
        from broker.retry.send_back import SendBackHandler

        return SendBackHandler(
            self.config,
            self._topics,
            self._groups,
            self._builder,
            put=None if self._store is None else self._store.put,
            look=self._look,
        )

    @cached_property
    def _transactions(self) -> TransactionalMessageService:
        from broker.transaction.transaction import TransactionalMessageService
        from storage.coordination.locks import ProcessLock
        from storage.format.names import OURS

        return TransactionalMessageService(
            self.config,
            self._builder,
            put=None if self._store is None else self._store.put,
            look=self._look,
            find=lambda topic, unique_id: self.view.find_unique(topic, unique_id),
            ending=ProcessLock(self.view.root / OURS / "transactions.lock").held,
            now=now_ms if self._store is None else self._store.now,
        )

    def _look(self, commitlog_offset: int) -> MessageExt | None:
        return self.view.look_message_by_offset(commitlog_offset)
