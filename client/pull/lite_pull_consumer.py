"""The consumer that is polled (DefaultLitePullConsumer of 4.9)."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.api.members import MessageModel
from broker.api.pull import PullRequest as PullMessage, PullResult, PullStatus
from broker.errors import BrokerError
from client.arguments import check_settings, check_whole, checked_queues
from client.consumer.consumer_config import ConsumerConfig
from client.consumer.pull_result import messages_of
from client.consumer.subscription import (
    ALL_MESSAGES,
    MessageSelector,
    selects_alike,
    subscription_data,
)
from client.errors import UNANSWERED, ClientError, ClientStateError, check_number
from client.listener.process_queue import ProcessQueue
from client.offset_store.offset_store import ReadOffsetType, correct_offset, end_past_progress
from client.runtime.pull_service import PullRequest
from client.runtime.service_state import ServiceState
from storage.config import FROM_ONE
from storage.deadlines import held_within, waitable
from storage.format.shapes import MAX_LONG

from .active_consumer import ActiveConsumer

if TYPE_CHECKING:
    from typing import Unpack

    from broker.api.members import SubscriptionData
    from broker.api.offsets import ProgressPastEnd
    from client.consumer.consumer import ConsumerArguments
    from storage.format.message import MessageExt, MessageQueue

logger = logging.getLogger("rmqctl.client.lite_pull")

FLOW_CONTROL_DELAY_MS: Final = 50
PAUSED_DELAY_MS: Final = 1_000
_MIB_SHIFT: Final = 20
_ROUND_S: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class LitePullConfig(ConsumerConfig):
    """Settings of a LitePullConsumer; those for listeners are ignored."""

    auto_commit: bool = True
    """Whether ``poll`` commits the messages of earlier polls (autoCommit)."""
    auto_commit_interval_ms: int = 5_000
    """How often, at most (autoCommitIntervalMillis)."""
    pull_threshold_for_all: int = 10_000
    """Pulling pauses when more messages of all queues wait to be polled (pullThresholdForAll)."""
    pull_batch_size: int = 10
    broker_suspend_max_time_ms: int = 20_000

    def __post_init__(self) -> None:
        # super() without arguments names the class that slots=True replaces.
        super(LitePullConfig, self).__post_init__()
        inherited = ConsumerConfig.__dataclass_fields__
        own = (field for field in fields(LitePullConfig) if field.name not in inherited)
        check_settings(self, own, _RANGES)


_RANGES: Final = {"auto_commit_interval_ms": (1, MAX_LONG), "pull_threshold_for_all": FROM_ONE}


class LitePullConsumer(ActiveConsumer):
    """Gives messages to callers of ``poll``; a context manager.

        consumer = LitePullConsumer.open("demo-store", "audit")
        consumer.subscribe("OrderEvent")
        with consumer:
            for message in consumer.poll(1_000):
                charge(message.body)

    Either ``subscribe`` topics, whose queues are divided among the members of the group, or
    ``assign`` queues. Messages of a poll count as consumed when the next poll begins; it is
    committed then, or by ``commit``. Poll in one thread.
    """

    default_config = LitePullConfig
    _config: LitePullConfig

    def __init__(self, group: str, **arguments: Unpack[ConsumerArguments]) -> None:
        super().__init__(group, **arguments)
        self._assigned: dict[str, SubscriptionData] | None = None
        self._wanted_queues: tuple[MessageQueue, ...] = ()
        self._arrived = threading.Condition()  # guards the five fields below
        self._waiting: deque[tuple[MessageQueue, ProcessQueue, list[MessageExt]]] = deque()
        self._waiting_count = 0
        self._polled: tuple[MessageQueue, ProcessQueue, list[MessageExt]] | None = None
        self._consumed: dict[MessageQueue, tuple[ProcessQueue, int]] = {}
        self._paused: frozenset[MessageQueue] = frozenset()
        self._next_auto_commit = 0.0

    @property
    def config(self) -> LitePullConfig:
        """The settings."""
        return self._config

    # -- what to consume

    def subscribe(self, topic: str, selector: str | MessageSelector | None = "*") -> None:
        """Subscribe to a topic. Raises ClientStateError after ``assign``."""
        with self._lock:
            if self._assigned is not None:
                raise ClientStateError(
                    f"subscribe and assign are mutually exclusive: consumer {self.group} has "
                    "assigned queues; use another consumer to subscribe"
                )
            self._want(topic, selector)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic; its queues are given up at once, or with a rebalance where one
        takes long."""
        with self._lock:
            super().unsubscribe(topic)
            if self._state is ServiceState.RUNNING:
                with held_within(self.rebalance.lock, _ROUND_S) as alone:
                    if alone:
                        self.rebalance.truncate_message_queue_not_my_topic()

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Consume these queues and no others, whatever other members the group has.

        Raises ClientStateError after ``subscribe``.
        """
        with self._lock:
            if self._subscriptions:
                raise ClientStateError(
                    f"subscribe and assign are mutually exclusive: consumer {self.group} "
                    f"subscribes to {', '.join(sorted(self._subscriptions))}; use another "
                    "consumer to assign queues, or unsubscribe first"
                )
            now_ms = self._manager.clock.now_ms()
            self._wanted_queues = tuple(sorted(set(checked_queues(queues))))
            self._assigned = {
                queue.topic: subscription_data(queue.topic, ALL_MESSAGES, now_ms)
                for queue in self._wanted_queues
            }
            if self._state is ServiceState.RUNNING:
                self._take_assigned()

    def start(self) -> None:
        """See ActiveConsumer.start."""
        super().start()
        with self._lock:
            if self._assigned is not None:
                self._take_assigned()
        self._next_auto_commit = time.monotonic() + self.config.auto_commit_interval_ms / 1000

    def do_rebalance(self) -> None:
        """See ConsumerInner; assigned queues stay."""
        with self.rebalance.lock:
            if self._assigned is None:
                super().do_rebalance()

    def _take_assigned(self) -> None:
        with self.rebalance.lock:
            for queue, process_queue in list(self.rebalance.process_queues.items()):
                if queue not in self._wanted_queues:
                    self.drop(queue, process_queue)
                    self.remove_unnecessary_message_queue(queue, process_queue)
                    del self.rebalance.process_queues[queue]
            for queue in self._wanted_queues:
                if queue not in self.rebalance.process_queues:
                    self._begin(queue, self.compute_pull_from_where(queue))
        self.announce()

    def drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """See RebalanceRules; notes what finished polls gave, if commits are automatic."""
        with self._arrived:
            known, offset = self._consumed.get(queue, (None, 0))
            if self.config.auto_commit and known is process_queue and not process_queue.dropped:
                self.offset_store.update_offset(queue, offset, increase_only=False)
            self._consumed.pop(queue, None)
            super().drop(queue, process_queue)

    def assignment(self) -> list[MessageQueue]:
        """Give the queues that are consumed now, sorted; none before ``start``."""
        if self._state is ServiceState.CREATE_JUST:
            return []
        return self.rebalance.queues()

    # -- polling

    def poll(self, timeout_ms: int = 5_000) -> list[MessageExt]:
        """Give messages of one queue, up to ``pull_batch_size``; empty if none came in time.

        Messages of the previous poll count as consumed from here on. A message whose body cannot be
        decompressed is given like any other: its ``body`` raises BodyError, ``raw_body`` is what is
        stored. Raises ClientStateError.
        """
        self._running()
        check_number("timeout_ms", timeout_ms)
        with self._arrived:
            self._finish_polled()
        if self.config.auto_commit and time.monotonic() >= self._next_auto_commit:
            self._next_auto_commit = time.monotonic() + self.config.auto_commit_interval_ms / 1000
            self.commit()
        deadline = time.monotonic() + timeout_ms / 1000
        with self._arrived:
            while (found := self._next_batch()) is None:
                left = deadline - time.monotonic()
                if left <= 0 or self._state != "RUNNING":
                    return []
                self._arrived.wait(waitable(left))
            self._polled = found
            return list(found[2])

    def _next_batch(self) -> tuple[MessageQueue, ProcessQueue, list[MessageExt]] | None:
        """Take the oldest batch of a queue that this member still has and that is not paused."""
        paused = []
        found = None
        while self._waiting and found is None:
            batch = self._waiting.popleft()
            if not batch[1].dropped and batch[0] in self._paused:
                paused.append(batch)
                continue
            self._waiting_count -= len(batch[2])
            if not batch[1].dropped:
                found = batch
        self._waiting.extendleft(reversed(paused))  # in order, before what came later
        return found

    def _finish_polled(self) -> None:
        polled, self._polled = self._polled, None
        if polled is None:
            return
        queue, process_queue, messages = polled
        offset = process_queue.remove_message(messages)
        if offset is not None and not process_queue.dropped:
            self._consumed[queue] = (process_queue, offset)

    def commit(self) -> None:
        """Commit the messages of earlier polls; at the brokers when this returns, unless they fail.

        A commit never moves progress back: to consume messages again for good, move it.
        """
        self._running()
        with self.rebalance.lock:  # else a queue may restart between the read and the note
            self._note_consumed()
        self.offset_store.persist_all(self.assignment())

    def _note_consumed(self) -> None:
        with self._arrived:
            consumed, self._consumed = self._consumed, {}
        for queue, (process_queue, offset) in consumed.items():
            if not process_queue.dropped:
                self.offset_store.update_offset(queue, offset, increase_only=False)

    def committed(self, queue: MessageQueue) -> int | None:
        """Give the group's progress at the broker; None if there is none.

        Of a broadcast, and where the consumer brought its store along, that of the store. Raises
        the errors of brokers.
        """
        broker = self._broker_of(queue)
        if self._remote_offset_store is not None:
            # Not through the store: that would take over a move before the queue begins anew.
            return broker.query_consumer_offset(self.group, queue.topic, queue.queue_id).offset
        memory = ReadOffsetType.MEMORY_FIRST_THEN_STORE
        return self.offset_store.read_offset(queue, memory)

    def shutdown(self) -> None:
        """Commit the messages of polls before the last one, if that is automatic, and leave."""
        try:
            super().shutdown()
        finally:
            with self._arrived:
                self._arrived.notify_all()

    def _finish_work(self) -> None:
        if self.config.auto_commit:
            with held_within(self.rebalance.lock, _ROUND_S):  # not for a round that does not end
                self._note_consumed()

    def after_fork(self) -> None:
        """See Consumer.after_fork."""
        super().after_fork()
        self._arrived = threading.Condition()

    # -- where to go on

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on from an offset; messages of the queue that wait for a poll are dropped.

        Raises ClientStateError if the queue is not consumed here, or the offset lies outside
        of it.
        """
        check_whole("the offset", offset)
        low, high = self.min_offset(queue), self.max_offset(queue)
        if not low <= offset <= high:
            raise ClientStateError(
                f"offset {offset} is outside of {queue}; seek to one from {low} (the first that is "
                f"there) to {high} (the next to be written)"
            )
        with self.rebalance.lock:
            if queue not in self.rebalance.process_queues:
                raise ClientStateError(f"{queue} is not consumed here; it may be another member's")
            self._begin(queue, offset)

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on from the first message that is there."""
        self.seek(queue, self.min_offset(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on from the next message to be written."""
        self.seek(queue, self.max_offset(queue))

    def pause(self, queues: Collection[MessageQueue]) -> None:
        """Neither pull nor give messages of these queues until ``resume``."""
        chosen = frozenset(checked_queues(queues))
        with self._arrived:
            self._paused |= chosen

    def resume(self, queues: Collection[MessageQueue]) -> None:
        """Go on with queues that were paused, within a second."""
        chosen = frozenset(checked_queues(queues))
        with self._arrived:
            self._paused -= chosen
            self._arrived.notify_all()

    def progress_moved(self, moved: Mapping[MessageQueue, int | None]) -> None:
        """Go on from progress that was moved; RocketMQ's consumer ignores such a move."""
        self.instance.pull_service.execute_task_later(partial(self._begin_anew, dict(moved)), 0)

    def _begin_anew(self, moved: Mapping[MessageQueue, int | None]) -> None:
        with self.rebalance.lock:
            for queue, offset in moved.items():
                old = self.rebalance.process_queues.get(queue)
                if old is None:
                    continue
                super().progress_moved({queue: offset})
                if offset is not None and self._config.message_model is MessageModel.BROADCASTING:
                    self._begin(queue, offset)  # its file may not have that yet
                else:
                    self._go_on_from_progress(queue, old)

    def _go_on_from_progress(self, queue: MessageQueue, old: ProcessQueue) -> None:
        """Begin a queue anew from its progress; if that cannot be read now, later, and the queue
        stands still meanwhile."""
        with self.rebalance.lock:
            if self.rebalance.process_queues.get(queue) is not old:
                return  # given up or begun anew meanwhile
            try:
                offset = self.compute_pull_from_where(queue)
            except (Exception, SystemExit) as error:  # a user's own store
                old.dropped = True  # else a commit of its messages overwrites the move
                unexpected = not isinstance(error, (*UNANSWERED, ClientError, BrokerError))
                text = "moved progress cannot be read: group=%s queue=%s: %s"
                logger.warning(text, self.group, queue, error, exc_info=unexpected)
                delay_ms = self.instance.config.pull_time_delay_mills_when_exception
                again = partial(self._go_on_from_progress, queue, old)
                self.instance.pull_service.execute_task_later(again, delay_ms)
            else:
                self._begin(queue, offset)

    def _begin(self, queue: MessageQueue, offset: int) -> None:
        """Pull a queue from an offset, with none of its messages in memory."""
        known = self.rebalance.process_queues.get(queue)
        if known is not None:
            known.dropped = True
        with self._arrived:
            self._consumed.pop(queue, None)
        process_queue = ProcessQueue(self.instance.clock)
        self.rebalance.process_queues[queue] = process_queue
        request = PullRequest(self.group, queue, process_queue, offset)
        self.instance.pull_service.execute_pull_request_immediately(request)

    # -- pulling

    def dispatch_pull_requests(self, requests: Sequence[PullRequest]) -> None:
        """See RebalanceRules."""
        for request in requests:
            self.instance.pull_service.execute_pull_request_immediately(request)

    def pull_message(self, request: PullRequest) -> None:
        """See Pulling.pull_message."""
        queue, process_queue = request.message_queue, request.process_queue
        if process_queue.dropped:
            return
        process_queue.last_pull_timestamp = self.instance.clock.now_ms()
        service = self.instance.pull_service
        if queue in self._paused:
            service.execute_pull_request_later(request, PAUSED_DELAY_MS)
            return
        if self._too_much(process_queue):
            service.execute_pull_request_later(request, FLOW_CONTROL_DELAY_MS)
            return
        subscription = self._subscription(queue.topic)
        if subscription is None:
            self._later(request, None)
            return
        wire = PullMessage(
            self.group,
            queue.topic,
            queue.queue_id,
            request.next_offset,
            self.config.pull_batch_size,
            subscription.sub_string,
            subscription.expression_type,
            self.config.broker_suspend_max_time_ms,
            sub_version=subscription.sub_version,
            client_id=self.instance.client_id,
        )

        def answer(result: PullResult | Exception) -> None:
            try:
                if isinstance(result, Exception):
                    self._later(request, result)
                else:
                    self._answered(request, subscription, result)
            except Exception:
                logger.exception("a pull's answer could not be used: %s", request)
                self._later(request, None)

        try:
            self.instance.routes.broker(queue.broker_name).pull_async(wire, answer)
        except (*UNANSWERED, ClientError, BrokerError) as error:
            self._later(request, error)

    def _subscription(self, topic: str) -> SubscriptionData | None:
        return (self._assigned or self.rebalance.subscriptions).get(topic)

    def _too_much(self, process_queue: ProcessQueue) -> bool:
        config = self.config
        return (
            self._waiting_count > config.pull_threshold_for_all
            or process_queue.msg_count > config.pull_threshold_for_queue
            or process_queue.msg_size >> _MIB_SHIFT > config.pull_threshold_size_for_queue
            or process_queue.get_max_span() > config.consume_concurrently_max_span
        )

    def _answered(
        self, request: PullRequest, subscription: SubscriptionData, result: PullResult
    ) -> None:
        queue, process_queue = request.message_queue, request.process_queue
        if process_queue.dropped:
            return
        if not selects_alike(subscription, self._subscription(queue.topic)):
            # It passes what only the new one names.
            self.instance.pull_service.execute_pull_request_immediately(request)
            return
        if result.pull_status is PullStatus.OFFSET_ILLEGAL:
            logger.warning("the offset is outside of the queue: %s %s", request, result.get_status)
            if self._repairs_offset(request, result):
                return
        elif result.pull_status is PullStatus.FOUND:
            hooks = self.filter_message_hooks
            messages = messages_of(result, subscription, self.group, queue, hooks)
            if messages:
                process_queue.put_message(messages)
                with self._arrived:
                    self._waiting.append((queue, process_queue, messages))
                    self._waiting_count += len(messages)
                    self._arrived.notify()
        # Only now: a result that cannot be used is pulled again and not skipped.
        request.next_offset = result.next_begin_offset
        self.instance.pull_service.execute_pull_request_immediately(request)

    def _repairs_offset(self, request: PullRequest, result: PullResult) -> bool:
        """Whether progress past the end of the queue is put right now, on the timer's thread.

        A commit never lowers progress, so the broker repairs it. Progress before the first offset
        is right with the next commit.
        """
        queue = request.message_queue
        if self._remote_offset_store is None:
            return False
        following = result.next_begin_offset
        end = end_past_progress(self.offset_store, queue, request.next_offset, following)
        if end is None:
            return False
        service = self.instance.pull_service
        service.execute_task_later(partial(self._repair_offset, request, end), 0)
        return True

    def _repair_offset(self, request: PullRequest, end: ProgressPastEnd) -> None:
        queue = request.message_queue
        try:
            with self.rebalance.lock:
                known = self.rebalance.process_queues.get(queue)
                if known is not request.process_queue or request.process_queue.dropped:
                    return  # given up or moved meanwhile, and its progress with it
                routes = self.instance.routes
                correct_offset(self.offset_store, routes, self.group, queue, end)
                self._begin_anew({queue: None})
            logger.warning("an offset was put right: %s", request)
        except Exception:  # whatever a broker raises: the queue stays, and it is asked again
            # Not by another pull: that would find a later end.
            logger.exception("an offset could not be put right: %s", request)
            delay_ms = self.instance.config.pull_time_delay_mills_when_exception
            again = partial(self._repair_offset, request, end)
            self.instance.pull_service.execute_task_later(again, delay_ms)

    def _later(self, request: PullRequest, error: Exception | None) -> None:
        if error is not None:
            logger.warning("a pull failed: %s: %s", request, error)
        delay_ms = self.instance.config.pull_time_delay_mills_when_exception
        self.instance.pull_service.execute_pull_request_later(request, delay_ms)
