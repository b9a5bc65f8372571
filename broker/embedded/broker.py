"""A broker in this process over one store folder. Wiring only: the rules are in the other modules.

Over a MessageStore it answers everything. Over a StoreView alone it answers what changes nothing,
and refuses the rest with NO_PERMISSION.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from broker.api.offsets import OffsetCommit, OffsetQuery
from broker.api.pull import MAX_TIMESTAMP, Handoff, PullRequest, PullResult, QueryResult
from broker.api.send import DEFAULT_SEND, ColumnSendResult, SendOptions, SendResult
from broker.config import BrokerConfig, unique_ids_of
from broker.java_store import config_of
from broker.offset.offset_manager import ConsumerOffsetManager, memory_bytes, offset_query
from broker.pull.message_arrival import POLL_FILES_MS, POLL_PAGE_MS, MessageArrivals, Polled
from broker.tables.groups import GroupManager
from broker.tables.topics import TopicManager
from storage.clock import now_ms
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.coordination.locks import ForkAware, at_fork
from storage.deadlines import MAX_CLOSE_S, Deadline
from storage.format.delay import parse_delay_levels
from storage.format.names import MEMBERS_FOLDER, OURS
from storage.layout import was_created_here

from .members import MembersRole
from .retrying import RetryingRole
from .services import ServicesRole

if TYPE_CHECKING:
    from broker.pull.pull import Puller
    from broker.send.message_builder import MessageBuilder
    from broker.send.send_column import ColumnSender
    from storage.config import StoreConfig
    from storage.configs.subscription_groups import SubscriptionGroupConfig
    from storage.configs.topics import TopicConfig
    from storage.format.message import Message, MessageExt
    from storage.read.by_time import Boundary
    from storage.read.message_columns import ColumnBatch
    from storage.readonly import StoreView
    from storage.store import MessageStore


_FOR_NOTICES_S: Final = 0.3  # what each step leaves for the steps after it
_FOR_LOCKS_S: Final = 0.6
_FOR_THE_GATE_S: Final = 0.3
_LEAST_S: Final = 0.2


class EmbeddedBroker(ForkAware, MembersRole, RetryingRole, ServicesRole):
    """The Broker (broker.api.broker) over a store in this process; a context manager.

    Nothing runs by itself: call ``start_services``, or :meth:`tick` now and then to save progress.
    """

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
            config = replace(config, enable_property_filter=was_created_here(root))
        self.config = config
        now = now_ms if store is None else store.now
        write_lock = None if store is None else store.write_lock
        changes = None if store is None else store.config_changes
        self._topics = TopicManager(
            root, config, write_lock=write_lock, queues=self._queues, now=now, changes=changes
        )
        self._groups = GroupManager(root, config, write_lock=write_lock, now=now, changes=changes)
        self._progress = ConsumerOffsetManager(
            ProgressFile(root),
            journal=Journal(root),
            now=now,
            writable=store is not None,
            tell_moved=self._tell_moved,
            processes=root / OURS / MEMBERS_FOLDER,
            process_entry=self._process_entry,
        )
        self._young_bytes = (
            memory_bytes(config.access_message_in_memory_max_ratio)
            if config.zero_when_young
            else None
        )
        log_end = self._log_end
        growing = Polled(log_end, self._poll_interval_ms) if store is None else store
        self._arrivals = MessageArrivals(growing, log_end)
        self._lazy_puller: Puller | None = None
        self._making_puller = threading.Lock()
        self._max_message_size = files.config.max_message_size
        self._multi_dispatch = files.config.enable_multi_dispatch
        self._delays_ms = parse_delay_levels(files.config.message_delay_level)
        self._ids = unique_ids_of(config.born_host)
        self._now = now
        self._closed = False
        at_fork(self)
        self._persist_due = time.monotonic() + self._persist_interval

    @classmethod
    def open(
        cls,
        root: Path | str,
        config: BrokerConfig | None = None,
        *,
        store_config: StoreConfig | None = None,
        read_only: bool = False,
        exclusive: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Open the store in a folder and serve it.

        Without ``config`` the broker has the settings that were recorded for the store; in a Java
        broker's store also the names that the store shows (broker.java_store).

        Raises what ``MessageStore.open`` raises; with ``read_only`` what ``StoreView.open`` raises:
        then no lock is taken and nothing is written.
        """
        if read_only:
            from storage.readonly import StoreView

            view = StoreView.open(root, store_config)
            try:
                return cls(None, config or config_of(view.root, reading=True), view=view)
            except BaseException:
                view.close()
                raise
        from storage.store import MessageStore

        store = MessageStore.open(root, store_config, exclusive=exclusive, clock=clock or now_ms)
        try:
            return cls(store, config or config_of(store.root))
        except BaseException:
            store.close()
            raise

    @property
    def name(self) -> str:
        """The broker's name."""
        return self.config.broker_name

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
    def _puller(self) -> Puller:
        """Answers pulls; made with the first one, because its imports take a while."""
        with self._making_puller:
            puller = self._lazy_puller
            if puller is None:
                from broker.pull.pull import Puller

                puller = self._lazy_puller = Puller(
                    self.config,
                    lambda: self.view,
                    self._topics,
                    self._groups,
                    self._arrivals,
                    group_table=lambda group: self.members.group_table(group),
                    note_commit=self._progress.note if self._store is not None else _forget,
                    note_moved=self._note_moved,
                )
            return puller

    @cached_property
    def _builder(self) -> MessageBuilder:
        """Makes messages to store; made with the first one, as the sender."""
        from broker.send.message_builder import MessageBuilder

        return MessageBuilder(self.config, self._delays_ms, self._max_message_size)

    @cached_property
    def _sender(self) -> ColumnSender:
        """Answers sends; made with the first one, because its imports take a while."""
        from broker.send.send_column import ColumnSender

        store = self._store
        return ColumnSender(
            self.config,
            self._topics,
            self._groups,
            self._builder,
            put=None if store is None else store.put,
            put_message=None if store is None else store.put_message,
            put_sent=None if store is None else store.put_sent,
            unique_ids=self._ids,
            now=self._now,
            max_message_size=self._max_message_size,
            multi_dispatch=self._multi_dispatch,
        )

    # -- topics and groups

    def topics(self) -> Mapping[str, TopicConfig]:
        """See Broker.topics."""
        return self._topics.all()

    def topic(self, topic: str) -> TopicConfig | None:
        """See Broker.topic."""
        return self._topics.get(topic)

    def update_topic(self, config: TopicConfig, note: Mapping[str, str] | None = None) -> bool:
        """See Broker.update_topic."""
        return self._topics.update(config, note)

    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """See Broker.groups."""
        return self._groups.all()

    def update_group(
        self, config: SubscriptionGroupConfig, note: Mapping[str, str] | None = None
    ) -> bool:
        """See Broker.update_group."""
        return self._groups.update(config, note)

    # -- sending

    def send(
        self, message: Message, queue_id: int | None = None, options: SendOptions = DEFAULT_SEND
    ) -> SendResult:
        """See Broker.send."""
        return self._sender.send(message, queue_id, options)

    def send_batch(
        self,
        messages: Sequence[Message],
        queue_id: int | None = None,
        options: SendOptions = DEFAULT_SEND,
    ) -> SendResult:
        """See Broker.send_batch."""
        return self._sender.send_batch(messages, queue_id, options)

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
        """See Broker.send_column."""
        return self._sender.send_column(
            topic, bodies, queue_ids, properties=properties, keys=keys, flag=flag, options=options
        )

    # -- reading

    def pull(self, request: PullRequest) -> PullResult:
        """See Broker.pull."""
        return self._puller.pull(request)

    def pull_async(
        self, request: PullRequest, answer: Callable[[PullResult | Exception], Handoff | None]
    ) -> None:
        """See Broker.pull_async."""
        self._puller.pull_async(request, answer)

    def pull_column(
        self, topic: str, queue_id: int, offset: int, count: int, max_bytes: int = 8 << 20
    ) -> ColumnBatch:
        """See Broker.pull_column."""
        self._topics.for_pulling(topic, queue_id)
        return self.view.read_column(topic, queue_id, offset, count, max_bytes)

    def wait_for_messages(
        self, known: int | None, timeout_ms: int, topic: str | None = None
    ) -> int:
        """See Broker.wait_for_messages."""
        if known is None:
            return self._arrivals.now()
        return self._arrivals.wait(known, timeout_ms, None if topic is None else (topic,))

    def _poll_interval_ms(self) -> int:
        return POLL_PAGE_MS if self.view.has_shared_state else POLL_FILES_MS

    def min_offset(self, topic: str, queue_id: int) -> int:
        """See Broker.min_offset."""
        return self.view.min_offset_in_queue(topic, queue_id)

    def max_offset(self, topic: str, queue_id: int) -> int:
        """See Broker.max_offset."""
        return self.view.max_offset_in_queue(topic, queue_id)

    def search_offset(
        self, topic: str, queue_id: int, timestamp: int, boundary: Boundary | None = None
    ) -> int:
        """See Broker.search_offset."""
        if boundary is None:
            return self.view.offset_in_queue_by_time(topic, queue_id, timestamp)
        return self.view.offset_in_queue_by_time(topic, queue_id, timestamp, boundary)

    def view_message(self, commitlog_offset: int) -> MessageExt | None:
        """See Broker.view_message."""
        return self.view.look_message_by_offset(commitlog_offset)

    def query_message(
        self,
        topic: str,
        key: str,
        max_num: int = 64,
        begin_timestamp: int = 0,
        end_timestamp: int = MAX_TIMESTAMP,
    ) -> QueryResult:
        """See Broker.query_message."""
        view = self.view
        max_num = min(max_num, view.config.max_msgs_num_batch)
        found = view.query_message(topic, key, max_num, begin_timestamp, end_timestamp)
        return QueryResult(
            found.messages, found.index_last_update_timestamp, found.index_last_update_phyoffset
        )

    def query_unique(self, topic: str, unique_id: str) -> list[MessageExt]:
        """See Broker.query_unique."""
        return self.view.find_unique(topic, unique_id)

    # -- progress

    def query_consumer_offset(self, group: str, topic: str, queue_id: int) -> OffsetQuery:
        """See Broker.query_consumer_offset."""
        known = self._progress.query(group, topic, queue_id)
        return offset_query(known, self.view, topic, queue_id, young_bytes=self._young_bytes)

    def update_consumer_offsets(
        self, group: str, commits: Sequence[OffsetCommit]
    ) -> list[OffsetQuery]:
        """See Broker.update_consumer_offsets."""
        return [
            OffsetQuery(known.offset, known.generation, stored=known.offset is not None)
            for known in self._progress.commit(group, commits)
        ]

    def note_consumer_offset(self, group: str, commit: OffsetCommit) -> None:
        """See Broker.note_consumer_offset."""
        if self._store is not None:
            self._progress.note(group, commit)

    def correct_consumer_offset(self, group: str, topic: str, queue_id: int) -> OffsetQuery:
        """See Broker.correct_consumer_offset."""
        known = self._progress.correct(
            group, topic, queue_id, lambda: self.view.max_offset_in_queue(topic, queue_id)
        )
        return OffsetQuery(known.offset, known.generation, stored=known.offset is not None)

    def consumer_offsets(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """See Broker.consumer_offsets."""
        return self._progress.table(group)

    @property
    def progress(self) -> ConsumerOffsetManager:
        """The rules of progress, for callers that move it deliberately."""
        return self._progress

    # -- life

    def tick(self) -> None:
        """Write progress to the files if that is due (every 5 s). Costs nothing if it is not.

        Raises StoreNotWritableError; the write is tried again at the next tick that is due.
        """
        if time.monotonic() >= self._persist_due:
            self.do_own_work()

    def do_own_work(self) -> None:
        """Do what :meth:`tick` does when it is due."""
        self._persist_due = time.monotonic() + self._persist_interval
        self._scan_members()
        self._progress.persist()

    def close(self) -> None:
        """See Broker.close. The store is closed even if progress cannot be written.

        Waits no longer than 3 s in all, except for the device. A client that does not return from a
        callback is left to its thread; a lock of another process that makes no progress raises
        WriteLockTimeoutError.
        """
        if self._closed:
            return
        left = Deadline(MAX_CLOSE_S).left
        with ExitStack() as stack:  # in reverse order; each step runs whatever the others raise
            if self._read_only_view is not None:
                stack.callback(self._read_only_view.close)
            if self._store is not None:
                stack.callback(lambda store: store.close(left()), self._store)
            stack.callback(self._progress.close)
            stack.callback(self._progress.persist)
            stack.callback(self._arrivals.close)
            stack.callback(lambda: self._close_members(max(_LEAST_S, left(_FOR_LOCKS_S))))
            stack.callback(self._progress.persist)  # the next process reads it from there
            stack.callback(lambda: self._progress.hurry(left(_FOR_THE_GATE_S)))
            stack.callback(lambda: self._stop_services(left(_FOR_LOCKS_S + _FOR_NOTICES_S)))
            if self._lazy_puller is not None:
                held = self._lazy_puller.held
                stack.callback(lambda: held.close(left(_FOR_LOCKS_S + 2 * _FOR_NOTICES_S)))
        self._closed = True  # last: an interrupted close can be repeated

    def after_fork(self) -> None:
        """Be closed in the child: threads, members and progress belong to its parent."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _persist_interval(self) -> float:
        return self.config.flush_consumer_offset_interval_ms / 1000

    def _tell_moved(self, group: str, topic: str, queue_ids: list[int]) -> None:
        from broker.members.notices import tell_reset

        tell_reset(self.view.root, group, topic, queue_ids)

    def _note_moved(self, request: PullRequest, next_offset: int) -> None:
        store = self._store
        if store is not None and self.config.offset_moved_event_enable:
            from broker.pull.offset_moved_event import OffsetMovedEvents

            OffsetMovedEvents(self.config, store.put, store.now).note(request, next_offset)

    def _queues(self) -> list[tuple[str, int]]:
        return self.view.queues() if self._store is None else self._store.queues()

    def _log_end(self) -> int:
        return self.view.log_max_offset() if self._store is None else self._store.log_end


def _forget(_group: str, _commit: OffsetCommit) -> None:
    """Ignore a commit that comes with a pull where nothing may be written."""
