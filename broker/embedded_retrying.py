"""Retries, transactions and the timed services of a broker in this process: wiring only."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from storage.format.delay import parse_delay_levels

if TYPE_CHECKING:
    from storage.model import MessageExt
    from storage.readonly import StoreView
    from storage.store import MessageStore

    from .config import BrokerConfig
    from .groups import GroupManager
    from .members import MemberManager
    from .message_builder import MessageBuilder
    from .port.retrying import SendBackRequest
    from .port.transactions import EndTransactionRequest
    from .progress import ConsumerOffsetManager
    from .schedule import ScheduleMessageService
    from .send_back import SendBackHandler
    from .timed_services import TimedServiceThread
    from .topics import TopicManager
    from .transaction import TransactionalMessageService
    from .transaction_check import TransactionCheckService


class RetryingRole:
    """The Retrying and Transactions roles of an EmbeddedBroker, and what it does by itself."""

    config: BrokerConfig
    _store: MessageStore | None
    _topics: TopicManager
    _groups: GroupManager
    _progress: ConsumerOffsetManager
    _builder: MessageBuilder
    _service_thread: TimedServiceThread | None = None

    @property
    def view(self) -> StoreView:
        """The store for reading."""
        raise AttributeError("view")

    @cached_property
    def members(self) -> MemberManager:
        """The rules of members."""
        raise AttributeError("members")

    def send_message_back(self, request: SendBackRequest) -> None:
        """See Broker.send_message_back."""
        self._send_back.send_message_back(request)

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """See Broker.end_transaction."""
        self._transactions.end_transaction(request)

    @cached_property
    def delayed(self) -> ScheduleMessageService | None:
        """Delivery of delayed messages; None where the store is open for reading only."""
        from .schedule import ScheduleMessageService

        store = self._store
        if store is None:
            return None
        return ScheduleMessageService(
            store.root,
            self.config,
            parse_delay_levels(store.config.message_delay_level),
            view=lambda: store.view,
            put=store.put,
            gate=store.gate,
            now=store.now,
        )

    @cached_property
    def transaction_checks(self) -> TransactionCheckService | None:
        """Questions about half messages; None where the store is open for reading only."""
        from .transaction_check import TransactionCheckService

        store = self._store
        if store is None:
            return None
        return TransactionCheckService(
            self.config,
            self._topics,
            self._progress,
            self._builder,
            view=lambda: store.view,
            put=store.put,
            ask=lambda question: self.members.check_transaction(question),
            now=store.now,
            file_reserved_ms=store.config.file_reserved_time_hours * 3_600_000,
        )

    def start_services(self, *, deliver: bool | None = None) -> None:
        """Do what a broker does by itself, in background threads, while this process is elected.

        ``deliver`` None delivers delayed messages and checks transactions only in a store that
        rmqctl made; True, as somebody asked for it, in any. Starting twice is fine.
        """
        from storage.layout import was_created_here

        from .timed_services import TimedServiceThread

        store = self._store
        if store is None or self._service_thread is not None:
            return
        if deliver is None:
            deliver = was_created_here(store.root)
        delayed, checks = self.delayed, self.transaction_checks
        if deliver and delayed is not None and checks is not None:
            self._topics.write_system_topics()
            self._service_thread = TimedServiceThread(
                store.services, [delayed, checks], now=store.now
            )
            self._service_thread.start()
        store.start_services()

    def _stop_services(self) -> None:
        """End them; how far delivery is, is written."""
        thread, self._service_thread = self._service_thread, None
        if thread is not None:
            thread.stop()
        delayed = vars(self).get("delayed")
        if delayed is not None:
            delayed.shutdown()

    @cached_property
    def _send_back(self) -> SendBackHandler:
        from .send_back import SendBackHandler

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
        from storage.store import now_ms

        from .transaction import TransactionalMessageService

        return TransactionalMessageService(
            self.config,
            self._builder,
            put=None if self._store is None else self._store.put,
            look=self._look,
            now=now_ms if self._store is None else self._store.now,
        )

    def _look(self, commitlog_offset: int) -> MessageExt | None:
        return self.view.look_message_by_offset(commitlog_offset)
