"""The plain pull consumer (DefaultMQPullConsumer of 4.9): offsets and progress are yours."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.api.members import MessageModel
from broker.api.offsets import MAX_OFFSET
from broker.api.pull import PullRequest as PullMessage, PullResult
from client.arguments import check_queue, check_stored, check_whole
from client.consumer.pull_result import messages_of
from client.consumer.send_back import SendBack
from client.consumer.subscription import ALL_MESSAGES, selector_of, subscription_data
from client.errors import ProgressMovedError
from client.offset_store.offset_store import ReadOffsetType, end_past_progress
from client.runtime.service_state import ServiceState
from storage.format.shapes import MAX_INT

from .active_consumer import ActiveConsumer

if TYPE_CHECKING:
    from typing import Unpack

    from client.consumer.consumer import ConsumerArguments
    from client.consumer.subscription import MessageSelector
    from client.offset_store.remote_offset_store import RemoteBrokerOffsetStore
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
    ``fetch_message_queues_in_balance`` last gave, or that it has noted progress of. Progress that
    is moved meanwhile, for instance by a reset, is not overwritten: ``update_consume_offset``
    raises ProgressMovedError, and ``fetch_consume_offset`` gives where to go on.
    """

    def __init__(self, group: str, **arguments: Unpack[ConsumerArguments]) -> None:
        super().__init__(group, **arguments)
        self._moving = threading.Lock()  # guards the three fields below, and what is read for them
        self._noted: set[MessageQueue] = set()
        self._fetched: set[MessageQueue] = set()
        self._moved: dict[MessageQueue, int | None] = {}

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
        with self._moving:
            offset = self.offset_store.read_offset(queue, where)
            self._moved.pop(queue, None)
            self._fetched.add(queue)
        return offset

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Note progress: the next offset to consume. Brokers keep the larger one, unless that lies
        past the end of the queue.

        The first call for a queue reads the group's progress at its broker. Raises
        ClientConfigError for an offset or a queue id that brokers cannot store, ProgressMovedError
        if the progress was moved since it was read or noted here, and the errors of the broker.
        """
        self._running()
        check_queue(queue)
        check_whole("the queue id", queue.queue_id, 0, MAX_INT)
        check_whole("the offset", offset, 0, MAX_OFFSET)
        with self._moving:
            if queue in self._moved:
                raise ProgressMovedError(self.group, queue, self._moved[queue])
            known = self._known_offset(queue)
            if known is not None and offset < known:
                self._repair_offset(queue, offset)
            self._noted.add(queue)
            self.offset_store.update_offset(queue, offset, increase_only=False)

    def _known_offset(self, queue: MessageQueue) -> int | None:
        """Give the progress to which a noted number belongs.

        Read before the number is noted, so that this belongs to the generation of now: a commit of
        an older one counts as one from before a move. Raises ProgressMovedError where the program
        read that there is no progress, and a newer generation has begun since.
        """
        store = self._remote_offset_store
        before = None if store is None else store.generation_of(queue)
        known = self.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        if store is not None and before is not None and store.generation_of(queue) != before:
            self._take_note({queue: known})
            raise ProgressMovedError(self.group, queue, known)
        return known

    def _repair_offset(self, queue: MessageQueue, offset: int) -> None:
        """Move progress that lies past the end of its queue to an offset: no commit lowers it.

        The broker's progress counts: what was noted here and is not committed has moved nothing.
        """
        store = self._remote_offset_store
        if store is None:
            return
        broker = self._broker_of(queue)
        found = broker.query_consumer_offset(self.group, queue.topic, queue.queue_id)
        # The end is read after the progress: what was stored and consumed between is no error.
        end = broker.max_offset(queue.topic, queue.queue_id)
        if found.offset is None or found.offset <= end:
            return
        past = end_past_progress(store, queue, found.offset, min(offset, end))
        if past is not None and past.generation == found.generation:  # else the next commit tells
            store.correct_offset(queue, past._replace(progress=found.offset))

    def persist_consumer_offset(self) -> None:
        """Commit the progress that was noted."""
        if self._state is ServiceState.RUNNING:
            with self._moving:
                queues = {*self.rebalance.process_queues, *self._noted}
                fetched = frozenset(self._fetched)
            store = self._remote_offset_store
            if store is None:
                self.offset_store.persist_all(queues)
            else:  # what the program read is kept, so that a later move shows
                store.persist_all(queues, kept=fetched)

    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Have ``update_consume_offset`` refuse offsets from before the move."""
        with self._moving:
            self._take_note(moved)

    def _take_note(self, moved: Mapping[MessageQueue, int | None]) -> None:
        super().progress_moved(moved)
        ours = self._noted | self._fetched
        self._moved.update({queue: offset for queue, offset in moved.items() if queue in ours})

    def reset_offset(self, offsets: Mapping[MessageQueue, int]) -> None:
        """See ConsumerInner. The timer's thread asks the broker, or writes the progress of a
        broadcast."""
        store = self._remote_offset_store
        if store is not None:
            task = partial(self._noticed, store, dict(offsets))
        elif self._config.message_model is MessageModel.BROADCASTING:
            task = partial(self.progress_moved, dict(offsets))
        else:
            super().progress_moved(offsets)
            return
        self.instance.pull_service.execute_task_later(task, 0)

    def _noticed(self, store: RemoteBrokerOffsetStore, offsets: Mapping[MessageQueue, int]) -> None:
        """Take note of what was moved; a notice may come after the move was read.

        Under the lock, as a correction of this consumer would look like a move while it is made.
        """
        with self._moving:
            ours = self._noted | self._fetched
            self._take_note(
                {q: offset for q, offset in offsets.items() if q in ours and store.is_moved(q)}
            )

    def after_fork(self) -> None:
        """See Consumer.after_fork."""
        super().after_fork()
        self._moving = threading.Lock()

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
