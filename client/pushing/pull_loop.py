"""Pulling the queues of a push consumer (DefaultMQPushConsumerImpl.pullMessage of 4.9).

A pull request comes in, is checked, becomes a pull at the broker, and goes back into the pull
service when the answer is there: at once if the broker has something, from the broker's own thread
if the pull was held. Only a dropped process queue ends the circle.

A queue with a backlog is pulled a few times before what came goes on: as one run of the process
queue and one job of the listener's threads, which costs as much for 512 messages as for 32.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ResponseCode
from broker.port.reading import PullRequest as PullMessage, PullResult, PullStatus
from client.consuming.process_queue import run_of
from client.errors import UNANSWERED, ClientError
from client.runtime.service_state import ServiceState
from client.subscribing.pull_result import messages_of
from storage.model import RETRY_GROUP_TOPIC_PREFIX
from storage.results import MOST_BYTES_TOGETHER

from .delivery import Delivery

if TYPE_CHECKING:
    from broker.port.members import SubscriptionData
    from broker.port.reading import Rest
    from client.consuming.process_queue import ProcessQueue
    from client.runtime.pull_service import PullRequest
    from storage.model import MessageExt

    from .push_consumer import PushConsumer

logger = logging.getLogger("rmqctl.client.pull")

FLOW_CONTROL_DELAY_MS: Final = 50
BROKER_FLOW_CONTROL_DELAY_MS: Final = 20
SUSPENDED_DELAY_MS: Final = 1_000
OFFSET_ILLEGAL_DELAY_MS: Final = 10_000
_LOG_EACH: Final = 1_000
_MIB_SHIFT: Final = 20
_new: Final = tuple.__new__
_MOST_PULLS: Final = 16
"""How often a queue with a backlog is pulled before what came is handed on, at most: as much as
WorkerPool has a thread do in one turn, and half of what a queue may hold."""


class PullLoop:
    """Pulls for one consumer. Its methods are called from the pull thread and from brokers'."""

    def __init__(self, consumer: PushConsumer) -> None:
        self._consumer = consumer
        self._instance = consumer.instance
        self._clock = consumer.instance.clock
        self._service = consumer.instance.pull_service
        # Thresholds for one queue; thresholds for topics change them with each rebalance.
        self.pull_threshold_for_queue = consumer.config.pull_threshold_for_queue
        self.pull_threshold_size_for_queue = consumer.config.pull_threshold_size_for_queue
        self.flow_control_times = 0
        """How often a pull was put off because too much is in work."""

    def divide_thresholds(self, queues: int) -> None:
        """Share the thresholds for topics among all queues of the consumer
        (RebalancePushImpl.messageQueueChanged)."""
        config = self._consumer.config
        if queues and config.pull_threshold_for_topic != -1:
            self.pull_threshold_for_queue = max(1, config.pull_threshold_for_topic // queues)
        if queues and config.pull_threshold_size_for_topic != -1:
            share = config.pull_threshold_size_for_topic // queues
            self.pull_threshold_size_for_queue = max(1, share)

    def pull_message(self, request: PullRequest) -> None:
        """Pull once, or put it off; see Pulling.pull_message."""
        process_queue = request.process_queue
        if process_queue.dropped:
            logger.info("a dropped queue is pulled no more: %s", request)
            return
        process_queue.last_pull_timestamp = now_ms = self._clock.now_ms()
        try:
            self._pull_now_or_later(request, now_ms)
        except Exception:
            # An offset store of the user's own may raise anything. RocketMQ loses the request, and
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

        def answer(result: PullResult | Exception) -> Rest | None:
            try:
                if not isinstance(result, Exception):
                    return self._answered(request, subscription, begin_ms, wire, result)
                self._failed(request, result)
            except Exception:
                logger.exception("a pull's answer could not be used: %s", request)
                self._failed(request, None)
            return None

        try:
            broker = self._instance.routes.broker(request.message_queue.broker_name)
            broker.pull_async(wire, answer)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            self._failed(request, error)

    def _why_not_now(self, request: PullRequest) -> int | None:
        """Say for how long a pull must wait; None: it may be done now."""
        consumer, process_queue = self._consumer, request.process_queue
        if consumer.state is not ServiceState.RUNNING:
            return self._exception_delay_ms
        if consumer.paused:
            return SUSPENDED_DELAY_MS
        if self._too_much(process_queue) is not None:
            consumer.consume_service.settle(process_queue, request.message_queue)
            too_much = self._too_much(process_queue)
            if too_much is not None:
                return self._flow_control(request, too_much)
        return self._why_not_orderly(request) if consumer.orderly else None

    def _too_much(self, process_queue: ProcessQueue) -> str | None:
        """Say what of a queue's messages in work exceeds its threshold."""
        count, size = process_queue.msg_count, process_queue.msg_size >> _MIB_SHIFT
        if count > self.pull_threshold_for_queue or size > self.pull_threshold_size_for_queue:
            return f"count={count} mib={size}"
        if count and not self._consumer.orderly:
            span = process_queue.get_max_span()
            if span > self._consumer.config.consume_concurrently_max_span:
                return f"span={span} count={count}"
        return None

    def _why_not_orderly(self, request: PullRequest) -> int | None:
        if not request.process_queue.locked:
            logger.info("a queue is not locked at its broker: %s", request)
            return self._exception_delay_ms
        if not request.previously_locked:
            # Whoever had the queue before may have gone on after our offset was asked for.
            try:
                offset = self._consumer.rules.compute_pull_from_where(request.message_queue)
            except (*UNANSWERED, ClientError, BrokerError) as error:
                logger.warning("no first offset: %s: %s", request, error)
                return self._exception_delay_ms
            logger.info("first pull under the lock: %s from=%d", request, offset)
            request.previously_locked = True
            request.next_offset = offset
        return None

    def _flow_control(self, request: PullRequest, too_much: str) -> int:
        if self.flow_control_times % _LOG_EACH == 0:
            logger.warning(
                "too much in work, pulling pauses: %s times=%d %s",
                too_much,
                self.flow_control_times,
                request,
            )
        self.flow_control_times += 1
        return FLOW_CONTROL_DELAY_MS

    def _wire(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        behind: int | None = None,
        pulls: int = 1,
    ) -> PullMessage:
        """Make the request to the broker (PullAPIWrapper.pullKernelImpl).

        ``behind``: more at once, from this offset on; it waits for nothing, and has no progress to
        tell that the one before has not told.
        """
        consumer, queue = self._consumer, request.message_queue
        config = consumer.config
        return _new(
            PullMessage,
            (
                consumer.group,
                queue.topic,
                queue.queue_id,
                request.next_offset if behind is None else behind,
                config.pull_batch_size,
                subscription.sub_string if config.post_subscription_when_pull else None,
                subscription.expression_type,
                config.broker_suspend_max_time_ms if behind is None else 0,
                consumer.offset_store.pull_commit(queue) if behind is None else None,
                subscription.sub_version,
                self._instance.client_id,
                pulls,
            ),
        )

    def _answered(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        begin_ms: int,
        wire: PullMessage,
        result: PullResult,
    ) -> Rest | None:
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
    ) -> Rest | None:
        consumer, queue = self._consumer, request.message_queue
        previous_offset = request.next_offset
        hooks = consumer.filter_message_hooks
        messages = tuple(messages_of(result, subscription, consumer.group, queue, hooks))
        if not messages:
            request.next_offset = result.next_begin_offset
            self._count(request, self._clock.now_ms() - begin_ms, 0)
            self._service.execute_pull_request_immediately(request)
            return None
        first_offset = messages[0].queue_offset
        process_queue = request.process_queue
        pulls, is_pulling = 1, self._service.is_pulling
        size, found = 0, messages
        while is_pulling and pulls < _MOST_PULLS:
            run = run_of(found, found[0].queue_offset - 1)
            if run is None:
                break  # a hook has put them in another order
            size += run[1]
            allowed = min(self._allowed(process_queue, messages, size), _MOST_PULLS - pulls)
            more = self._more(request, subscription, wire, result, allowed) if allowed else None
            if more is None:
                break
            result, found = more
            messages += found
            pulls += -(-len(result.messages) // wire.max_msg_nums)
        took_ms = self._clock.now_ms() - begin_ms
        dispatch = process_queue.put_message(messages, result.max_offset)
        # Only now: what can not be used, or put, is pulled again and not passed over.
        request.next_offset = result.next_begin_offset
        lent = consumer.consume_service.submit(
            messages,
            process_queue,
            queue,
            dispatch,
            more_follows=is_pulling,
            may_lend=not is_pulling,
        )
        went_back = min(result.next_begin_offset, first_offset) < previous_offset

        def go_on() -> None:  # behind what a listener waits for
            try:
                self._count(request, took_ms, len(messages), pulls)
                if went_back:
                    logger.warning("BUG: a pull went back behind %d: %s", previous_offset, request)
                interval_ms = consumer.config.pull_interval_ms
                if interval_ms > 0:
                    self._service.execute_pull_request_later(request, interval_ms)
                else:
                    self._service.execute_pull_request_immediately(request)
            except Exception:
                logger.exception("a queue could not be pulled again: %s", request)
                self._failed(request, None)

        if lent is not None:
            return Delivery(lent, go_on)
        go_on()
        return None

    def _allowed(
        self, process_queue: ProcessQueue, messages: tuple[MessageExt, ...], size: int
    ) -> int:
        """How often a queue with a backlog may be pulled further before its messages are put, which
        have bodies of ``size`` bytes.

        That is where nobody sees a difference: ``_why_not_now`` would let it be pulled if they had
        been put, and requests to the listener end where a pull ends.
        """
        consumer = self._consumer
        config = consumer.config
        if (
            consumer.orderly
            or consumer.paused
            or config.pull_interval_ms > 0
            or config.pull_batch_size % config.consume_message_batch_max_size
            or process_queue.dropped
        ):
            return 0
        first = process_queue.first_offset()
        if first is None:
            first = messages[0].queue_offset
        room = min(
            self.pull_threshold_for_queue - process_queue.msg_count - len(messages),
            config.consume_concurrently_max_span - messages[-1].queue_offset + first,
        )
        most = (self.pull_threshold_size_for_queue + 1) << _MIB_SHIFT
        spare = most - process_queue.msg_size - size  # bytes, to where pulling pauses
        if room < 0 or spare <= 0:
            return 0
        if spare <= MOST_BYTES_TOGETHER or consumer.filter_message_hooks:  # they see each pull
            return 1
        return 1 + room // config.pull_batch_size

    def _more(
        self,
        request: PullRequest,
        subscription: SubscriptionData,
        wire: PullMessage,
        result: PullResult,
        pulls: int,
    ) -> tuple[PullResult, tuple[MessageExt, ...]] | None:
        """Pull further, behind a result; None if nothing comes that could be handed on.

        Whatever it was instead comes again with the next pull, and is acted on then.
        """
        if (
            len(result.messages) % wire.max_msg_nums
            or result.next_begin_offset >= result.max_offset
        ):
            return None
        answers: list[PullResult | Exception] = []
        wire = self._wire(request, subscription, result.next_begin_offset, pulls)
        consumer, queue = self._consumer, request.message_queue
        try:
            self._instance.routes.broker(queue.broker_name).pull_async(wire, answers.append)
            for answer in answers:
                if isinstance(answer, PullResult) and answer.pull_status is PullStatus.FOUND:
                    hooks = consumer.filter_message_hooks
                    found = messages_of(answer, subscription, consumer.group, queue, hooks)
                    return (answer, tuple(found)) if found else None
        except (*UNANSWERED, ClientError, BrokerError) as error:
            logger.debug("a queue is not pulled further: %s: %s", request, error)
        except Exception:
            logger.exception("a queue could not be pulled further: %s", request)
        return None

    def _count(self, request: PullRequest, took_ms: int, messages: int, pulls: int = 1) -> None:
        stats = self._instance.consumer_stats
        stats.pull_rt.add_value(request.stats_key, took_ms, pulls)
        if messages:
            stats.pull_tps.add_value(request.stats_key, messages, pulls)

    def _correct_tags_offset(self, request: PullRequest) -> None:
        """Let progress follow what was only looked at, if nothing is in work.

        Not if the queue was dropped while the pull was held: somebody may have moved its progress
        back. Whoever drops a queue holds ``settling`` for it (RocketMQ asks nothing here).
        """
        process_queue = request.process_queue
        with process_queue.settling:
            if process_queue.msg_count == 0 and not process_queue.dropped:
                self._consumer.offset_store.update_offset(
                    request.message_queue, request.next_offset, increase_only=True
                )

    def _offset_illegal(self, request: PullRequest, result: PullResult) -> None:
        """Give up the queue; in 10 s its progress is put right, and a rebalance takes it again."""
        logger.warning("the offset is outside of the queue: %s %s", request, result.get_status)
        request.next_offset = result.next_begin_offset
        request.process_queue.offset_illegal = True
        request.process_queue.dropped = True
        self._service.execute_task_later(
            lambda: self._consumer.rules.repair_offset(request), OFFSET_ILLEGAL_DELAY_MS
        )

    def _failed(self, request: PullRequest, error: Exception | None) -> None:
        topic = request.message_queue.topic
        if error is not None and not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            logger.warning("a pull failed: %s: %s", request, error)
        busy = isinstance(error, BrokerError) and error.code is ResponseCode.FLOW_CONTROL
        delay_ms = BROKER_FLOW_CONTROL_DELAY_MS if busy else self._exception_delay_ms
        self._service.execute_pull_request_later(request, delay_ms)

    @property
    def _exception_delay_ms(self) -> int:
        return self._instance.config.pull_time_delay_mills_when_exception
