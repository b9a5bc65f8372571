"""What consumers that pull by themselves have in common: settings, parts and life."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from broker.errors import BrokerError
from broker.port.members import (
    ConsumeDirectlyResult,
    ConsumeDirectlyStatus,
    ConsumerData,
    ConsumeType,
    MessageModel,
)
from broker.validation import check_group
from client.errors import ClientStateError, GroupRegisteredError
from client.progress.first_offset import compute_pull_from_where
from client.progress.offset_store import ReadOffsetType
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER
from client.runtime.own_broker import open_own_broker
from client.runtime.service_state import ServiceState
from client.subscribing.allocate import allocate_strategy
from client.subscribing.rebalance import Rebalance

if TYPE_CHECKING:
    from os import PathLike

    from broker.api import Broker
    from broker.port.members import SubscriptionData
    from client.consuming.process_queue import ProcessQueue
    from client.hooks import FilterMessageHook
    from client.progress.offset_store import OffsetStore
    from client.runtime.client_manager import ClientManager
    from client.runtime.instance import ClientInstance
    from client.runtime.pull_service import PullRequest
    from client.subscribing.consumer_config import ConsumerConfig
    from storage.model import MessageExt, MessageQueue


class ActiveConsumer:
    """A consumer that is told what to pull; a context manager that starts and shuts down.

    It is its own RebalanceRules and ConsumerInner.
    """

    consume_type: ConsumeType = ConsumeType.CONSUME_ACTIVELY

    def __init__(
        self,
        group: str,
        *,
        brokers: Iterable[Broker] = (),
        config: ConsumerConfig,
        client_config: ClientConfig | None = None,
        offset_store: OffsetStore | None = None,
        manager: ClientManager = CLIENT_MANAGER,
    ) -> None:
        """Make a consumer of ``group``; the brokers stay the caller's to close.

        Raises InvalidNameError for a group that may not be.
        """
        check_group(group)
        self.group: Final = group
        self.filter_message_hooks: Final[list[FilterMessageHook]] = []
        """Called with what each pull brought; append yours before ``start``."""
        self._config = config
        self._client_config = client_config or ClientConfig()
        self._brokers = list(brokers)
        self._manager = manager
        self._given_offset_store = offset_store
        self._owned: Broker | None = None
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._lock = threading.RLock()  # one start, shutdown or change of queues at a time
        self._state = ServiceState.CREATE_JUST

    @classmethod
    def open(cls, store: str | PathLike[str], group: str, **settings: Any) -> Self:
        """Make a consumer for the store in a folder; the store is closed with the consumer.

        Its broker brings retries and delayed messages while it is open: see ``open_own_broker``,
        which says what is raised.
        """
        check_group(group)
        broker = open_own_broker(store)
        consumer = cls(group, brokers=[broker], **settings)
        consumer._owned = broker
        return consumer

    # -- life

    @property
    def state(self) -> ServiceState:
        """Where the consumer stands."""
        return self._state

    def start(self) -> None:
        """Join the group. Raises ClientStateError if it was started before,
        GroupRegisteredError if its client has a consumer of the group (then it can be started
        later), and what brokers refuse it with."""
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise ClientStateError(
                    f"consumer {self.group} can not be started: its state is {self._state}"
                )
            self._state = ServiceState.START_FAILED
            try:
                self._make_parts()
            except BaseException:
                if hasattr(self, "instance"):
                    self.instance.shutdown()
                raise
            if not self.instance.register_consumer(self.group, self):
                self._state = ServiceState.CREATE_JUST
                raise GroupRegisteredError("consumer", self.group, self.instance.client_id)
            try:
                self.instance.start()
                for error in self.instance.send_heartbeat_to_all_brokers():
                    if isinstance(error, BrokerError):
                        raise error
                self._state = ServiceState.RUNNING
            except BaseException:
                self._leave()
                raise
        self.instance.rebalance_immediately()

    def _make_parts(self) -> None:
        config, client_config = self._config, self._client_config
        clustering = config.message_model is MessageModel.CLUSTERING
        if clustering:
            client_config = client_config.with_own_instance_name()
        strategy = config.allocate_message_queue_strategy
        if isinstance(strategy, str):
            strategy = allocate_strategy(strategy)
        self.instance: ClientInstance = self._manager.get_or_create(client_config, self._brokers)
        client_id, routes = self.instance.client_id, self.instance.routes
        self.rebalance = Rebalance(
            self.group,
            client_id,
            routes,
            self,
            strategy,
            message_model=config.message_model,
            clock=self.instance.clock,
        )
        self.rebalance.subscriptions.update(self._subscriptions)
        self.offset_store: OffsetStore = self._given_offset_store or self._make_offset_store()
        self.offset_store.load()

    def _make_offset_store(self) -> OffsetStore:
        if self._config.message_model is MessageModel.BROADCASTING:
            from client.progress.local_offset_store import LocalFileOffsetStore

            folder = self.instance.config.local_offset_store_dir
            client_id = self.instance.client_id
            return LocalFileOffsetStore(client_id, self.group, Path(folder) if folder else None)
        from client.progress.remote_offset_store import RemoteBrokerOffsetStore

        return RemoteBrokerOffsetStore(
            self.group, self.instance.routes.broker, moved=self.progress_moved
        )

    def shutdown(self) -> None:
        """Commit the progress that was noted, and leave the group. Twice is fine."""
        with self._lock:
            if self._state is ServiceState.RUNNING:
                self.persist_consumer_offset()
                with self.rebalance.lock:
                    self._state = ServiceState.SHUTDOWN_ALREADY
                self._leave()
            owned, self._owned = self._owned, None
        if owned is not None:
            owned.close()

    def _leave(self) -> None:
        self.instance.unregister_consumer(self.group)
        self.instance.shutdown()
        self.rebalance.drop_all()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.shutdown()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _running(self) -> ClientInstance:
        if self._state is not ServiceState.RUNNING:
            raise ClientStateError(
                f"consumer {self.group} is not running: its state is {self._state}"
            )
        return self.instance

    # -- what users of both kinds ask

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Give all queues of a topic, sorted; empty if no broker has it."""
        return self._running().routes.subscribe_queues(topic)

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Give the offset of a store time, ms: that of the message nearest to it."""
        broker = self._running().routes.broker(queue.broker_name)
        return broker.search_offset(queue.topic, queue.queue_id, timestamp)

    def min_offset(self, queue: MessageQueue) -> int:
        """Give the first offset that is still there."""
        return (
            self._running().routes.broker(queue.broker_name).min_offset(queue.topic, queue.queue_id)
        )

    def max_offset(self, queue: MessageQueue) -> int:
        """Give the next offset to be written."""
        return (
            self._running().routes.broker(queue.broker_name).max_offset(queue.topic, queue.queue_id)
        )

    # -- for the instance (ConsumerInner)

    def consumer_data(self) -> ConsumerData:
        """See ConsumerInner."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._config.message_model,
            self._config.consume_from_where,
            tuple(data for _, data in sorted(self.rebalance.subscriptions.items())),
        )

    def do_rebalance(self) -> None:
        """See ConsumerInner."""
        with self.rebalance.lock:  # a shutdown waits for the round, and none comes after it
            if self._state is ServiceState.RUNNING and self.rebalance.subscriptions:
                self.rebalance.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """See ConsumerInner."""
        if self._state is ServiceState.RUNNING:
            self.offset_store.persist_all(list(self.rebalance.process_queues))

    def adjust_thread_pool(self) -> None:
        """Do nothing: there are no threads."""

    def pull_message(self, request: PullRequest) -> None:
        """Do nothing: nobody asks for pulls but the user."""

    def hand_over(self) -> None:
        """Do nothing: users take what was pulled."""

    def reset_offset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See ConsumerInner."""
        self.progress_moved(offsets)

    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Take note of progress that somebody moved: the broker is asked for it again."""
        for queue in moved:
            self.offset_store.remove_offset(queue)

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """See ConsumerInner."""
        return self.offset_store.clone_offset_table(topic)

    def running_info(self) -> Mapping[str, Any]:
        """See ConsumerInner."""
        queues = [
            {
                **queue._asdict(),
                "commit_offset": self.offset_store.read_offset(
                    queue, ReadOffsetType.READ_FROM_MEMORY
                ),
                **process_queue.info(),
            }
            for queue, process_queue in sorted(self.rebalance.process_queues.items())
        ]
        properties = {
            "consumeType": self.consume_type.value,
            "consumerGroup": self.group,
            "clientId": self.instance.client_id,
        }
        return {"properties": properties, "subscriptions": [], "queues": queues, "status": {}}

    def consume_message_directly(
        self, message: MessageExt, broker_name: str
    ) -> ConsumeDirectlyResult:
        """See ConsumerInner; there is no listener."""
        del message, broker_name
        return ConsumeDirectlyResult(
            order=False,
            auto_commit=True,
            consume_result=ConsumeDirectlyStatus.CR_THROW_EXCEPTION,
            remark=f"consumer {self.group} pulls by itself: it has no listener",
            spent_time_mills=0,
        )

    # -- RebalanceRules

    def lock(self, queue: MessageQueue) -> bool:
        """See RebalanceRules; nothing is consumed in order."""
        del queue
        return True

    def unlock(self, queue: MessageQueue) -> None:
        """See RebalanceRules."""

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """See RebalanceRules."""
        self.offset_store.remove_offset(queue)

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """See RebalanceRules."""
        return compute_pull_from_where(self.offset_store, self.instance.routes, self._config, queue)

    def drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """See RebalanceRules."""
        del queue
        process_queue.dropped = True

    def remove_unnecessary_message_queue(
        self, queue: MessageQueue, process_queue: ProcessQueue
    ) -> bool:
        """See RebalanceRules."""
        del process_queue
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return True

    def message_queue_changed(
        self, topic: str, all_queues: Sequence[MessageQueue], divided: Sequence[MessageQueue]
    ) -> None:
        """See RebalanceRules; nobody has to know."""

    def dispatch_pull_requests(self, requests: Sequence[PullRequest]) -> None:
        """See RebalanceRules; the user pulls."""
