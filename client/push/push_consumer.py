"""The push consumer (DefaultMQPushConsumer and its Impl of 4.9): wiring, life and public methods.

Its parts, in the order in which ``start`` makes them: subscriptions, client instance, rebalance,
pull loop, offset store, consume service.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from broker.api.members import ConsumerData, ConsumeType, MessageModel
from broker.errors import BrokerError
from client.arguments import check_listener
from client.consumer.consumer import Consumer
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.send_back import SendBack
from client.consumer.subscription import ALL_MESSAGES, MessageSelector, subscription_data
from client.errors import (
    UNANSWERED,
    ClientConfigError,
    ClientError,
    ClientStateError,
    GroupRegisteredError,
)
from client.runtime.service_state import ServiceState, not_running, not_startable
from storage.format.message import retry_topic

from .pull_loop import PullLoop
from .queue_locks import QueueLocks
from .rebalance_push import RebalancePush

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Unpack

    from broker.api.members import ConsumeDirectlyResult, SubscriptionData
    from client.consumer.consumer import ConsumerArguments
    from client.hooks import ConsumeMessageHook
    from client.listener.listener import AnyConcurrentListener, AnyOrderlyListener
    from client.listener.process_queue import ProcessQueue
    from client.listener.service import ConsumeService, ListenerResult
    from client.runtime.pull_service import PullRequest
    from client.runtime.stats import ConsumerStatsManager
    from client.timing import Clock, Scheduler
    from client.trace.trace_hooks import ConsumeMessageTraceHook
    from storage.format.message import MessageExt, MessageQueue

logger = logging.getLogger("rmqctl.client.consume")

_FEWER_THREADS: Final = 0.8  # of the threshold (DefaultMQPushConsumerImpl.adjustThreadPool)


class PushConsumer(Consumer):
    """Consumes messages by a listener; a context manager that starts and shuts down.

        def listen(messages, context):
            for message in messages:
                charge(message.body)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = PushConsumer.open("demo-store", "audit", create=True)
        consumer.subscribe("OrderEvent", "TagA || TagB")
        consumer.register_message_listener(listen)
        with consumer:
            wait_for_the_end()

    Members of a group may run in any number of processes on one store: they divide the queues among
    them, and when one dies the others have its queues about a second later. A consumer may start
    before its topic exists. A message may come more than once.
    """

    def __init__(self, group: str, **arguments: Unpack[ConsumerArguments]) -> None:
        """Make a consumer of ``group``; the caller closes the brokers.

        Raises InvalidNameError for an illegal group name, ClientArgumentError for an argument of
        another type.
        """
        super().__init__(group, **arguments)
        self.consume_hooks: Final[list[ConsumeMessageHook]] = []
        """Called around each call of the listener; append yours before ``start``."""
        self.orderly = False
        """Whether the listener is orderly."""
        self.paused = False
        """Whether nothing is pulled or rebalanced; see ``suspend``."""
        self._listener: Any = None
        self._fields: frozenset[str] | None = None
        self._trace: ConsumeMessageTraceHook | None = None
        self._announced: dict[str, SubscriptionData] = {}
        self._retry_topic = retry_topic(group)

    # -- settings

    @property
    def message_model(self) -> MessageModel:
        """Which members of the group get a message."""
        return self._config.message_model

    @property
    def config(self) -> ConsumerConfig:
        """The settings as they are now."""
        return self._config

    def configure(self, **changes: Any) -> None:
        """Change settings. In a running consumer only settings that are read at each use take
        effect.

        Raises ClientConfigError for a value out of its range, and for an unknown setting;
        ClientStateError for another ``message_model`` after ``start``.
        """
        known = [field.name for field in fields(self._config)]
        for name in changes:
            if name not in known:
                near = "".join(f"; do you mean {it}?" for it in get_close_matches(name, known, 1))
                raise ClientConfigError(f"no consumer setting is called {name!r}{near}")
        changed = replace(self._config, **changes)
        started = self._state is not ServiceState.CREATE_JUST
        if started and changed.message_model is not self.message_model:
            raise ClientStateError(
                f"push consumer {self.group} keeps its message_model {self.message_model.name} "
                "from its start on; configure it before start(), or make another consumer"
            )
        self._config = changed

    def register_message_listener(
        self, listener: AnyConcurrentListener, *, fields: Collection[str] | None = None
    ) -> None:
        """Consume messages in many threads at once, in any order.

        ``fields``: the listener takes a storage.read.message_rows.MessageRows in the place of a
        tuple, too, whose table has these fields. It gets the rows of some pulls in one call, where
        many messages are there, a call may have those of a pull, nothing is filtered, no hook sees
        the messages and no timer watches them.

        Raises ClientArgumentError for what is no listener.
        """
        self._check_listener(listener)
        self._listener, self.orderly = listener, False
        self._fields = None if fields is None else frozenset(fields)

    def register_message_listener_orderly(self, listener: AnyOrderlyListener) -> None:
        """Consume the messages of each queue one after the other.

        Raises ClientArgumentError for what is no listener.
        """
        self._check_listener(listener)
        self._listener, self.orderly = listener, True
        self._fields = None

    def _check_listener(self, listener: object) -> None:
        check_listener(listener)
        if self._state is ServiceState.RUNNING:
            raise ClientStateError(
                f"push consumer {self.group} runs with its listener; register a listener before "
                "start(), or make another consumer"
            )

    def subscribe(self, topic: str, selector: str | MessageSelector | None = "*") -> None:
        """Subscribe to a topic: all messages, those of tags ``a || b``, or those of a selector.

        A running consumer sends it to its brokers at once: no message that is stored after this
        returns is judged by the former subscription. Raises InvalidNameError, and
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
        group (then it can be started later), and the errors with which brokers refuse it;
        WriteLockTimeoutError if another process keeps the group's members from joining.
        SubscriptionParseError, from the brokers' check of expressions, leaves it running.
        """
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise not_startable(f"push consumer {self.group}", self._state)
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
                self._trace = self._start_trace()
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
            raise ClientConfigError(
                f"push consumer {self.group} subscribes to no topic; call subscribe(topic) before "
                "start()"
            )
        if self._listener is None:
            raise ClientConfigError(
                f"push consumer {self.group} has no listener; call "
                "register_message_listener(listener) or register_message_listener_orderly(listener)"
                " before start()"
            )

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
        self.consume_service = self._make_consume_service()
        self.start_timestamp = self.clock.now_ms()

    def _make_consume_service(self) -> ConsumeService:
        if self.orderly:
            from client.listener.orderly import ConsumeMessageOrderlyService

            return ConsumeMessageOrderlyService(self, self._listener)
        from client.listener.concurrently import ConsumeMessageConcurrentlyService

        return ConsumeMessageConcurrentlyService(self, self._listener)

    def _start_trace(self) -> ConsumeMessageTraceHook | None:
        """Make calls of the listener leave traces, if the setting is on."""
        if not self.config.enable_msg_trace:
            return None
        from client.producer.tracing import trace_dispatcher
        from client.trace.trace_hooks import ConsumeMessageTraceHook

        topic = self.config.customized_trace_topic
        dispatcher = trace_dispatcher(self.instance, self.group, "CONSUME", topic)
        hook = ConsumeMessageTraceHook.of(self.instance, dispatcher)
        self.consume_hooks.append(hook)
        return hook

    def _join(self) -> None:
        """Register with the brokers; raise the refusal of one of them."""
        for topic in self.rebalance.subscriptions:
            self.instance.routes.subscribe_queues(topic)
        self._announce_at_start()

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
        try:
            self.consume_service.shutdown(self._config.await_termination_millis_when_shutdown)
        finally:
            if self._trace is not None:
                self._trace.shutdown()

    # -- for the instance (ConsumerInner)

    def consumer_data(self) -> ConsumerData:
        """See ConsumerInner."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            self.message_model,
            self._config.consume_from_where,
            tuple(subscription for _, subscription in sorted(self.rebalance.subscriptions.items())),
            tuple(self.rebalance.queues()),
        )

    def do_rebalance(self) -> None:
        """See ConsumerInner."""
        with self.rebalance.lock:  # a shutdown waits for the round, and none comes after it
            if not self.paused and self._state is ServiceState.RUNNING:
                self.rebalance.do_rebalance(orderly=self.orderly)

    def pull_message(self, request: PullRequest) -> None:
        """See Pulling.pull_message."""
        self.pull_loop.pull_message(request)

    def hand_over(self) -> None:
        """See Pulling.hand_over."""
        self.consume_service.hand_over()

    def persist_consumer_offset(self) -> None:
        """See ConsumerInner."""
        if self._state is ServiceState.RUNNING:
            queues = list(self.rebalance.process_queues.items())
            with ExitStack() as stack:  # each step runs whatever an earlier one raised
                stack.callback(self.offset_store.persist_all, [queue for queue, _ in queues])
                for queue, process_queue in queues:
                    stack.callback(self.consume_service.settle, process_queue, queue)

    def adjust_thread_pool(self) -> None:
        """Fit the threads to the backlog, one at a time, if the setting is on (adjustThreadPool):
        in 4.9.8 both hooks, for more threads and for fewer, are empty."""
        config = self._config
        if not config.adjust_thread_pool_nums_enable or self._state is not ServiceState.RUNNING:
            return
        backlog = sum(queue.msg_acc_cnt for queue in list(self.process_queues.values()))
        threshold, pool = config.adjust_thread_pool_nums_threshold, self.consume_service.pool
        size = pool.core_pool_size
        if backlog >= threshold and size < config.consume_thread_max:
            pool.update_core_pool_size(size + 1)
        elif backlog < threshold * _FEWER_THREADS and size > config.consume_thread_min:
            pool.update_core_pool_size(size - 1)

    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Restart its queues, soon."""
        self.instance.pull_service.execute_task_later(lambda: self.rules.begin_anew(moved), 0)

    def consume_message_directly(
        self, message: MessageExt, broker_name: str
    ) -> ConsumeDirectlyResult:
        """See ConsumerInner."""
        return self.consume_service.consume_directly(message, broker_name)

    def running_info(self) -> Mapping[str, Any]:
        """See ConsumerInner."""
        from .running_info import consumer_running_info

        return consumer_running_info(self)

    # -- for the consumer's parts (ConsumerContext and others)

    @property
    def client_id(self) -> str:
        """The client's id. Raises ClientStateError before ``start``."""
        try:
            return self.instance.client_id
        except AttributeError:
            raise not_running(f"push consumer {self.group}", self._state) from None

    @property
    def clock(self) -> Clock:
        """Wall-clock time."""
        return self.instance.clock

    @property
    def schedulers(self) -> Callable[[str], Scheduler]:
        """Make timers."""
        return self.instance.schedulers

    @property
    def stats(self) -> ConsumerStatsManager:
        """The client's counters."""
        return self.instance.consumer_stats

    @property
    def process_queues(self) -> Mapping[MessageQueue, ProcessQueue]:
        """The queues that the consumer has now."""
        return self.rebalance.process_queues

    def announce(self) -> list[Exception]:
        """Send the subscriptions to the brokers, then pull by them; gives the errors of refusals.

        In this order, because a pull by a subscription that has not reached its broker fails. A
        round of rebalance that the heartbeat causes waits until this is done: it would take queues
        that are not announced yet, and their first pulls would be put off.
        """
        with self.rebalance.lock:
            subscriptions = dict(self.rebalance.subscriptions)
            refused = self.instance.send_heartbeat_to_all_brokers()
            self._announced = subscriptions
            return refused

    def announced(self, topic: str) -> SubscriptionData | None:
        """Give the subscription to pull a topic by; None if there is none (any more)."""
        return self._announced.get(topic) if topic in self.rebalance.subscriptions else None

    def fields_to_pull(self, topic: str) -> frozenset[str] | None:
        """The fields of the tables that a pull of a topic may bring; None: it brings objects."""
        if (
            self._fields is None
            or self.filter_message_hooks
            or self.consume_hooks
            or self._config.resend_after_if_still_un_ack_ms
            or self._config.consume_message_batch_max_size < self._config.pull_batch_size
            or topic == self._retry_topic  # they are shown under their original topic
        ):
            return None
        return self._fields

    def send_message_back(
        self, message: MessageExt, delay_level: int, queue: MessageQueue, failure: Mapping[str, str]
    ) -> None:
        """See ConsumerContext."""
        limit = self._config.max_reconsume_times
        self.send_back.send_message_back(message, delay_level, queue, limit, failure)

    def send_messages_back(
        self, returned: Sequence[ListenerResult], queue: MessageQueue
    ) -> Sequence[Exception | None]:
        """See ConsumerContext."""
        limit = self._config.max_reconsume_times
        return self.send_back.send_messages_back(returned, queue, limit)

    def send_orderly_to_retry(self, message: MessageExt, failure: Mapping[str, str]) -> None:
        """See ConsumerContext."""
        limit = self._config.max_reconsume_times
        self.send_back.send_orderly_to_retry(message, limit, failure)

    def note_progress(self, queue: MessageQueue) -> None:
        """See ConsumerContext."""
        commit = self.offset_store.pull_commit(queue)
        if commit is None:
            return
        try:
            broker = self.instance.routes.broker(queue.broker_name)
            broker.note_consumer_offset(self.group, commit)
        except (*UNANSWERED, BrokerError, ClientError) as error:
            logger.warning("progress cannot be noted: group=%s %s: %s", self.group, queue, error)

    def lock_queue(self, queue: MessageQueue) -> bool:
        """See ConsumerContext."""
        return self.locks.lock_if_ours(queue)

    def lock_all_queues(self) -> None:
        """See ConsumerContext."""
        self.locks.lock_all()

    def unlock_all_queues(self) -> None:
        """See ConsumerContext."""
        try:
            self.persist_consumer_offset()  # a member that waits for a queue begins there, at once
        finally:
            self.locks.unlock_all()

    def rebalance_immediately(self) -> None:
        """See ConsumerContext."""
        self.instance.rebalance_immediately()
