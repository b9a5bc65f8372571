"""The timed services of a broker in this process: wiring only."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from storage.deadlines import Deadline
from storage.format.delay import parse_delay_levels

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.members.manager import MemberManager
    from broker.offset.offset_manager import ConsumerOffsetManager
    from broker.offset.offset_sampling import ProgressSampler
    from broker.schedule.schedule import ScheduleMessageService
    from broker.send.message_builder import MessageBuilder
    from broker.tables.topics import TopicManager
    from broker.transaction.check import TransactionCheckService
    from storage.store import MessageStore

    from .timed_services import TimedService, TimedServiceThread


class ServicesRole:
    """The timed work of an EmbeddedBroker; nothing of it runs before ``start_services``."""

    config: BrokerConfig
    _store: MessageStore | None
    _topics: TopicManager
    _progress: ConsumerOffsetManager
    _service_threads: tuple[TimedServiceThread, ...] = ()

    @cached_property
    def _builder(self) -> MessageBuilder:
        """Makes what is stored."""
        raise AttributeError("_builder")

    @cached_property
    def members(self) -> MemberManager:
        """The rules of members."""
        raise AttributeError("members")

    def do_own_work(self) -> None:
        """Do what each process does for itself."""
        raise AttributeError("do_own_work")

    @cached_property
    def delayed(self) -> ScheduleMessageService | None:
        """Delivery of delayed messages; None where the store is open for reading only."""
        from broker.schedule.schedule import ScheduleMessageService

        store = self._store
        if store is None:
            return None
        return ScheduleMessageService(
            store.root,
            self.config,
            parse_delay_levels(store.config.message_delay_level),
            view=lambda: store.view,
            put=store.put,
            now=store.now,
            settle=store.flush,
        )

    @cached_property
    def transaction_checks(self) -> TransactionCheckService | None:
        """Questions about half messages; None where the store is open for reading only."""
        from broker.transaction.check import TransactionCheckService

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
            ask=lambda question: self.members.calls.check_transaction(question),
            now=store.now,
            file_reserved_ms=store.config.file_reserved_time_hours * 3_600_000,
            settle=store.flush,
        )

    def start_services(self, *, deliver: bool | None = None) -> None:
        """Start the broker's own work, in background threads.

        Each process writes the progress that came with pulls. One elected process delivers delayed
        messages and checks half messages. ``deliver`` None elects one only in a store that rmqctl
        made; True, an explicit request, in any store. Starting twice is fine.

        If a thread cannot be started no service runs, and another process may do the work.
        """
        from storage.coordination.leadership import BROKER_SERVICES, TRANSACTION_CHECKS, Leadership
        from storage.layout import was_created_here

        from .timed_services import MAX_WAIT_S, TimedServiceThread

        store = self._store
        if store is None or self._service_threads:
            return
        own: list[TimedService] = [_OwnWork(self)]
        threads: list[TimedServiceThread] = []
        if deliver is None:
            deliver = was_created_here(store.root)
        delayed, checks = self.delayed, self.transaction_checks
        if deliver and delayed is not None and checks is not None:
            self._topics.write_system_topics()
            own += [delayed.offsets, self._sampler(store)]
            threads += [
                TimedServiceThread(
                    [delayed],
                    Leadership(store.root, BROKER_SERVICES),
                    now=store.now,
                    before_handover=delayed.shutdown,
                ),
                # A round of questions may take a minute: nothing else may wait for it.
                TimedServiceThread(
                    [checks], Leadership(store.root, TRANSACTION_CHECKS), now=store.now
                ),
            ]
        try:
            self._service_threads = (TimedServiceThread(own, None, now=store.now), *threads)
            for thread in self._service_threads:
                thread.start()
            store.start_services()
        except BaseException:  # no thread, or Ctrl-C
            for service in ("delayed", "transaction_checks"):
                vars(self).pop(service, None)  # their positions are stale by the next start
            self._stop_services(MAX_WAIT_S)
            raise

    def _sampler(self, store: MessageStore) -> ProgressSampler:
        from broker.offset.offset_sampling import ProgressSampler
        from storage.configs.offset_samples import OffsetSamples
        from storage.configs.progress import ProgressFile

        return ProgressSampler(
            ProgressFile(store.root),
            OffsetSamples(store.root),
            lambda: store.view,
            lambda: self.elected,
        )

    @property
    def elected(self) -> bool:
        """Whether this process delivers delayed messages now."""
        return len(self._service_threads) > 1 and self._service_threads[1].elected

    def _stop_services(self, within_s: float) -> None:
        """End the services within ``within_s`` together; write the delivery offsets, and let
        another process take over.

        The process's own work ends first: it writes delayOffset.json, too.
        """
        deadline = Deadline(within_s)
        with ExitStack() as stack:  # in reverse order; each step runs whatever the others raise
            stack.callback(setattr, self, "_service_threads", ())
            for thread in reversed(self._service_threads):
                thread.end_soon()
                stack.callback(_stop_within, thread, deadline)


def _stop_within(thread: TimedServiceThread, deadline: Deadline) -> None:
    thread.stop(deadline.left())


class _OwnWork:
    """What each process does for itself, every 5 s."""

    def __init__(self, broker: ServicesRole) -> None:
        self._broker = broker

    def tick(self, now_ms: int) -> int:
        """Run the broker's own work."""
        self._broker.do_own_work()
        return now_ms + self._broker.config.flush_consumer_offset_interval_ms
