"""Pulling the queues of a push consumer (DefaultMQPushConsumerImpl.pullMessage of 4.9).

A pull request is checked, becomes a pull at the broker, and goes back into the pull service with
the answer: at once if the broker has something, from the broker's own thread if the pull was held.
Only a dropped process queue ends the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from broker.api.pull import PullRequest as PullMessage, PullResult, PullStatus
from broker.errors import BrokerError, ResponseCode
from client.consumer.pull_result import messages_of, rows_of
from client.consumer.subscription import selects_alike
from client.errors import UNANSWERED, ClientError
from client.offset_store.offset_store import end_past_progress
from client.runtime.service_state import ServiceState
from storage.format.message import RETRY_GROUP_TOPIC_PREFIX
from storage.read.message_rows import offset_at
from storage.results import MOST_BYTES_TOGETHER

from .prefetch import Backlog

if TYPE_CHECKING:
    from broker.api.members import SubscriptionData
    from broker.api.pull import Handoff
    from client.listener.process_queue import Messages, ProcessQueue
    from client.listener.worker_pool import BorrowedWorker
    from client.runtime.pull_service import PullRequest

    from .push_consumer import PushConsumer


logger = logging.getLogger("rmqctl.client.pull")

BROKER_FLOW_CONTROL_DELAY_MS: Final = 20
SUSPENDED_DELAY_MS: Final = 1_000
OFFSET_ILLEGAL_DELAY_MS: Final = 10_000
FLOW_CONTROL_DELAY_MS: Final = 50
_LOG_EACH: Final = 1_000
_MIB_SHIFT: Final = 20


class FlowControl:
    """The thresholds of one consumer, for each of its queues.

    A rebalance changes them by the thresholds for topics. ``times`` counts the pulls that were put
    off because too much is in work.
    """

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer
        self.pull_threshold_for_queue = consumer.config.pull_threshold_for_queue
        self.pull_threshold_size_for_queue = consumer.config.pull_threshold_size_for_queue
        self.times = 0

    def divide_thresholds(self, queues: int) -> None:
        """Divide the thresholds for topics among all queues of the consumer
        (RebalancePushImpl.messageQueueChanged)."""
        config = self._consumer.config
        if queues and config.pull_threshold_for_topic != -1:
            self.pull_threshold_for_queue = max(1, config.pull_threshold_for_topic // queues)
        if queues and config.pull_threshold_size_for_topic != -1:
            share = config.pull_threshold_size_for_topic // queues
            self.pull_threshold_size_for_queue = max(1, share)

    def too_much(self, process_queue: ProcessQueue) -> str | None:
        """Name the threshold that a queue's messages in work exceed; None: it may be pulled."""
        count, size = process_queue.msg_count, process_queue.msg_size >> _MIB_SHIFT
        if count > self.pull_threshold_for_queue or size > self.pull_threshold_size_for_queue:
            return f"count={count} mib={size}"
        if count and not self._consumer.orderly:
            span = process_queue.get_max_span()
            if span > self._consumer.config.consume_concurrently_max_span:
                return f"span={span} count={count}"
        return None

    def pulls_at_once(self, process_queue: ProcessQueue) -> int:
        """How often in a row a queue may be pulled for which ``too_much`` names nothing; each pull
        brings messages that follow each other."""
        config = self._consumer.config
        room = min(
            self.pull_threshold_for_queue - process_queue.msg_count,
            config.consume_concurrently_max_span - process_queue.get_max_span(),
        )
        most = (self.pull_threshold_size_for_queue + 1) << _MIB_SHIFT
        spare = most - process_queue.msg_size  # bytes
        return 1 if spare <= MOST_BYTES_TOGETHER else 1 + room // config.pull_batch_size

    def pulls_ahead(self, process_queue: ProcessQueue, messages: Messages, size: int) -> int:
        """How often ``too_much`` would let a queue be pulled further if ``messages`` had been put,
        with bodies of ``size`` bytes, and all that these pulls may bring.

        For concurrent consumption, and pulls whose messages follow each other.
        """
        config = self._consumer.config
        first = process_queue.first_offset()
        if first is None:
            first = messages[0].queue_offset
        room = min(
            self.pull_threshold_for_queue - process_queue.msg_count - len(messages),
            config.consume_concurrently_max_span - messages[-1].queue_offset + first,
        )
        most = (self.pull_threshold_size_for_queue + 1) << _MIB_SHIFT
        spare = most - process_queue.msg_size - size  # bytes
        if room < 0 or spare <= 0:
            return 0
        return 1 if spare <= MOST_BYTES_TOGETHER else 1 + room // config.pull_batch_size

    def pause(self, request: PullRequest, too_much: str) -> int:
        """Note that a pull is put off; gives the pause in ms."""
        if self.times % _LOG_EACH == 0:
            logger.warning(
                "too much in work, pulling pauses: %s times=%d %s", too_much, self.times, request
            )
        self.times += 1
        return FLOW_CONTROL_DELAY_MS


class ListenerHandoff:
    """A job that the broker's thread may do itself (a Handoff, see PullApi.pull_async).

    ``go_on`` is called once: when the job is done, when it is left to another thread, or when it
    takes too long for a queue that is not pulled meanwhile.
    """

    __slots__ = ("_borrowed", "_go_on")

    def __init__(self, borrowed: BorrowedWorker, go_on: Callable[[], object]) -> None:
        self._borrowed = borrowed
        self._go_on: Iterator[Callable[[], object]] = iter((go_on,))  # a step of it is atomic

    def __call__(self) -> None:
        """See Handoff."""
        self._borrowed.work()
        self.late()

    def late(self) -> None:
        """See Handoff."""
        for go_on in self._go_on:
            go_on()

    def leave(self) -> None:
        """See Handoff."""
        self._borrowed.leave()
        self.late()


class PullLoop:
    """Pulls for one consumer. Its methods are called from the pull thread and from brokers'."""

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer
        self._instance = consumer.instance
        self._clock = consumer.instance.clock
        self._service = consumer.instance.pull_service
        self.flow_control: Final = FlowControl(consumer)
        self._backlog = Backlog(consumer, self.flow_control)

    def pull_message(self, request: PullRequest) -> None:
        """Pull once, or put it off; see Pulling.pull_message."""
        process_queue = request.process_queue
        if process_queue.dropped:
            logger.info("a dropped queue is pulled no more: %s", request)
            return
        process_queue.last_pull_timestamp = now_ms = self._clock.now_ms()
        try:
            self._pull_now_or_later(request, now_ms)
        except (Exception, SystemExit):
            # An offset store of the user's own may raise any error. RocketMQ loses the request, and
            # the queue stands still for 120 s.
            logger.exception("a pull failed: %s", request)
            self._failed(request, None)

    def _pull_now_or_later(self, request: PullRequest, begin_ms: int) -> None:
        process_queue = request.process_queue
        if process_queue.finished:
            service = self._consumer.consume_service
            service.settle(process_queue, request.message_queue, begin_ms)
        delay_ms = self._why_not_now(request)
        if delay_ms is not None:
            self._service.execute_pull_request_later(request, delay_ms)
            return
        subscription = self._consumer.announced(request.message_queue.topic)
        if subscription is None:
            self._failed(request, None)
            return

        wire = self._wire(request, subscription)

        def answer(result: PullResult | Exception) -> Handoff | None:
            try:
                if not isinstance(result, Exception):
                    return self._answered(request, subscription, begin_ms, wire, result)
                self._failed(request, result)
            except (Exception, SystemExit):
                logger.exception("a pull's answer could not be used: %s", request)
                self._failed(request, None)
            return None

        try:
            broker = self._instance.routes.broker(request.message_queue.broker_name)
            broker.pull_async(wire, answer)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            self._failed(request, error)

    def _why_not_now(self, request: PullRequest) -> int | None:
        """Give for how long a pull must wait; None: it may be done now."""
        consumer, process_queue = self._consumer, request.process_queue
        if consumer.state is not ServiceState.RUNNING:
            return self._exception_delay_ms
        if consumer.paused:
            return SUSPENDED_DELAY_MS
        flow_control = self.flow_control
        if flow_control.too_much(process_queue) is not None:
            consumer.consume_service.settle(process_queue, request.message_queue)
            too_much = flow_control.too_much(process_queue)
            if too_much is not None:
                return flow_control.pause(request, too_much)
        return self._why_not_orderly(request) if consumer.orderly else None

    def _why_not_orderly(self, request: PullRequest) -> int | None:
        if not request.process_queue.locked:
            logger.info("a queue is not locked at its broker: %s", request)
            return self._exception_delay_ms
        if not request.previously_locked:
            # The previous owner of the queue may have gone on after our offset was read.
            try:
                offset = self._consumer.rules.compute_pull_from_where(request.message_queue)
            except (*UNANSWERED, ClientError, BrokerError) as error:
                logger.warning("no first offset: %s: %s", request, error)
                return self._exception_delay_ms
            logger.info("first pull under the lock: %s from=%d", request, offset)
            request.previously_locked = True
            request.next_offset = offset
        return None

    def _wire(self, request: PullRequest, subscription: SubscriptionData) -> PullMessage:
        """Make the request to the broker (PullAPIWrapper.pullKernelImpl)."""
        consumer, queue = self._consumer, request.message_queue
        config = consumer.config
        fields, pulls = consumer.fields_to_pull(queue.topic), 1
        if fields is not None:
            pulls = self._backlog.pulls_at_once(request.process_queue)
        return PullMessage(
            consumer.group,
            queue.topic,
            queue.queue_id,
            request.next_offset,
            config.pull_batch_size,
            subscription.sub_string if config.post_subscription_when_pull else None,
            subscription.expression_type,
            config.broker_suspend_max_time_ms,
            consumer.offset_store.pull_commit(queue),
            subscription.sub_version,
            self._instance.client_id,
            pulls,
            fields,
        )

    def _answered(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        begin_ms: int,
        wire: PullMessage,
        result: PullResult,
    ) -> Handoff | None:
        now = self._consumer.announced(request.message_queue.topic)
        if not selects_alike(subscription, now):
            # It passes what only the new one names (RocketMQ uses it all the same).
            self._service.execute_pull_request_immediately(request)
            return None
        status = result.pull_status
        if status is PullStatus.FOUND:
            return self._found(request, subscription, begin_ms, wire, result)
        if status is PullStatus.OFFSET_ILLEGAL:
            self._offset_illegal(request, result)
        else:
            request.next_offset = result.next_begin_offset
            self._correct_tags_offset(request)
            self._service.execute_pull_request_immediately(request)
        return None

    def _found(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        begin_ms: int,
        wire: PullMessage,
        result: PullResult,
    ) -> Handoff | None:
        consumer, queue = self._consumer, request.message_queue
        previous_offset = request.next_offset
        hooks = consumer.filter_message_hooks
        messages: Messages | None = rows_of(result)
        if messages is None:
            messages = tuple(messages_of(result, subscription, consumer.group, queue, hooks))
        if not messages:
            request.next_offset = result.next_begin_offset
            self._count(request, self._clock.now_ms() - begin_ms, 0)
            self._service.execute_pull_request_immediately(request)
            return None
        first_offset = offset_at(messages, 0)
        process_queue = request.process_queue
        pulls = max(1, -(-len(messages) // wire.max_msg_nums))
        is_pulling = self._service.is_pulling
        if is_pulling and isinstance(messages, tuple):
            result, messages, pulls = self._backlog.pull_more(
                request, subscription, wire, result, messages, pulls
            )
        took_ms = self._clock.now_ms() - begin_ms
        dispatch = process_queue.put_message(messages, result.max_offset)
        # Only now: a result that cannot be used, or put, is pulled again and not skipped.
        request.next_offset = result.next_begin_offset
        borrowed = consumer.consume_service.submit(
            messages,
            process_queue,
            queue,
            dispatch,
            more_follows=is_pulling,
            may_borrow=not is_pulling,
        )
        went_back = min(result.next_begin_offset, first_offset) < previous_offset

        def go_on() -> None:  # after the listener's messages are handed over
            try:
                self._count(request, took_ms, len(messages), pulls)
                if went_back:
                    logger.warning("BUG: a pull went back before %d: %s", previous_offset, request)
                interval_ms = consumer.config.pull_interval_ms
                if interval_ms > 0:
                    self._service.execute_pull_request_later(request, interval_ms)
                else:
                    self._service.execute_pull_request_immediately(request)
            except (Exception, SystemExit):
                logger.exception("a queue could not be pulled again: %s", request)
                self._failed(request, None)

        if borrowed is not None:
            return ListenerHandoff(borrowed, go_on)
        go_on()
        return None

    def _count(self, request: PullRequest, took_ms: int, messages: int, pulls: int = 1) -> None:
        stats = self._instance.consumer_stats
        stats.pull_rt.add_value(request.stats_key, took_ms, pulls)
        if messages:
            stats.pull_tps.add_value(request.stats_key, messages, pulls)

    def _correct_tags_offset(self, request: PullRequest) -> None:
        """Move progress past messages that were only read, if nothing is in work.

        Not if the queue was dropped while the pull was held: its progress may have been moved back.
        A thread that drops a queue holds ``ack_collector`` for it (RocketMQ has no such check).
        """
        process_queue = request.process_queue
        with process_queue.ack_collector:
            if process_queue.msg_count == 0 and not process_queue.dropped:
                self._consumer.offset_store.update_offset(
                    request.message_queue, request.next_offset, increase_only=True
                )

    def _offset_illegal(self, request: PullRequest, result: PullResult) -> None:
        """Give up the queue; in 10 s its progress is repaired, and a rebalance takes it again."""
        logger.warning("the offset is outside of the queue: %s %s", request, result.get_status)
        offset_store, queue = self._consumer.offset_store, request.message_queue
        following = result.next_begin_offset
        end = end_past_progress(offset_store, queue, request.next_offset, following)
        request.next_offset = following
        request.process_queue.offset_illegal = True
        request.process_queue.dropped = True
        self._service.execute_task_later(
            lambda: self._consumer.rules.repair_offset(request, end), OFFSET_ILLEGAL_DELAY_MS
        )

    def _failed(self, request: PullRequest, error: Exception | None) -> None:
        topic = request.message_queue.topic
        if error is not None and not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            # A pull that was under way when the consumer left its group is refused, as it should.
            ending = self._consumer.state is not ServiceState.RUNNING
            level = logging.DEBUG if ending else logging.WARNING
            logger.log(level, "a pull failed: %s: %s", request, error)
        busy = isinstance(error, BrokerError) and error.code is ResponseCode.FLOW_CONTROL
        delay_ms = BROKER_FLOW_CONTROL_DELAY_MS if busy else self._exception_delay_ms
        self._service.execute_pull_request_later(request, delay_ms)

    @property
    def _exception_delay_ms(self) -> int:
        return self._instance.config.pull_time_delay_mills_when_exception
