"""What the producers and consumers of one client id share (MQClientInstance of 4.9).

Routes, the connection to each broker, timers, the pull thread and the rebalance thread. The
instance's lock guards its tables and makes starting one thing at a time: brokers are connected
under it, nothing else of a broker, consumer or producer is called under it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.api.members import (
    ConsumeDirectlyResult,
    ConsumeDirectlyStatus,
    ConsumerData,
    HeartbeatData,
)
from broker.errors import BrokerError
from client.errors import UNANSWERED, ClientStateError
from client.timing import SYSTEM_CLOCK, ThreadScheduler
from storage.deadlines import held_within
from storage.errors import StoreClosedError
from storage.format.message import MessageQueue

from .pull_service import PullRequest, PullService
from .rebalance_service import RebalanceService
from .routes import Routes
from .service_state import ServiceState
from .stats import ConsumerStatsManager

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.api.broker import Broker
    from broker.api.transactions import CheckTransactionState
    from client.producer.producer import Producer
    from client.timing import Action, Clock, Scheduler
    from storage.format.message import MessageExt

    from .client_config import ClientConfig

logger = logging.getLogger("rmqctl.client")

_LONGEST_WAIT_S: Final = 0.7
"""How long a group that is left waits for a heartbeat."""


class ConsumerInner(Protocol):
    """A consumer as its instance uses it (MQConsumerInner)."""

    def consumer_data(self) -> ConsumerData:
        """Give its part of the heartbeat."""
        ...

    def do_rebalance(self) -> None:
        """Take and give away queues."""
        ...

    def persist_consumer_offset(self) -> None:
        """Commit the progress of all its queues."""
        ...

    def adjust_thread_pool(self) -> None:
        """Fit the number of threads to the backlog."""
        ...

    def pull_message(self, request: PullRequest) -> None:
        """See Pulling.pull_message."""
        ...

    def hand_over(self) -> None:
        """See Pulling.hand_over."""
        ...

    def reset_offset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on from other offsets. May not block for longer than a moment."""
        ...

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """Give the progress in memory."""
        ...

    def running_info(self) -> Mapping[str, Any]:
        """Give settings, subscriptions, queues in work and statistics, ready for JSON."""
        ...

    def consume_message_directly(
        self, message: MessageExt, broker_name: str
    ) -> ConsumeDirectlyResult:
        """Call the listener with a message, without touching progress."""
        ...


class ProducerInner(Protocol):
    """A producer as its instance uses it (MQProducerInner)."""

    def check_transaction_state(self, broker: Broker, request: CheckTransactionState) -> None:
        """Report to ``broker`` the state of a transaction, in a thread of its own."""
        ...


class ScheduledTask(NamedTuple):
    """One of the instance's timers; ms."""

    name: str
    first_ms: int
    period_ms: int
    run: Action


class ClientInstance:
    """The runtime of one client id. Made by ClientManager; safe for threads."""

    def __init__(
        self,
        config: ClientConfig,
        brokers: Iterable[Broker] = (),
        *,
        clock: Clock = SYSTEM_CLOCK,
        schedulers: Callable[[str], Scheduler] = ThreadScheduler,
        threads: bool = True,
        on_shutdown: Callable[[ClientInstance], object] = lambda _: None,
    ) -> None:
        """Nothing runs before ``start``; with ``threads`` False, the pull and rebalance services
        run only in calls of their ``run_once``."""
        self.config = config
        self.client_id = client_id = config.client_id
        self.clock = clock
        self.routes = Routes(brokers)
        self.schedulers = schedulers
        self.scheduler = schedulers(f"MQClientFactoryScheduledThread {client_id}")
        self.pull_service = PullService(
            f"PullMessageService {client_id}",
            self.consumer,
            schedulers(f"PullMessageServiceScheduledThread {client_id}"),
        )
        self.rebalance_service = RebalanceService(
            f"RebalanceService {client_id}", config.rebalance_interval_ms, self.do_rebalance
        )
        self.consumer_stats = ConsumerStatsManager(clock)
        self._threads = threads
        self._on_shutdown = on_shutdown
        self._lock = threading.RLock()  # guards the fields below; tables are replaced on change
        self._state = ServiceState.CREATE_JUST
        self._consumers: dict[str, ConsumerInner] = {}
        self._producers: dict[str, ProducerInner] = {}
        self._connected: dict[str, Broker] = {}
        self._inner_producer: Producer | None = None
        self._heartbeat_lock = threading.Lock()  # held while one is sent; before consumers' locks

    # -- consumers and producers

    @property
    def state(self) -> ServiceState:
        """The instance's state."""
        return self._state

    def consumer(self, group: str) -> ConsumerInner | None:
        """Give the consumer of a group (selectConsumer)."""
        return self._consumers.get(group)

    def producer(self, group: str) -> ProducerInner | None:
        """Give the producer of a group (selectProducer)."""
        return self._producers.get(group)

    def register_consumer(self, group: str, consumer: ConsumerInner) -> bool:
        """Put a consumer into the table; False if one of its group is there."""
        with self._lock:
            if group in self._consumers:
                logger.warning("the consumer group %s exists already", group)
                return False
            self._consumers = {**self._consumers, group: consumer}
            return True

    def unregister_consumer(self, group: str) -> None:
        """Take a group's consumer out of the table, and leave the group at all brokers."""
        with self._lock:
            self._consumers = {k: v for k, v in self._consumers.items() if k != group}
        self._unregister_client(None, group)

    def register_producer(self, group: str, producer: ProducerInner) -> bool:
        """Put a producer into the table; False if one of its group is there."""
        with self._lock:
            if group in self._producers:
                logger.warning("the producer group %s exists already", group)
                return False
            self._producers = {**self._producers, group: producer}
            return True

    def unregister_producer(self, group: str) -> None:
        """Take a group's producer out of the table, and leave the group at all brokers."""
        with self._lock:
            self._producers = {k: v for k, v in self._producers.items() if k != group}
        self._unregister_client(group, None)

    def _unregister_client(self, producer_group: str | None, consumer_group: str | None) -> None:
        # A heartbeat that is under way may name the group: it must not come after this. One that
        # does not end is left alone, and the next one completes the leaving.
        with held_within(self._heartbeat_lock, _LONGEST_WAIT_S):
            for broker in self._connected.values():
                try:
                    broker.unregister_client(self.client_id, producer_group, consumer_group)
                except (*UNANSWERED, BrokerError) as error:
                    logger.warning("broker %s does not let the client go: %s", broker.name, error)

    # -- life

    def start(self) -> None:
        """Start what is shared; a running instance stays as it is.

        Order of 4.9: connections, timers, pull service, rebalance service. Raises ClientStateError
        if it was shut down or its start failed, a broker's error if it refuses the client id, and
        RuntimeError if the system gives no thread. Then it is ended, and another may be made.
        """
        with self._lock:
            if self._state is ServiceState.RUNNING:
                return
            if self._state is not ServiceState.CREATE_JUST:
                raise ClientStateError(
                    f"client {self.client_id} cannot be started: its state is {self._state}"
                )
            self._state = ServiceState.START_FAILED
            try:
                for broker in self.routes.brokers():
                    self._connect(broker)
                for task in self.scheduled_tasks:
                    self.scheduler.call_every(task.first_ms, task.period_ms, task.run)
                self.consumer_stats.start(self.scheduler)
                if self._threads:
                    self.pull_service.start()
                    self.rebalance_service.start()
                self._state = ServiceState.RUNNING
            except BaseException:
                self._state = ServiceState.START_FAILED
                self._end()
                raise

    def shutdown(self) -> None:
        """End what is shared, unless a consumer or producer still uses it. Calling twice is fine.

        One that was never started is removed: its brokers may be closed by now.
        """
        with self._lock:
            if self._consumers or self._producers:
                return
            if self._state is not ServiceState.RUNNING:
                self._on_shutdown(self)
                return
            self._state = ServiceState.SHUTDOWN_ALREADY
            inner_producer = self._inner_producer
        try:
            if inner_producer is not None:
                inner_producer.shutdown()
        finally:
            self._end()

    def _end(self) -> None:
        with ExitStack() as stack:  # in reverse order; each step runs whatever the others raise
            stack.callback(self._on_shutdown, self)
            stack.callback(self.rebalance_service.shutdown)
            stack.callback(self._disconnect_all)
            stack.callback(self.scheduler.shutdown)
            stack.callback(self.pull_service.shutdown)

    @property
    def scheduled_tasks(self) -> tuple[ScheduledTask, ...]:
        """The timers of ``startScheduledTask``. They share a thread: a slow one delays the others.

        The fifth, fetchNameServerAddr (10 s, 120 s), comes with name servers: brokers in folders
        need none.
        """
        config = self.config
        return (
            ScheduledTask(
                "updateTopicRouteInfoFromNameServer",
                10,
                config.poll_name_server_interval_ms,
                self.update_topic_routes,
            ),
            ScheduledTask(
                "sendHeartbeatToAllBrokerWithLock",
                1_000,
                config.heartbeat_broker_interval_ms,
                self._clean_and_heartbeat,
            ),
            ScheduledTask(
                "persistAllConsumerOffset",
                10_000,
                config.persist_consumer_offset_interval_ms,
                self.persist_all_consumer_offset,
            ),
            ScheduledTask("adjustThreadPool", 60_000, 60_000, self.adjust_thread_pool),
        )

    def inner_producer(self, make: Callable[[ClientInstance], Producer]) -> Producer:
        """Give the producer that sends retries, CLIENT_INNER_PRODUCER; made at first use."""
        with self._lock:
            if self._inner_producer is None:
                self._inner_producer = make(self)
            return self._inner_producer

    # -- brokers

    def add_broker(self, broker: Broker) -> None:
        """Add a broker: connect to it, and rebalance with its queues.

        Raises ClientConfigError if another broker has its name.
        """
        self.routes.add(broker)
        with self._lock:
            if self._state is not ServiceState.RUNNING or broker.name in self._connected:
                return
            self._connect(broker)
        self.send_heartbeat_to_all_brokers()
        self.update_topic_routes()

    def remove_broker(self, name: str) -> None:
        """Remove a broker; unknown names are fine. Its queues are given up where another broker has
        their topic. Where none has, they stay and their pulls fail, as a topic without queues
        leaves all as it is (RebalanceImpl.rebalanceByTopic)."""
        self.routes.remove(name)
        with self._lock:
            broker = self._connected.get(name)
            self._connected = {k: v for k, v in self._connected.items() if k != name}
        if broker is not None:
            self._disconnect(broker)
        self.update_topic_routes()

    def _connect(self, broker: Broker) -> None:
        broker.connect(self.client_id, BrokerConnection(self, broker))
        self._connected = {**self._connected, broker.name: broker}

    def _disconnect(self, broker: Broker) -> None:
        try:
            broker.disconnect(self.client_id)
        except (*UNANSWERED, BrokerError) as error:
            logger.warning("broker %s does not disconnect the client: %s", broker.name, error)

    def _disconnect_all(self) -> None:
        with self._lock:
            connected, self._connected = self._connected, {}
        for broker in connected.values():
            self._disconnect(broker)

    # -- work of the timers

    def update_topic_routes(self) -> None:
        """Ask brokers for the queues of all topics in use. Where they changed, rebalance at once
        (RocketMQ: within 20 s)."""
        if self.routes.refresh() and self._consumers:
            self.rebalance_immediately()

    def _clean_and_heartbeat(self) -> None:
        self.clean_offline_brokers()
        if self._heartbeat_lock.acquire(blocking=False):
            try:
                self._send_heartbeat()
            finally:
                self._heartbeat_lock.release()
        else:
            logger.info("a heartbeat is under way: client_id=%s", self.client_id)

    def clean_offline_brokers(self) -> None:
        """Remove brokers that are closed for good (cleanOfflineBroker)."""
        for name, broker in self._connected.items():
            try:
                broker.topic("")
            except StoreClosedError:
                logger.warning("broker %s is closed: the client forgets it", name)
                self.remove_broker(name)
            except (*UNANSWERED, BrokerError):
                continue  # it may come back

    def heartbeat_data(self) -> HeartbeatData:
        """Make this client's heartbeat: its id and its groups (prepareHeartbeatData)."""
        consumers = tuple(consumer.consumer_data() for consumer in self._consumers.values())
        return HeartbeatData(self.client_id, tuple(self._producers), consumers)

    def send_heartbeat_to_all_brokers(self) -> list[Exception]:
        """Send the groups to all brokers; gives the errors of those that refused.

        Changes made before the call have been sent when it returns.
        """
        with self._heartbeat_lock:
            return self._send_heartbeat()

    def _send_heartbeat(self) -> list[Exception]:
        data = self.heartbeat_data()
        failures: list[Exception] = []
        if not data.producers and not data.consumers:
            return failures
        for name, broker in self._connected.items():
            try:
                broker.heartbeat(data)
            except (*UNANSWERED, BrokerError) as error:
                logger.warning("broker %s does not take the heartbeat: %s", name, error)
                failures.append(error)
        return failures

    def persist_all_consumer_offset(self) -> None:
        """Commit the progress of all consumers."""
        self._each_consumer("persist its progress", lambda it: it.persist_consumer_offset())

    def adjust_thread_pool(self) -> None:
        """Let consumers fit their threads to the backlog; 4.9's do nothing with it."""
        self._each_consumer("adjust its threads", lambda it: it.adjust_thread_pool())

    # -- rebalance

    def rebalance_immediately(self) -> None:
        """Divide queues anew, soon."""
        self.rebalance_service.wakeup()

    def do_rebalance(self) -> None:
        """Let each consumer take and give away queues; one that fails does not stop the others."""
        self._each_consumer("rebalance", lambda it: it.do_rebalance())

    def _each_consumer(self, what: str, act: Callable[[ConsumerInner], None]) -> None:
        for group, consumer in self._consumers.items():
            try:
                act(consumer)
            except (Exception, SystemExit):
                logger.exception("consumer group %s could not %s", group, what)


class BrokerConnection:
    """Requests that one broker may send to the instance (ClientHandler)."""

    def __init__(self, instance: ClientInstance, broker: Broker) -> None:
        self._instance = instance
        self._broker = broker

    def notify_consumer_ids_changed(self, group: str) -> None:
        """See ClientHandler."""
        logger.info("members have changed: group=%s broker=%s", group, self._broker.name)
        self._instance.rebalance_immediately()

    def notify_topics_changed(self, topics: Collection[str]) -> None:
        """See ClientHandler."""
        logger.info("topics have changed: %s broker=%s", ", ".join(topics), self._broker.name)
        self._instance.scheduler.call_later(0, self._instance.update_topic_routes)

    def reset_offset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        if consumer is not None:
            name = self._broker.name
            consumer.reset_offset({MessageQueue(topic, name, i): o for i, o in offsets.items()})

    def check_transaction_state(self, request: CheckTransactionState) -> None:
        """See ClientHandler."""
        producer = self._instance.producer(request.producer_group)
        if producer is None:
            logger.warning("a check for a group that is not here: %s", request.producer_group)
            return
        producer.check_transaction_state(self._broker, request)

    def consumer_status(self, group: str, topic: str) -> Mapping[MessageQueue, int]:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        return {} if consumer is None else consumer.consumer_status(topic)

    def consumer_running_info(self, group: str) -> Mapping[str, Any]:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        return {} if consumer is None else consumer.running_info()

    def consume_message_directly(self, group: str, message: MessageExt) -> ConsumeDirectlyResult:
        """See ClientHandler."""
        consumer = self._instance.consumer(group)
        if consumer is None:
            return ConsumeDirectlyResult(
                order=False,
                auto_commit=True,
                consume_result=ConsumeDirectlyStatus.CR_THROW_EXCEPTION,
                remark=f"the client has no consumer of group {group}",
                spent_time_mills=0,
            )
        return consumer.consume_message_directly(message, self._broker.name)
