"""The plain pull consumer (DefaultMQPullConsumer of 4.9): offsets and progress are yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.api.offsets import MAX_OFFSET
from broker.api.pull import PullRequest as PullMessage, PullResult
from client.arguments import check_queue, check_stored, check_whole
from client.consumer.pull_result import messages_of
from client.consumer.send_back import SendBack
from client.consumer.subscription import ALL_MESSAGES, selector_of, subscription_data
from client.offset_store.offset_store import ReadOffsetType
from client.runtime.service_state import ServiceState
from storage.format.shapes import MAX_INT

from .active_consumer import ActiveConsumer

if TYPE_CHECKING:
    from typing import Unpack

    from client.consumer.consumer import ConsumerArguments
    from client.consumer.subscription import MessageSelector
    from storage.format.message import MessageExt, MessageQueue

BROKER_SUSPEND_MAX_TIME_MS: Final = 20_000
"""How long a broker may hold a pull of ``pull_block_if_not_found``."""


class PullConsumer(ActiveConsumer):
    """Pulls a queue from an offset, and does nothing else by itself; a context manager.

        with PullConsumer.open("demo-store", "audit") as consumer:
            for queue in consumer.fetch_subscribe_message_queues("OrderEvent"):
                offset = consumer.fetch_consume_offset(queue) or 0
                result = consumer.pull(queue, offset)
                consumer.update_consume_offset(queue, result.next_begin_offset)

    Progress that is noted is committed every 5 s and at shutdown, of the queues that
    ``fetch_message_queues_in_balance`` last gave, or that it has noted progress of.
    """

    def __init__(self, group: str, **arguments: Unpack[ConsumerArguments]) -> None:
        super().__init__(group, **arguments)
        self._noted: set[MessageQueue] = set()

    def register_topic(self, topic: str) -> None:
        """Take part in dividing a topic's queues; see ``fetch_message_queues_in_balance``."""
        with self._lock:
            self._want(topic, ALL_MESSAGES)

    def fetch_message_queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """Give the queues of a registered topic that are this member's now, sorted."""
        self._running()
        return [queue for queue in self.rebalance.queues() if queue.topic == topic]

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        max_nums: int = 32,
        selector: str | MessageSelector | None = "*",
    ) -> PullResult:
        """Pull what is there from ``offset`` on, without waiting; at most 32 messages.

        Raises ClientStateError, BrokerNotExistError and the broker's refusal.
        """
        return self._pull(queue, offset, max_nums, selector, 0)

    def pull_block_if_not_found(
        self,
        queue: MessageQueue,
        offset: int,
        max_nums: int = 32,
        selector: str | MessageSelector | None = "*",
    ) -> PullResult:
        """Pull as ``pull`` does, but wait up to 20 s for something to be there."""
        return self._pull(queue, offset, max_nums, selector, BROKER_SUSPEND_MAX_TIME_MS)

    def _pull(
        self,
        queue: MessageQueue,
        offset: int,
        max_nums: int,
        selector: str | MessageSelector | None,
        suspend_ms: int,
    ) -> PullResult:
        broker = self._broker_of(queue)
        check_whole("the offset", offset, 0)
        check_whole("max_nums", max_nums, 1)
        now_ms = self.instance.clock.now_ms()
        subscription = subscription_data(queue.topic, selector_of(selector), now_ms)
        wire = PullMessage(
            self.group,
            queue.topic,
            queue.queue_id,
            offset,
            max_nums,
            subscription.sub_string,
            subscription.expression_type,
            suspend_ms,
            client_id=self.instance.client_id,
        )
        result = broker.pull(wire)
        hooks = self.filter_message_hooks
        return result._replace(messages=messages_of(result, subscription, self.group, queue, hooks))

    def fetch_consume_offset(self, queue: MessageQueue, *, from_store: bool = False) -> int | None:
        """Give the group's progress: what is noted here, else (or ``from_store``) the broker's;
        None if there is none."""
        self._running()
        check_queue(queue)
        where = (
            ReadOffsetType.READ_FROM_STORE if from_store else ReadOffsetType.MEMORY_FIRST_THEN_STORE
        )
        return self.offset_store.read_offset(queue, where)

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Note progress: the next offset to consume. Brokers keep the larger one.

        Raises ClientConfigError for an offset or a queue id that brokers cannot store.
        """
        self._running()
        check_queue(queue)
        check_whole("the queue id", queue.queue_id, 0, MAX_INT)
        check_whole("the offset", offset, 0, MAX_OFFSET)
        self._noted.add(queue)
        self.offset_store.update_offset(queue, offset, increase_only=False)

    def persist_consumer_offset(self) -> None:
        """Commit the progress that was noted."""
        if self._state is ServiceState.RUNNING:
            queues = {*self.rebalance.process_queues, *self._noted}
            self.offset_store.persist_all(queues)

    def send_message_back(
        self, message: MessageExt, queue: MessageQueue, delay_level: int = 0
    ) -> None:
        """Send a message back for its next attempt; stored when this returns.

        Only a push consumer, or a consumer that pulls the retry topic, gets it again. Raises
        RocketMQError if neither its broker nor an ordinary send takes it.
        """
        check_stored(message)
        check_queue(queue)
        check_whole("delay_level", delay_level)
        SendBack(self.group, self._running()).send_message_back(
            message, delay_level, queue, self._config.max_reconsume_times, {}
        )
