"""The parts of every kind of consumer: settings, subscriptions, assigned queues, start and
shutdown."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypedDict

from broker.api.members import MessageModel
from broker.errors import BrokerError
from broker.validation import check_group, check_topic
from client.arguments import check_kind, check_methods, checked_brokers
from client.rebalance.allocate import allocate_strategy
from client.rebalance.rebalance import Rebalance
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER
from client.runtime.own_broker import open_own_broker
from client.runtime.service_state import ServiceState, not_running
from storage.coordination.locks import ForkAware, at_fork
from storage.deadlines import held_within
from storage.errors import WriteLockTimeoutError
from storage.format.names import exact_str

from .consumer_config import ConsumerConfig
from .subscription import ALL_MESSAGES, newer, selector_of, subscription_data

if TYPE_CHECKING:
    from os import PathLike

    from broker.api.broker import Broker
    from broker.api.members import SubscriptionData
    from client.hooks import FilterMessageHook
    from client.offset_store.offset_store import OffsetStore
    from client.rebalance.rebalance import RebalanceRules
    from client.runtime.client_manager import ClientManager
    from client.runtime.instance import ClientInstance
    from storage.format.message import MessageQueue

    from .subscription import MessageSelector

logger = logging.getLogger("rmqctl.client")

_OFFSET_STORE: Final = (
    "load",
    "update_offset",
    "read_offset",
    "persist_all",
    "persist",
    "remove_offset",
    "clone_offset_table",
    "pull_commit",
)
_LONGEST_WAIT_S: Final = 0.7


class ConsumerArguments(TypedDict, total=False):
    """Arguments of every kind of consumer, see Consumer."""

    brokers: Iterable[Broker]
    config: ConsumerConfig | None
    client_config: ClientConfig | None
    offset_store: OffsetStore | None
    manager: ClientManager


class Consumer(ForkAware, ABC):
    """A consumer of a group; a context manager that starts and shuts down."""

    default_config: ClassVar[type[ConsumerConfig]] = ConsumerConfig
    rebalance: Rebalance
    offset_store: OffsetStore

    def __init__(
        self,
        group: str,
        *,
        brokers: Iterable[Broker] = (),
        config: ConsumerConfig | None = None,
        client_config: ClientConfig | None = None,
        offset_store: OffsetStore | None = None,
        manager: ClientManager = CLIENT_MANAGER,
    ) -> None:
        """Make a consumer of ``group``; the caller closes the brokers.

        Raises InvalidNameError for an illegal group name, ClientArgumentError for an argument of
        another type.
        """
        check_group(group)
        check_kind("config", config, self.default_config)
        check_kind("client_config", client_config, ClientConfig)
        if offset_store is not None:
            check_methods("offset_store", offset_store, _OFFSET_STORE, "an OffsetStore")
        self.group = exact_str(group)
        self.filter_message_hooks: Final[list[FilterMessageHook]] = []
        """Called with what each pull brought; append yours before ``start``."""
        self._config = config or self.default_config()
        self._client_config = client_config or ClientConfig()
        self._brokers = checked_brokers(brokers, type(self), group)
        self._manager = manager
        self._given_offset_store = offset_store
        self._owned: Broker | None = None
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._lock = threading.RLock()  # one start, shutdown or change of queues at a time
        self._leaving = False  # a thread shuts it down
        self._state = ServiceState.CREATE_JUST
        at_fork(self)

    @classmethod
    def open(
        cls,
        store: str | PathLike[str],
        group: str,
        config: ConsumerConfig | None = None,
        *,
        create: bool = False,
        **settings: Any,
    ) -> Self:
        """Make a consumer for the store in a folder; the store is closed with the consumer.

        ``create`` makes the store first if there is none (see EmbeddedBroker.open).
        Its broker delivers retries and delayed messages while it is open: see ``open_own_broker``,
        also for the errors. ``settings`` are those of the class, as is the type of ``config``.
        """
        check_group(group)
        check_kind("config", config, cls.default_config)
        broker = open_own_broker(store, create=create)
        try:
            if config is not None:
                settings["config"] = config
            consumer = cls(group, brokers=[broker], **settings)
        except BaseException:
            broker.close()
            raise
        consumer._owned = broker
        return consumer

    # -- life

    @property
    def state(self) -> ServiceState:
        """The consumer's state."""
        return self._state

    @abstractmethod
    def start(self) -> None:
        """Join the group."""

    @abstractmethod
    def persist_consumer_offset(self) -> None:
        """Commit the progress that was noted."""

    def shutdown(self) -> None:
        """Commit the progress that was noted, and leave the group. Calling twice is fine.

        A rebalance that does not end, because a strategy of the user's blocks, is soon left to its
        thread. An error of a given offset store is raised when the group is left.
        """
        with ExitStack() as stack:  # each step runs whatever an earlier one raised
            stack.callback(self._close_owned)
            stack.enter_context(self._alone())
            self._leaving = True
            stack.callback(setattr, self, "_leaving", False)
            if self._state is ServiceState.RUNNING:
                stack.callback(self._leave)
                stack.callback(self._end_running)
                stack.callback(self.persist_consumer_offset)
                self._finish_work()

    def _end_running(self) -> None:
        with held_within(self.rebalance.lock, _LONGEST_WAIT_S) as alone:
            self._state = ServiceState.SHUTDOWN_ALREADY
        if not alone:
            logger.warning("consumer %s leaves while a rebalance still runs", self.group)

    def _close_owned(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from starting and from changing queues; not one that waits for a
        rebalance, which may not end. A thread that shuts down always ends."""
        with held_within(self._lock, _LONGEST_WAIT_S) as held:
            if held or not self._leaving:
                yield
                return
        with self._lock:
            yield

    def after_fork(self) -> None:
        """Be shut down in the child, at once: threads and progress belong to its parent."""
        self._lock = threading.RLock()
        if self._state is not ServiceState.CREATE_JUST:
            self._state = ServiceState.SHUTDOWN_ALREADY

    @abstractmethod
    def _finish_work(self) -> None:
        """Finish running work, before progress is committed for the last time."""

    def _leave(self) -> None:
        with ExitStack() as stack:
            stack.callback(self.rebalance.drop_all)
            stack.callback(self.instance.shutdown)
            self.instance.unregister_consumer(self.group)

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
            raise not_running(f"consumer {self.group}", self._state)
        return self.instance

    # -- what it is made of

    def _join_instance(self) -> None:
        """Make, or find, the instance that all clients of one id share."""
        client_config = self._client_config
        if self._config.message_model is MessageModel.CLUSTERING:
            client_config = client_config.with_own_instance_name()
        self.instance: ClientInstance = self._manager.get_or_create(client_config, self._brokers)

    def _make_rebalance(self, rules: RebalanceRules) -> Rebalance:
        config = self._config
        strategy = config.allocate_message_queue_strategy
        if isinstance(strategy, str):
            strategy = allocate_strategy(strategy)
        else:
            name = "allocate_message_queue_strategy"
            check_methods(name, strategy, ("allocate",), "a strategy, or the name of one")
        rebalance = Rebalance(
            self.group,
            self.instance.client_id,
            self.instance.routes,
            rules,
            strategy,
            message_model=config.message_model,
            clock=self.instance.clock,
        )
        rebalance.subscriptions.update(self._subscriptions)
        return rebalance

    def _make_offset_store(self) -> OffsetStore:
        """Make the store of progress: with the brokers, or in a file on this machine."""
        if self._config.message_model is MessageModel.BROADCASTING:
            from client.offset_store.local_offset_store import LocalFileOffsetStore

            folder = self.instance.config.local_offset_store_dir
            client_id = self.instance.client_id
            return LocalFileOffsetStore(client_id, self.group, Path(folder) if folder else None)
        from client.offset_store.remote_offset_store import RemoteBrokerOffsetStore

        return RemoteBrokerOffsetStore(
            self.group, self.instance.routes.broker, moved=self.progress_moved
        )

    @abstractmethod
    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Take note of progress that was moved meanwhile."""

    def reset_offset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See ConsumerInner; the new progress is read at the broker, if it is kept there."""
        self.progress_moved(offsets)

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """See ConsumerInner."""
        return self.offset_store.clone_offset_table(topic)

    # -- subscriptions

    def _want(self, topic: str, selector: str | MessageSelector | None) -> None:
        """Note a subscription; a running consumer sends it to its brokers at once.

        Raises InvalidNameError.
        """
        check_topic(topic)
        topic = exact_str(topic)
        data = subscription_data(topic, selector_of(selector), self._manager.clock.now_ms())
        known = self._subscriptions.get(topic)
        if self._state is ServiceState.RUNNING:  # a round of rebalance gives new versions, too
            known = self.rebalance.subscriptions.get(topic, known)
        if known is not None:  # the clock may have been set back
            data = data._replace(sub_version=newer(known, data.sub_version).sub_version)
        self._subscriptions[topic] = data
        if self._state is ServiceState.RUNNING:
            self.rebalance.subscriptions[topic] = data
            self.announce()
            self.instance.routes.refresh()  # later changes come with a notice
            self.instance.rebalance_immediately()

    def _check_expressions(self) -> None:
        """Have a broker of each topic, else any broker, check the expressions of subscriptions.

        Raises SubscriptionParseError.
        """
        routes = self.instance.routes
        for topic, subscription in self.rebalance.subscriptions.items():
            if subscription.expression_type != ALL_MESSAGES.expression_type:
                for broker in (routes.brokers_of(topic) or routes.brokers())[:1]:
                    broker.check_client(self.instance.client_id, self.group, subscription)

    def announce(self) -> list[Exception]:
        """Send the subscriptions to the brokers; gives the errors of those that refuse."""
        return self.instance.send_heartbeat_to_all_brokers()

    def _announce_at_start(self) -> None:
        """Send the subscriptions to the brokers, and ask them for queues.

        Raises the first error with which a broker refuses the group; WriteLockTimeoutError where
        another process keeps the group's members from joining. One that does not answer may do so
        later.
        """
        errors = self.announce()
        self.instance.routes.refresh()  # later changes come with a notice
        for error in errors:
            if isinstance(error, BrokerError | WriteLockTimeoutError):
                raise error

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic. The next rebalance gives up its queues.

        Does not wait for a rebalance that does not end, because a strategy of the user's blocks.
        """
        with self._lock:
            self._subscriptions.pop(topic, None)
            if self._state is ServiceState.RUNNING:
                # A round may be about to write a new version of it.
                with held_within(self.rebalance.lock, _LONGEST_WAIT_S):
                    self.rebalance.subscriptions.pop(topic, None)
