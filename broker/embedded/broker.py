"""A broker in this process over one store folder. The rules are in the other modules.

Over a MessageStore it answers everything. Over a StoreView alone it answers what changes nothing,
and refuses the rest with NO_PERMISSION.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from broker.api.offsets import OffsetCommit, OffsetQuery, ProgressPastEnd
from broker.api.send import DEFAULT_SEND, ColumnSendResult, RowColumns, SendOptions, SendResult
from broker.config import BrokerConfig
from broker.errors import BrokerSystemError, NoPermissionError
from broker.java_store import config_of
from broker.offset.offset_manager import offset_query
from broker.tables.shared_table import READ_ONLY
from broker.validation import typed
from storage.clock import now_ms
from storage.coordination.forks import made_once
from storage.deadlines import MAX_CLOSE_S, Deadline
from storage.format.shapes import MAX_LONG
from storage.layout import was_created_here

from .parts import BrokerParts

if TYPE_CHECKING:
    from typing import Any

    from broker.api.members import (
        ClientDescription,
        ClientHandler,
        ConsumeDirectlyResult,
        HeartbeatData,
        SubscriptionData,
    )
    from broker.api.pull import Handoff, PullRequest, PullResult, QueryResult
    from broker.api.send_back import SendBackRequest
    from broker.api.transactions import EndTransactionRequest
    from broker.retry.redrive import RedriveHandler
    from storage.config import StoreConfig
    from storage.configs.subscription_groups import SubscriptionGroupConfig
    from storage.configs.topics import TopicConfig
    from storage.errors import RocketMQError
    from storage.format.message import Message, MessageExt, MessageQueue
    from storage.read.by_time import Boundary
    from storage.read.message_columns import ColumnBatch
    from storage.read.message_table import Filled, MessageTable
    from storage.store import MessageStore

    from .timed_services import TimedService, TimedServiceThread


_FOR_NOTICES_S: Final = 0.3  # what each step leaves for the steps after it
_FOR_LOCKS_S: Final = 0.6
_FOR_WRITE_LOCK_S: Final = 0.3
_LEAST_S: Final = 0.2


class EmbeddedBroker(BrokerParts):
    """The Broker (broker.api.broker) over a store in this process; a context manager.

    Nothing runs by itself: call ``start_services``, or :meth:`tick` now and then to save progress.
    """

    @classmethod
    def open(
        cls,
        root: PathLike[str] | str,
        config: BrokerConfig | None = None,
        *,
        store_config: StoreConfig | None = None,
        create: bool = False,
        read_only: bool = False,
        exclusive: bool = False,
        clock: Callable[[], int] | None = None,
    ) -> Self:
        """Open the store in a folder and serve it.

        >>> from rmqctl import EmbeddedBroker
        >>> with EmbeddedBroker.open(store.parent / "new", create=True) as opened:
        ...     opened.name
        'broker-a'

        ``create`` makes the store first if the folder is missing or empty, as ``rmqctl store init``
        does, with the settings of ``config`` and ``store_config``; a folder with other content
        raises StoreNotWritableError.

        Without ``config`` the broker has the settings that were recorded for the store; in a Java
        broker's store also the names that the store shows (broker.java_store).

        Raises what ``MessageStore.open`` raises; with ``read_only`` what ``StoreView.open`` raises:
        then no lock is taken and nothing is written. Raises TypeError for an argument of another
        type, ValueError for ``create`` with ``read_only``.
        """
        _check_arguments(root, config, store_config)
        root = Path(root)
        if create:
            if read_only:
                raise ValueError(
                    "create=True makes a store and read_only=True writes nothing; give one of them"
                )
            from broker.new_store import create_missing_store

            create_missing_store(root, store_config, config, clock=clock or now_ms)
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

    def send_rows(self, rows: RowColumns, options: SendOptions = DEFAULT_SEND) -> ColumnSendResult:
        """See Broker.send_rows."""
        return self._sender.send_rows(rows, options)

    def flush(self) -> None:
        """Sync everything that was stored so far to the device. Blocks. Raises NoPermissionError
        where the store is open for reading only."""
        if self._store is None:
            raise NoPermissionError(READ_ONLY)
        self._store.flush()

    def send_message_back(self, request: SendBackRequest) -> None:
        """See Broker.send_message_back."""
        self._send_back.send_message_back(request)

    def send_messages_back(self, requests: Sequence[SendBackRequest]) -> list[RocketMQError | None]:
        """See Broker.send_messages_back."""
        return self._send_back.send_messages_back(requests)

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """See Broker.end_transaction."""
        self._transactions.end_transaction(request)

    @made_once
    def redriving(self) -> RedriveHandler:
        """Sends dead letters again."""
        from broker.retry.redrive import RedriveHandler

        return RedriveHandler(
            self._topics, self._groups, send=self.send, writable=self._store is not None
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

    def fill_table(
        self, table: MessageTable, topic: str, queue_id: int, offset: int, end: int
    ) -> Filled:
        """Add the messages [offset, end) of a queue to a table, as far as it has room.

        Never blocks for new ones. Raises what :meth:`pull_column` raises.
        """
        self._topics.for_pulling(topic, queue_id)
        return self.view.fill_table(table, topic, queue_id, offset, end)

    def wait_for_messages(
        self, known: int | None, timeout_ms: int, topic: str | None = None
    ) -> int:
        """See Broker.wait_for_messages."""
        self._check_own()
        if known is None:
            return self._arrivals.now()
        return self._arrivals.wait(known, timeout_ms, None if topic is None else (topic,))

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
        from storage.parse.times import check_timestamp

        try:
            check_timestamp("the timestamp", timestamp)
        except ValueError as error:
            raise BrokerSystemError(str(error)) from None
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
        end_timestamp: int = MAX_LONG,
    ) -> QueryResult:
        """See Broker.query_message."""
        from broker.api.pull import QueryResult

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
        self._check_own()
        known = self._progress.query(group, topic, queue_id)
        return offset_query(known, self.view, topic, queue_id, young_bytes=self._young_bytes)

    def update_consumer_offsets(
        self, group: str, commits: Sequence[OffsetCommit]
    ) -> list[OffsetQuery]:
        """See Broker.update_consumer_offsets."""
        self._check_own()
        return [
            OffsetQuery(known.offset, known.generation, stored=known.offset is not None)
            for known in self._progress.commit(group, commits)
        ]

    def note_consumer_offset(self, group: str, commit: OffsetCommit) -> None:
        """See Broker.note_consumer_offset."""
        self._check_own()
        if self._store is not None:
            self._progress.note(group, commit)

    def correct_consumer_offset(
        self,
        group: str,
        topic: str,
        queue_id: int,
        end: int | None = None,
        generation: int = 0,
        progress: int | None = None,
    ) -> OffsetQuery:
        """See Broker.correct_consumer_offset."""
        self._check_own()
        found = None
        if end is not None:
            found = ProgressPastEnd(topic, queue_id, end, generation, progress)
        known = self._progress.correct(
            group, topic, queue_id, lambda: self.view.max_offset_in_queue(topic, queue_id), found
        )
        return OffsetQuery(known.offset, known.generation, stored=known.offset is not None)

    def consumer_offsets(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """See Broker.consumer_offsets."""
        self._check_own()
        return self._progress.table(group)

    # -- members

    def connect(self, client_id: str, handler: ClientHandler) -> None:
        """See Broker.connect."""
        self._check_writable()
        self.members.connect(client_id, handler)

    def heartbeat(self, data: HeartbeatData) -> None:
        """See Broker.heartbeat."""
        self._check_writable()
        self.members.heartbeat(data)
        if "_puller" in vars(self):
            self._puller.answer_outdated(data)

    def unregister_client(
        self, client_id: str, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """See Broker.unregister_client."""
        self._check_own()
        self.members.unregister_client(client_id, producer_group, consumer_group)

    def disconnect(self, client_id: str) -> None:
        """See Broker.disconnect."""
        self._check_own()
        self.members.disconnect(client_id)

    def consumer_ids(self, group: str) -> list[str]:
        """See Broker.consumer_ids."""
        self._check_own()
        return self.members.consumer_ids(group)

    def consumer_connection(self, group: str) -> list[ClientDescription]:
        """See Broker.consumer_connection."""
        self._check_own()
        return self.members.consumer_connection(group)

    def lock_queues(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> set[MessageQueue]:
        """See Broker.lock_queues."""
        self._check_writable()
        return self.members.lock_queues(group, client_id, queues)

    def unlock_queues(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        """See Broker.unlock_queues."""
        self._check_own()
        self.members.unlock_queues(group, client_id, queues)

    def check_client(self, client_id: str, group: str, subscription: SubscriptionData) -> None:
        """See Broker.check_client."""
        from broker.filter.subscription import message_filter

        del client_id, group
        message_filter(
            subscription.sub_string,
            subscription.expression_type,
            enable_property_filter=bool(self.config.enable_property_filter),
        )

    def consumer_running_info(self, group: str, client_id: str) -> Mapping[str, Any]:
        """See Broker.consumer_running_info."""
        self._check_writable()
        return self.members.calls.consumer_running_info(group, client_id)

    def consumer_status(self, group: str, topic: str, client_id: str) -> Mapping[MessageQueue, int]:
        """See Broker.consumer_status."""
        self._check_writable()
        return self.members.calls.consumer_status(group, topic, client_id)

    def consume_message_directly(
        self, group: str, client_id: str, commitlog_offset: int
    ) -> ConsumeDirectlyResult:
        """See Broker.consume_message_directly."""
        self._check_writable()
        return self.members.calls.consume_message_directly(group, client_id, commitlog_offset)

    def _close_members(self, within_s: float) -> None:
        if "members" in vars(self):
            self.members.close(within_s)

    def _check_writable(self) -> MessageStore:
        if self._store is None:
            raise NoPermissionError(READ_ONLY)
        self._check_own()
        return self._store

    # -- life

    def tick(self) -> None:
        """Write progress to the files if that is due (every 5 s). Costs nothing if it is not.

        Raises StoreNotWritableError; the write is tried again at the next tick that is due.
        """
        if time.monotonic() >= self._persist_due:
            self.do_own_work()

    def do_own_work(self) -> None:
        """Do what :meth:`tick` does when it is due."""
        self._check_own()
        self._persist_due = time.monotonic() + self._persist_interval
        if "members" in vars(self):
            self.members.scan_not_active_channel()
        self._progress.persist()

    def start_services(self, *, deliver: bool | None = None) -> None:
        """Start the broker's own work, in background threads.

        Each process writes the progress that came with pulls. One elected process delivers delayed
        messages and checks half messages, until it ends or its store refuses writes. ``deliver``
        None elects one only in a store that rmqctl made; True, an explicit request, in any store.
        Starting twice is fine.

        If a thread cannot be started no service runs, and another process may do the work. Raises
        StoreClosedError in a forked child.
        """
        self._check_own()
        from storage.coordination.leadership import BROKER_SERVICES, TRANSACTION_CHECKS, Leadership

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
                    check=store.check_usable,
                ),
                # A round of questions may take a minute: nothing else may wait for it.
                TimedServiceThread(
                    [checks],
                    Leadership(store.root, TRANSACTION_CHECKS),
                    now=store.now,
                    check=store.check_usable,
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
            if "_arrivals" in vars(self):
                stack.callback(self._arrivals.close)
            stack.callback(lambda: self._close_members(max(_LEAST_S, left(_FOR_LOCKS_S))))
            stack.callback(self._progress.persist)  # the next process reads it from there
            stack.callback(lambda: self._progress.hurry(left(_FOR_WRITE_LOCK_S)))
            if "members" in vars(self):
                stack.callback(lambda: self.members.hurry(left(_FOR_WRITE_LOCK_S)))
            stack.callback(lambda: self._stop_services(left(_FOR_LOCKS_S + _FOR_NOTICES_S)))
            if "_puller" in vars(self):
                held = self._puller.held
                stack.callback(lambda: held.close(left(_FOR_LOCKS_S + 2 * _FOR_NOTICES_S)))
        self._closed = True  # last: an interrupted close can be repeated

    def after_fork(self) -> None:
        """Be closed in the child: threads, members and progress belong to its parent."""
        self._closed = self._is_copy = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_arguments(root: object, config: object, store_config: object) -> None:
    """Refuse what is no folder and what are no settings."""
    if not isinstance(root, str | PathLike):
        raise TypeError(f"the store is {typed(root)}; it is the path of a folder")
    if config is not None and not isinstance(config, BrokerConfig):
        raise TypeError(f"config is {typed(config)}; it is a BrokerConfig")
    if store_config is not None:
        from storage.config import StoreConfig

        if not isinstance(store_config, StoreConfig):
            raise TypeError(f"store_config is {typed(store_config)}; it is a StoreConfig")


def _stop_within(thread: TimedServiceThread, deadline: Deadline) -> None:
    thread.stop(deadline.left())


class _OwnWork:
    """What each process does for itself, every 5 s."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker

    def tick(self, now_ms: int) -> int:
        """Run the broker's own work."""
        self._broker.do_own_work()
        return now_ms + self._broker.config.flush_consumer_offset_interval_ms
