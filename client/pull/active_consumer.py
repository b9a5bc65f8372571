"""Common parts of consumers that pull on request: settings, parts, start and shutdown."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.api.members import (
    ConsumeDirectlyResult,
    ConsumeDirectlyStatus,
    ConsumerData,
    ConsumeType,
    MessageModel,
)
from broker.validation import check_topic
from client.arguments import check_queue, check_time, check_whole
from client.consumer.consumer import Consumer
from client.errors import GroupRegisteredError
from client.offset_store.offset_store import ReadOffsetType, compute_pull_from_where
from client.runtime.service_state import ServiceState, not_startable
from storage.format.names import exact_str

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from client.listener.process_queue import ProcessQueue
    from client.offset_store.remote_offset_store import RemoteBrokerOffsetStore
    from client.runtime.pull_service import PullRequest
    from storage.format.message import MessageExt, MessageQueue

logger = logging.getLogger("rmqctl.client.pull")


class ActiveConsumer(Consumer):
    """A consumer that pulls on request. It is its own RebalanceRules and ConsumerInner."""

    consume_type: ConsumeType = ConsumeType.CONSUME_ACTIVELY

    # -- life

    def start(self) -> None:
        """Join the group. Raises ClientStateError if it was started before, GroupRegisteredError if
        its client has a consumer of the group (then it can be started later), and the errors with
        which brokers refuse it; WriteLockTimeoutError if another process keeps the group's members
        from joining. SubscriptionParseError, from the brokers' check of expressions,
        leaves it running."""
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise not_startable(f"consumer {self.group}", self._state)
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
                self._announce_at_start()
                self._state = ServiceState.RUNNING
            except BaseException:
                self._leave()
                raise
        self._check_expressions()
        self.instance.rebalance_immediately()

    def _make_parts(self) -> None:
        self._join_instance()
        self.rebalance = self._make_rebalance(self)
        self.offset_store = self._given_offset_store or self._make_offset_store()
        self.offset_store.load()

    def _finish_work(self) -> None:
        """Do nothing: users finish their own work."""

    # -- queries of users of both kinds

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Give all queues of a topic, sorted; empty if no broker has it."""
        check_topic(topic)
        return self._running().routes.subscribe_queues(exact_str(topic))

    def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Give the offset of a store time, ms: that of the message nearest to it.

        Raises ClientConfigError for a time other than 0 before 1990 or after 2200.
        """
        check_whole("the timestamp", timestamp)
        check_time("the timestamp", timestamp)
        broker = self._broker_of(queue)
        return broker.search_offset(queue.topic, queue.queue_id, timestamp)

    def min_offset(self, queue: MessageQueue) -> int:
        """Give the first offset that is still there."""
        return self._broker_of(queue).min_offset(queue.topic, queue.queue_id)

    def max_offset(self, queue: MessageQueue) -> int:
        """Give the next offset to be written."""
        return self._broker_of(queue).max_offset(queue.topic, queue.queue_id)

    def _broker_of(self, queue: MessageQueue) -> Broker:
        """Give the broker of a queue. Raises ClientStateError, ClientArgumentError and
        BrokerNotExistError."""
        check_queue(queue)
        return self._running().routes.broker(queue.broker_name)

    @property
    def _remote_offset_store(self) -> RemoteBrokerOffsetStore | None:
        """The store of progress that brokers have: not that of a broadcast, nor one of another
        kind that the consumer brought along."""
        from client.offset_store.remote_offset_store import RemoteBrokerOffsetStore

        store = self.offset_store
        return store if isinstance(store, RemoteBrokerOffsetStore) else None

    # -- for the instance (ConsumerInner)

    def consumer_data(self) -> ConsumerData:
        """See ConsumerInner."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._config.message_model,
            self._config.consume_from_where,
            tuple(data for _, data in sorted(self.rebalance.subscriptions.items())),
            tuple(self.rebalance.queues()),
        )

    def do_rebalance(self) -> None:
        """See ConsumerInner."""
        with self.rebalance.lock:  # a shutdown waits for the round, and none comes after it
            if self._state is ServiceState.RUNNING:
                self.rebalance.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """See ConsumerInner."""
        if self._state is ServiceState.RUNNING:
            self.offset_store.persist_all(list(self.rebalance.process_queues))

    def adjust_thread_pool(self) -> None:
        """Do nothing: there are no threads."""

    def pull_message(self, request: PullRequest) -> None:
        """Do nothing: only the user pulls."""

    def hand_over(self) -> None:
        """Do nothing: users take pulled messages."""

    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Forget progress that was moved: it is read from the broker again. Of a broadcast only
        this consumer has the progress, so it is ``moved`` here. A queue with which the offset store
        fails keeps no other one from its move."""
        for queue, offset in moved.items():
            try:
                if offset is not None and self._config.message_model is MessageModel.BROADCASTING:
                    # What is not stored now is in memory, and is stored with the next commit.
                    self.offset_store.update_offset(queue, offset, increase_only=False)
                    self.offset_store.persist(queue)
                else:
                    self.offset_store.remove_offset(queue)
            except (Exception, SystemExit):  # a user's own offset store may raise any error
                text = "moved progress cannot be taken over: group=%s queue=%s"
                logger.exception(text, self.group, queue)

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
        """See RebalanceRules. Brokers get the new queues."""
        self.announce()

    def dispatch_pull_requests(self, requests: Sequence[PullRequest]) -> None:
        """See RebalanceRules; the user pulls."""
