"""A push consumer as its client instance and its own parts use it: delegation only."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.api.members import ConsumerData, ConsumeType
from broker.errors import BrokerError
from client.consumer.consumer import Consumer
from client.errors import UNANSWERED, ClientError
from client.runtime.service_state import ServiceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.api.members import ConsumeDirectlyResult, MessageModel, SubscriptionData
    from client.consumer.send_back import SendBack
    from client.listener.process_queue import ProcessQueue
    from client.listener.service import ConsumeService, ListenerResult
    from client.runtime.pull_service import PullRequest
    from client.runtime.stats import ConsumerStatsManager
    from client.timing import Clock, Scheduler
    from storage.format.message import MessageExt, MessageQueue

    from .pull_loop import PullLoop
    from .queue_locks import QueueLocks
    from .rebalance_push import RebalancePush

logger = logging.getLogger("rmqctl.client.consume")

_FEWER_THREADS: Final = 0.8  # of the threshold (DefaultMQPushConsumerImpl.adjustThreadPool)


class PushConsumerInner(Consumer):
    """The ConsumerInner and the ConsumerContext of a PushConsumer, which makes all parts used
    here."""

    orderly: bool
    paused: bool
    rules: RebalancePush
    locks: QueueLocks
    pull_loop: PullLoop
    send_back: SendBack
    consume_service: ConsumeService
    _announced: dict[str, SubscriptionData]

    @property
    def message_model(self) -> MessageModel:
        """Which members of the group get a message."""
        return self._config.message_model

    # -- for the instance (ConsumerInner)

    def consumer_data(self) -> ConsumerData:
        """See ConsumerInner."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            self.message_model,
            self._config.consume_from_where,
            tuple(subscription for _, subscription in sorted(self.rebalance.subscriptions.items())),
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
            for queue, process_queue in queues:
                self.consume_service.settle(process_queue, queue)
            self.offset_store.persist_all([queue for queue, _ in queues])

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

    # -- for the consumer's parts (ConsumerContext and others)

    @property
    def client_id(self) -> str:
        """The client's id."""
        return self.instance.client_id

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

    def _tell_subscriptions(self) -> None:
        self.announce()

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
        self.locks.unlock_all()

    def rebalance_immediately(self) -> None:
        """See ConsumerContext."""
        self.instance.rebalance_immediately()
