"""What a broker in this process is made of: the rules of the other modules, wired to one store.

Most parts are made at their first use, because their imports take a while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from broker.config import BrokerConfig, unique_ids_of
from broker.offset.offset_manager import ConsumerOffsetManager, memory_bytes
from broker.tables.groups import GroupManager
from broker.tables.topics import TopicManager
from storage.clock import now_ms
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.coordination.forks import made_once
from storage.coordination.locks import ForkAware, at_fork
from storage.format.delay import parse_delay_levels
from storage.format.names import MEMBERS_FOLDER, OURS
from storage.layout import was_created_here

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.api.offsets import OffsetCommit
    from broker.api.pull import PullRequest
    from broker.members.manager import MemberManager
    from broker.offset.offset_sampling import ProgressSampler
    from broker.pull.message_arrival import MessageArrivals
    from broker.pull.pull import Puller
    from broker.retry.deliver_early import EarlyDeliveryHandler
    from broker.retry.send_back import SendBackHandler
    from broker.schedule.schedule import ScheduleMessageService
    from broker.send.message_builder import MessageBuilder
    from broker.send.send import Sender
    from broker.transaction.check import TransactionCheckService
    from broker.transaction.transaction import TransactionalMessageService
    from storage.format.message import MessageExt
    from storage.readonly import StoreView
    from storage.store import MessageStore

    from .timed_services import TimedServiceThread


class BrokerParts(ForkAware):
    """The parts of an EmbeddedBroker."""

    def __init__(
        self,
        store: MessageStore | None,
        config: BrokerConfig | None = None,
        *,
        view: StoreView | None = None,
    ) -> None:
        """Serve ``store``, or ``view`` for reading only; it is closed with the broker."""
        self._store = store
        self._read_only_view = view
        files = self.view if store is None else store
        root = files.root
        config = config or BrokerConfig()
        if config.enable_property_filter is None:
            config = config.with_(enable_property_filter=was_created_here(root))
        self.config = config
        now = now_ms if store is None else store.now
        write_lock = None if store is None else store.write_lock
        changes = None if store is None else store.config_changes
        self._topics = TopicManager(
            root,
            config,
            write_lock=write_lock,
            queues=self._queues,
            now=now,
            changes=changes,
            notify=self._notify_topics,
        )
        self._groups = GroupManager(
            root, config, write_lock=write_lock, now=now, changes=changes, topics=self._topics
        )
        self._progress = ConsumerOffsetManager(
            self.view.progress if store is None else ProgressFile(root),
            journal=Journal(root),
            now=now,
            writable=store is not None,
            notify_moved=self._notify_moved,
            processes=root / OURS / MEMBERS_FOLDER,
            process_entry=self._process_entry,
            log_end=self._log_end,
            sync_log_to=self._sync_log_to,
        )
        self._young_bytes = (
            memory_bytes(config.access_message_in_memory_max_ratio)
            if config.zero_when_young
            else None
        )
        self._max_message_size = files.config.max_message_size
        self._log_file_size = files.config.mapped_file_size_commit_log
        self._multi_dispatch = files.config.enable_multi_dispatch
        self._delays_ms = parse_delay_levels(files.config.message_delay_level)
        self._ids = unique_ids_of(config.born_host)
        self._now = now
        self._service_threads: tuple[TimedServiceThread, ...] = ()
        self._closed = False
        self._is_copy = False  # of one in the parent process
        at_fork(self)
        self._persist_due = time.monotonic() + self._persist_interval

    @property
    def store(self) -> MessageStore | None:
        """The store, None if it is open for reading only."""
        return self._store

    @property
    def view(self) -> StoreView:
        """The store for reading. Raises StoreClosedError after ``close``, and ValueError if the
        broker was made with neither a store nor a view."""
        if self._store is not None:
            return self._store.view
        if self._read_only_view is None:
            raise ValueError("a broker needs a store or a view")
        return self._read_only_view

    @property
    def elected(self) -> bool:
        """Whether this process delivers delayed messages now."""
        return len(self._service_threads) > 1 and self._service_threads[1].elected

    def _check_own(self) -> None:
        """Raise StoreClosedError if this is a forked child's copy: a thread of the parent may hold
        any lock, and what the copy has noted is the parent's to write."""
        if self._is_copy and self._store is not None:
            self._store.check_open()

    # -- parts that other modules use

    @made_once
    def members(self) -> MemberManager:
        """The rules of members, for other parts of the broker."""
        from broker.members.manager import MemberManager

        # Only readers load the view: a producer alone does not.
        store = self._store
        return MemberManager(
            self.view.root if store is None else store.root,
            self._topics,
            self._groups,
            now=now_ms if store is None else store.now,
            progress_of=lambda *queue: self._progress.query(*queue).offset,
            adopt_progress=lambda processes: self._progress.adopt(processes),
            read_message=lambda offset: self.view.look_message_by_offset(offset),
            refuse_equal_client_ids=self.config.refuse_equal_client_ids,
            read_only=store is None,
        )

    @property
    def progress(self) -> ConsumerOffsetManager:
        """The rules of progress, for callers that move it deliberately. Raises StoreClosedError in
        a forked child."""
        self._check_own()
        return self._progress

    @made_once
    def cutting_short(self) -> EarlyDeliveryHandler:
        """Ends the wait of delayed messages."""
        from broker.retry.deliver_early import EarlyDeliveryHandler
        from storage.configs.early_deliveries import EarlyDeliveries

        return EarlyDeliveryHandler(
            self._topics, self._builder, self._store, lambda: EarlyDeliveries(self.view.root)
        )

    @made_once
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

    @made_once
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
            view=lambda: store.view,
            put=store.put,
            ask=lambda question: self.members.calls.check_transaction(question),
            now=store.now,
            file_reserved_ms=store.config.file_reserved_time_hours * 3_600_000,
            settle=store.flush,
        )

    # -- parts of its own

    @made_once
    def _arrivals(self) -> MessageArrivals:
        """Wakes those that wait for messages; made for the first one."""
        from broker.pull.message_arrival import MessageArrivals, Polled

        store, log_end = self._store, self._log_end
        growing = Polled(log_end, self._poll_interval_ms) if store is None else store
        return MessageArrivals(growing, log_end)

    @made_once
    def _puller(self) -> Puller:
        """Answers pulls; made with the first one, because its imports take a while."""
        from broker.pull.pull import Puller

        return Puller(
            self.config,
            lambda: self.view,
            self._topics,
            self._groups,
            self._arrivals,
            group_table=lambda group: self.members.group_table(group),
            note_commit=self._progress.note if self._store is not None else _forget,
            note_moved=self._note_moved,
        )

    @made_once
    def _builder(self) -> MessageBuilder:
        """Makes messages to store; made with the first one, as the sender."""
        from broker.send.message_builder import MessageBuilder

        sizes = self._max_message_size, self._log_file_size
        return MessageBuilder(self.config, self._delays_ms, *sizes)

    @made_once
    def _sender(self) -> Sender:
        """Answers sends; made with the first one, because its imports take a while."""
        from broker.send.send import Sender

        store = self._store
        return Sender(
            self.config,
            self._topics,
            self._groups,
            self._builder,
            put=None if store is None else store.put,
            put_message=None if store is None else store.put_message,
            put_sent=None if store is None else store.put_sent,
            put_sent_batch=None if store is None else store.put_sent_batch,
            unique_ids=self._ids,
            now=self._now,
            max_message_size=self._max_message_size,
            multi_dispatch=self._multi_dispatch,
            stored_retry=lambda: self._progress.rest_on_log(),  # most producers need no progress
        )

    @made_once
    def _send_back(self) -> SendBackHandler:
        from broker.retry.send_back import SendBackHandler

        return SendBackHandler(
            self.config,
            self._topics,
            self._groups,
            self._builder,
            put=None if self._store is None else self._store.put,
            read_message=self._read_message,
            stored=self._progress.rest_on_log,
        )

    @made_once
    def _transactions(self) -> TransactionalMessageService:
        from broker.transaction.transaction import TransactionalMessageService
        from storage.coordination.locks import ProcessLock
        from storage.format.names import OURS

        return TransactionalMessageService(
            self.config,
            self._builder,
            put=None if self._store is None else self._store.put,
            read_message=self._read_message,
            find=lambda topic, unique_id: self.view.find_unique(topic, unique_id),
            ending=ProcessLock(self.view.root / OURS / "transactions.lock").held,
            now=now_ms if self._store is None else self._store.now,
        )

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

    # -- what parts are given

    def _read_message(self, commitlog_offset: int) -> MessageExt | None:
        return self.view.look_message_by_offset(commitlog_offset)

    def _notify_moved(self, group: str, topic: str, queue_ids: list[int]) -> None:
        from broker.members.notices import tell_reset

        tell_reset(self.view.root, group, topic, queue_ids)

    def _notify_topics(self, topics: Collection[str]) -> None:
        root = self.view.root if self._store is None else self._store.root
        if (root / OURS / MEMBERS_FOLDER).exists():
            from broker.members.notices import tell_topics

            tell_topics(root, topics)

    def _note_moved(self, request: PullRequest, next_offset: int) -> None:
        store = self._store
        if store is not None and self.config.offset_moved_event_enable:
            from broker.pull.offset_moved_event import OffsetMovedEvents

            OffsetMovedEvents(self.config, store.put, store.now).note(request, next_offset)

    def _process_entry(self) -> str | None:
        return self.members.notices.name if "members" in vars(self) else None

    def _queues(self) -> list[tuple[str, int]]:
        return self.view.queues() if self._store is None else self._store.queues()

    def _log_end(self) -> int:
        return self.view.log_max_offset() if self._store is None else self._store.log_end

    def _sync_log_to(self, end: int) -> None:
        if self._store is not None:
            self._store.sync_log_to(end)

    def _poll_interval_ms(self) -> int:
        from broker.pull.message_arrival import POLL_FILES_MS, POLL_PAGE_MS

        return POLL_PAGE_MS if self.view.has_shared_state else POLL_FILES_MS

    @property
    def _persist_interval(self) -> float:
        return self.config.flush_consumer_offset_interval_ms / 1000


def _forget(_group: str, _commit: OffsetCommit) -> None:
    """Ignore a commit that comes with a pull where nothing may be written."""
