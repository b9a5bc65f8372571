"""The push consumer (DefaultMQPushConsumer and its Impl of 4.9): wiring, life and public methods.

Its parts, in the order in which ``start`` makes them: subscriptions, client instance, rebalance,
pull loop, offset store, consume service.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from broker.api.members import MessageModel
from broker.errors import BrokerError
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.send_back import SendBack
from client.consumer.subscription import ALL_MESSAGES, MessageSelector, subscription_data
from client.errors import ClientConfigError, ClientStateError, GroupRegisteredError
from client.runtime.client_config import ClientConfig
from client.runtime.client_manager import CLIENT_MANAGER
from client.runtime.service_state import ServiceState
from storage.format.message import retry_topic

from .inner import PushConsumerInner
from .parts import make_consume_service, start_trace
from .pull_loop import PullLoop
from .queue_locks import QueueLocks
from .rebalance_push import RebalancePush

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.members import SubscriptionData
    from client.hooks import ConsumeMessageHook
    from client.listener.listener import AnyConcurrentListener, AnyOrderlyListener
    from client.listener.service import ConsumeService
    from client.offset_store.offset_store import OffsetStore
    from client.runtime.client_manager import ClientManager
    from client.trace.trace_hooks import ConsumeMessageTraceHook

logger = logging.getLogger("rmqctl.client")


class PushConsumer(PushConsumerInner):
    """Consumes messages by a listener; a context manager that starts and shuts down.

        def listen(messages, context):
            for message in messages:
                charge(message.body)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = PushConsumer.open("demo-store", "audit")
        consumer.subscribe("OrderEvent", "TagA || TagB")
        consumer.register_message_listener(listen)
        with consumer:
            wait_for_the_end()

    Members of a group may run in any number of processes on one store: they divide the queues among
    them, and when one dies the others have its queues about a second later. A message may come more
    than once.
    """

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

        Raises InvalidNameError for an illegal group name.
        """
        super().__init__(
            group,
            brokers=brokers,
            config=config or ConsumerConfig(),
            client_config=client_config,
            offset_store=offset_store,
            manager=manager,
        )
        self.consume_hooks: Final[list[ConsumeMessageHook]] = []
        """Called around each call of the listener; append yours before ``start``."""
        self.orderly = False
        """Whether the listener is orderly."""
        self.paused = False
        """Whether nothing is pulled or rebalanced; see ``suspend``."""
        self._listener: Any = None
        self._trace: ConsumeMessageTraceHook | None = None
        self._announced: dict[str, SubscriptionData] = {}

    # -- settings

    @property
    def config(self) -> ConsumerConfig:
        """The settings as they are now."""
        return self._config

    def configure(self, **changes: Any) -> None:
        """Change settings. In a running consumer only settings that are read at each use take
        effect.

        Raises ClientConfigError for a value out of its range.
        """
        self._config = replace(self._config, **changes)

    def register_message_listener(self, listener: AnyConcurrentListener) -> None:
        """Consume messages in many threads at once, in any order."""
        self._listener, self.orderly = listener, False

    def register_message_listener_orderly(self, listener: AnyOrderlyListener) -> None:
        """Consume the messages of each queue one after the other."""
        self._listener, self.orderly = listener, True

    def subscribe(self, topic: str, selector: str | MessageSelector | None = "*") -> None:
        """Subscribe to a topic: all messages, those of tags ``a || b``, or those of a selector.

        A running consumer sends it to its brokers at once. Raises InvalidNameError, and
        SubscriptionParseError.
        """
        with self._lock, ExitStack() as stack:
            if (
                self._state is ServiceState.RUNNING
            ):  # no round takes its queues before it is announced
                stack.enter_context(self.rebalance.lock)
            self._want(topic, selector)

    # -- life

    def start(self) -> None:
        """Begin to consume; returns when the brokers have registered the consumer.

        Raises ClientStateError if it was started before, ClientConfigError if the listener or
        every subscription is missing, GroupRegisteredError if its client has a consumer of the
        group (then it can be started later), and the errors with which brokers refuse it.
        SubscriptionParseError, from the brokers' check of expressions, leaves it running.
        """
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise ClientStateError(
                    f"push consumer {self.group} cannot be started: its state is {self._state}"
                )
            self._state = ServiceState.START_FAILED
            self._check_config()
            try:
                self._make_parts()
                self.consume_service.start()
            except BaseException:
                if hasattr(self, "consume_service"):
                    self.consume_service.shutdown(0)
                if hasattr(self, "instance"):
                    self.instance.shutdown()  # else the next client finds our brokers in it
                raise
            if not self.instance.register_consumer(self.group, self):
                self._state = ServiceState.CREATE_JUST
                self.consume_service.shutdown(0)
                raise GroupRegisteredError("consumer", self.group, self.client_id)
            try:
                self._trace = start_trace(self)
                self.instance.start()
                with self.rebalance.lock:  # a round meanwhile waits until all of it is done
                    self._join()
                    self._state = ServiceState.RUNNING
            except BaseException:
                self._state = ServiceState.START_FAILED
                self.consume_service.shutdown(0)
                self._leave()
                raise
        self._check_expressions()
        self.instance.rebalance_immediately()

    def _check_config(self) -> None:
        if not self._subscriptions:
            raise ClientConfigError(f"push consumer {self.group}: subscription is null")
        if self._listener is None:
            raise ClientConfigError(f"push consumer {self.group}: messageListener is null")

    def _make_parts(self) -> None:
        self._join_instance()
        self.rules = RebalancePush(self)
        self.rebalance = self._make_rebalance(self.rules)
        if self.message_model is MessageModel.CLUSTERING:
            topic = retry_topic(self.group)
            retries = subscription_data(topic, ALL_MESSAGES, self.clock.now_ms())
            self.rebalance.subscriptions[topic] = retries
        self.locks = QueueLocks(self.rebalance, self.instance.routes, self.clock)
        self.pull_loop = PullLoop(self)
        self.send_back = SendBack(self.group, self.instance)
        self.offset_store = self._given_offset_store or self._make_offset_store()
        self.offset_store.load()
        self.consume_service: ConsumeService = make_consume_service(self, self._listener)
        self.start_timestamp = self.clock.now_ms()

    def _join(self) -> None:
        """Register with the brokers; raise the refusal of one of them."""
        for topic in self.rebalance.subscriptions:
            self.instance.routes.subscribe_queues(topic)
        self.instance.routes.refresh()
        refused = self.announce()
        for error in refused:
            if isinstance(error, BrokerError):
                raise error

    def _check_expressions(self) -> None:
        for topic, subscription in self.rebalance.subscriptions.items():
            if subscription.expression_type != ALL_MESSAGES.expression_type:
                for broker in self.instance.routes.brokers_of(topic)[:1]:
                    broker.check_client(self.client_id, self.group, subscription)

    def suspend(self) -> None:
        """Stop pulling and rebalancing until ``resume``; pulled messages are still consumed."""
        self.paused = True

    def resume(self) -> None:
        """Go on."""
        self.paused = False
        if self._state is ServiceState.RUNNING:
            self.instance.rebalance_immediately()

    def shutdown(self) -> None:
        """Stop consuming, commit the progress and leave the group. Calling twice is fine.

        Waits ``await_termination_millis_when_shutdown`` for what is queued and running; what is not
        finished then comes again, to the next consumer.
        """
        super().shutdown()

    def _finish_work(self) -> None:
        self.consume_service.shutdown(self._config.await_termination_millis_when_shutdown)
        if self._trace is not None:
            self._trace.shutdown()

    def running_info(self) -> Mapping[str, Any]:
        """See ConsumerInner."""
        from .running_info import consumer_running_info

        return consumer_running_info(self)
