"""How a push consumer takes queues and gives them up (RebalancePushImpl of 4.9)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.api.members import ConsumeType, MessageModel
from client.consumer.subscription import newer
from client.offset_store.offset_store import compute_pull_from_where, correct_offset

if TYPE_CHECKING:
    from broker.api.offsets import ProgressPastEnd
    from client.listener.process_queue import ProcessQueue
    from client.runtime.pull_service import PullRequest
    from storage.format.message import MessageQueue

    from .push_consumer import PushConsumer

logger = logging.getLogger("rmqctl.client.rebalance")


class RebalancePush:
    """The RebalanceRules of one push consumer, and the other ways in which it drops queues."""

    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer

    def lock(self, queue: MessageQueue) -> bool:
        """See RebalanceRules."""
        return self._consumer.locks.lock(queue)

    def unlock(self, queue: MessageQueue) -> None:
        """See RebalanceRules."""
        self._consumer.locks.unlock(queue)

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """See RebalanceRules."""
        self._consumer.offset_store.remove_offset(queue)

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """See RebalanceRules."""
        consumer = self._consumer
        return compute_pull_from_where(
            consumer.offset_store, consumer.instance.routes, consumer.config, queue
        )

    def drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """See RebalanceRules."""
        self._consumer.consume_service.settle(process_queue, queue)
        _drop(process_queue)

    def remove_unnecessary_message_queue(
        self, queue: MessageQueue, process_queue: ProcessQueue
    ) -> bool:
        """See RebalanceRules. Persists the progress and removes it from memory.

        An orderly queue whose listener is running is not given away. The round that drops it waits,
        a second for all of them (RocketMQ: for each, in each round); a listener that ends later
        asks for a round at once (RocketMQ: in up to 20 s). The lock is refreshed meanwhile. So its
        last progress is the one after the listener's end (RocketMQ: the one before).
        """
        consumer = self._consumer
        if not consumer.orderly or consumer.message_model is not MessageModel.CLUSTERING:
            self._settle_progress(queue)
            return True
        process_queue.try_unlock_times += 1  # first: a listener that ends a moment later checks it
        first = process_queue.try_unlock_times == 1
        seconds = consumer.rebalance.waits_for_work.left() if first else 0
        if not process_queue.consume_lock.acquire(timeout=seconds):
            logger.warning(
                "a queue is in work and cannot be unlocked: %s times=%d",
                queue,
                process_queue.try_unlock_times,
            )
            return False
        try:
            self._settle_progress(queue)
            self._unlock_delayed(queue, process_queue)
        finally:
            process_queue.consume_lock.release()
        return True

    def _settle_progress(self, queue: MessageQueue) -> None:
        self._consumer.offset_store.persist(queue)
        self._consumer.offset_store.remove_offset(queue)

    def _unlock_delayed(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        locks, delay_ms = self._consumer.locks, self._consumer.config.unlock_delay_time_mills
        if delay_ms and process_queue.has_temp_message():
            later = partial(locks.unlock_unless_taken, queue)
            self._consumer.instance.pull_service.execute_task_later(later, delay_ms)
        else:
            locks.unlock(queue)

    def message_queue_changed(
        self, topic: str, all_queues: Sequence[MessageQueue], divided: Sequence[MessageQueue]
    ) -> None:
        """See RebalanceRules. Brokers get it as a new version of the subscription."""
        del all_queues, divided
        consumer = self._consumer
        subscriptions = consumer.rebalance.subscriptions
        if topic in subscriptions:
            subscriptions[topic] = newer(subscriptions[topic], consumer.clock.now_ms())
        consumer.pull_loop.flow_control.divide_thresholds(len(consumer.rebalance.process_queues))
        consumer.announce()

    def dispatch_pull_requests(self, requests: Sequence[PullRequest]) -> None:
        """See RebalanceRules."""
        for request in requests:
            self._consumer.instance.pull_service.execute_pull_request_immediately(request)

    def repair_offset(self, request: PullRequest, end: ProgressPastEnd | None = None) -> None:
        """Repair progress that lay outside of its queue; the next rebalance takes the queue again
        (the task of OFFSET_ILLEGAL in pullMessage).

        ``end`` is given where it lay past the end: that end, and the generation of the progress.
        """
        consumer, queue = self._consumer, request.message_queue
        with consumer.rebalance.lock:
            process_queue = consumer.rebalance.process_queues.get(queue)
            if process_queue is not request.process_queue or not process_queue.offset_illegal:
                return  # given up or moved meanwhile, and its progress with it
            if end is not None and not self._correct(request, end):
                return
            process_queue.offset_illegal = False
            consumer.offset_store.update_offset(queue, request.next_offset, increase_only=False)
            consumer.rebalance.wait_for_work_from_now()
            if self.remove_unnecessary_message_queue(queue, process_queue):
                consumer.rebalance.process_queues.pop(queue, None)
        logger.warning("an offset was put right: %s", request)

    def _correct(self, request: PullRequest, end: ProgressPastEnd) -> bool:
        """Whether the broker put progress past the end right: a commit never lowers it.

        If not, it is tried again. The next pull would find a later end.
        """
        consumer, queue = self._consumer, request.message_queue
        try:
            routes = consumer.instance.routes
            correct_offset(consumer.offset_store, routes, consumer.group, queue, end)
        except (Exception, SystemExit):  # whatever a broker raises: it is asked again
            logger.exception("an offset could not be put right: %s", request)
            delay_ms = consumer.instance.config.pull_time_delay_mills_when_exception
            again = partial(self.repair_offset, request, end)
            consumer.instance.pull_service.execute_task_later(again, delay_ms)
            return False
        return True

    def begin_anew(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Go on from progress that was moved: drop, remove, and rebalance at once
        (MQClientInstance.resetOffset).

        The new progress is at the broker already, so it is read there when the queues are taken
        again. RocketMQ suspends the consumer and waits for 10 s between dropping and going on, for
        running work to end; here its results do not count from this moment on. The rebalance takes
        dropped queues out of the table, or gives them away with their locks. Of a broadcast only
        this consumer has the progress, so it is ``moved`` here.
        """
        consumer, rebalance = self._consumer, self._consumer.rebalance
        with rebalance.lock:
            for queue, offset in moved.items():
                process_queue = rebalance.process_queues.get(queue)
                if process_queue is None:
                    continue
                process_queue.offset_illegal = False
                _drop(process_queue, clear=True)
                try:
                    if offset is not None and consumer.message_model is MessageModel.BROADCASTING:
                        # Giving the queue up stores it.
                        consumer.offset_store.update_offset(queue, offset, increase_only=False)
                    else:
                        consumer.offset_store.remove_offset(queue)
                except (Exception, SystemExit):  # a user's own offset store
                    text = "moved progress cannot be taken over: group=%s queue=%s"
                    logger.exception(text, consumer.group, queue)
                logger.info("progress was moved, beginning anew: %s", queue)
        consumer.instance.rebalance_immediately()


def _drop(process_queue: ProcessQueue, *, clear: bool = False) -> None:
    # A worker that turns results into progress holds ``ack_collector`` from its read of
    # ``dropped``, or of what an orderly listener has finished, until the progress is noted: no
    # progress from before the drop is noted after this.
    with process_queue.ack_collector:
        process_queue.dropped = True
        if clear:
            process_queue.clear()
