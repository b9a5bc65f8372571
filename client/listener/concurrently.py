"""Consuming in many threads, in any order (ConsumeMessageConcurrentlyService of 4.9).

A pull is split into requests of ``consume_message_batch_max_size`` messages. The listener's answer
to a request decides:

    CONSUME_SUCCESS               finished
    RECONSUME_LATER, None, error  sent back to the broker, then finished: its retry is a new message
    sending back fails            reconsume_times + 1, again in 5 s; progress waits for it

Finished messages leave the process queue, whose smallest remaining offset is the progress.

They do so in batches. A request that succeeded quickly is only noted (``pulled.WorkerAcks``), and
``settle`` turns all of them into progress at once: when a thread runs out of work, after some
pulls, and before each use of the progress (ConsumeService.settle). So the batches change no number
that is visible. A request that took longer, or was no plain success, is turned into progress when
it ends.

Locks, in their order: WatchedRequest.lock > ProcessQueue.ack_collector > those inside
ProcessQueue and the offset store. Listeners and hooks run under none of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.failure_reason import text_of
from broker.api.members import ConsumeDirectlyResult, ConsumeDirectlyStatus, MessageModel
from client.timing import SYSTEM_CLOCK, seconds_of
from storage.format.message import MessageExt, MessageQueue, retry_topic
from storage.read.message_rows import MessageRows

from .ack_collector import AckCollector
from .consume_hooks import call_after, call_before, return_type
from .listener import (
    ACK_ALL,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    concurrent_function,
    wrong_ack_index,
)
from .listener_loop import ListenerLoop
from .pull_batch import PullBatch, WorkerAcks
from .send_back_batcher import FailedMessages, PendingSendBacks, SendBackBatcher
from .service import reset_retry_topic, thread_name
from .timer import ConsumeTimer, WatchedRequest
from .unreadable_bodies import checked
from .worker_pool import WorkerPool

if TYPE_CHECKING:
    from client.hooks import ConsumeMessageContext, ConsumeMessageHook

    from .listener import AnyConcurrentListener
    from .process_queue import Messages, ProcessQueue
    from .service import ConsumerContext
    from .worker_pool import BorrowedWorker

logger = logging.getLogger("rmqctl.client.consume")

RESUBMIT_DELAY_MS: Final = 5_000
"""When messages that could not be sent back, or not be submitted, are consumed again."""
EXPIRED_DELAY_LEVEL: Final = 3
"""Level (10 s) at which messages come back that were in a listener for too long."""

_MAX_UNSETTLED: Final = 64  # finished pulls that are not yet progress
_MS_PER_MINUTE: Final = 60_000
_LARGE_BLOCK: Final = 4 << 20  # bytes; more than a turn of WorkerPool has of usual messages
_QUICK_MS: Final = 1  # longer requests are turned into progress when they end
_SUCCESS: Final = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
_LATER: Final = ConsumeConcurrentlyStatus.RECONSUME_LATER
_TOO_LONG: Final = "TIME_OUT"


class _Call(NamedTuple):
    """One call of the listener that has ended. ``took`` is in ms."""

    messages: Messages
    context: ConsumeConcurrentlyContext
    status: ConsumeConcurrentlyStatus | None
    error: BaseException | None
    took: int
    hooked: ConsumeMessageContext | None
    watched: WatchedRequest | None


class ConsumeMessageConcurrentlyService:
    """A ConsumeService: see the module."""

    def __init__(self, consumer: ConsumerContext, listener: AnyConcurrentListener) -> None:
        """Consume messages by ``listener``."""
        self._consumer = consumer
        self._listen = concurrent_function(listener)
        self._listen_to_packed = self._listen
        if not consumer.config.deliver_unreadable_bodies:
            self._listen_to_packed = checked(self._listen)
        self._now_ms = consumer.clock.now_ms
        self._seconds = seconds_of(consumer.clock)
        self._clock = None if consumer.clock is SYSTEM_CLOCK else self._seconds
        self._retry_topic = retry_topic(consumer.group)
        self._clustering = consumer.config.message_model is MessageModel.CLUSTERING
        self._ack_collector = AckCollector(consumer)
        group = consumer.group
        self.pool: Final = WorkerPool(
            thread_name("ConsumeMessageThread", group),
            consumer.config.consume_thread_min,
            self._settle_all,
        )
        self._later = consumer.schedulers(thread_name("ConsumeMessageScheduledThread", group))
        self._cleaning = consumer.schedulers(thread_name("CleanExpireMsgScheduledThread", group))
        self._timer = ConsumeTimer(
            consumer.schedulers(thread_name("AckAndResendScheduledThread", group)),
            self._give_back_late,
            self._remove_late,
        )
        self._unsettled: deque[PullBatch] = deque()
        self._send_back_batcher = SendBackBatcher(
            consumer,
            self._later,
            remove=self._ack_collector.remove,
            again_later=self._submit_later,
            settle=self._ack_collector.settle,
            note_progress=self._ack_collector.note,
            count_failed=lambda queue, failed, times: self._ack_collector.count(
                queue, 0, 0, failed, times
            ),
        )

    def start(self) -> None:
        """See ConsumeService.start.

        Freeing a large block once makes the C library keep what a turn of pulling frees, rather
        than return it to the system and request it again each time (malloc's dynamic thresholds).

        The scan for expired messages has the timeout as its period, and the period is read once. So
        a message is sent back between one and two timeouts after it was begun, and changing the
        setting later changes what counts as expired, but not how often the scan runs.
        """
        bytes(_LARGE_BLOCK)
        config = self._consumer.config
        if config.clean_expired_messages:
            period_ms = config.consume_timeout_minutes * _MS_PER_MINUTE
            self._cleaning.call_every(period_ms, period_ms, self.clean_expire_msg)

    def shutdown(self, await_ms: int) -> None:
        """See ConsumeService.shutdown."""
        self._later.shutdown()
        if not self.pool.shutdown(await_ms):
            logger.info("a listener still runs: group=%s", self._consumer.group)
            self._send_back_batcher.give_all_noted()
        self._cleaning.shutdown()
        self._timer.shutdown()
        self._settle_all()

    def submit(
        self,
        messages: Sequence[MessageExt],
        process_queue: ProcessQueue,
        queue: MessageQueue,
        dispatch_to_consume: bool = True,
        *,
        more_follows: bool = False,
        may_borrow: bool = False,
    ) -> BorrowedWorker | None:
        """See ConsumeService.submit; ``dispatch_to_consume`` is ignored here."""
        size = self._consumer.config.consume_message_batch_max_size
        # the same object if it is a tuple, or rows of a table
        own = messages if isinstance(messages, MessageRows) else tuple(messages)
        pulled = PullBatch(own, size, process_queue, queue, self._work_on)
        borrowed = self.pool.lend(pulled) if may_borrow else None
        if borrowed is None and not self.pool.submit(pulled, more_follows=more_follows):
            self._submit_later(own, process_queue, queue)
        return borrowed

    def hand_over(self) -> None:
        """See ConsumeService.hand_over."""
        self.pool.hand_over()

    def _submit_later(
        self, messages: Messages, process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        self._later.call_later(
            RESUBMIT_DELAY_MS, lambda: self.submit(messages, process_queue, queue)
        )

    # -- one request

    def _work_on(self, pulled: PullBatch) -> None:
        """Consume requests of a pull in this thread until none is left to begin."""
        share = WorkerAcks(pulled)
        pulled.process_queue.finished.append(share)
        pending = PendingSendBacks(pulled.process_queue, pulled.queue, share.given)
        try:
            self._run(pulled.requests, pending, share.requests, packed=pulled.packed)
        finally:
            try:
                if pending.calls:
                    self._send_back_batcher.give_noted(pending)
            finally:
                share.ended = True
        self._unsettled.append(pulled)
        if len(self._unsettled) > _MAX_UNSETTLED:
            self._settle_all()

    def _run(
        self,
        requests: Iterator[Messages],
        pending: PendingSendBacks,
        finished: list[Messages],
        watched: WatchedRequest | None = None,
        *,
        packed: bool,
    ) -> None:
        """Consume requests one after the other (ConsumeRequest.run).

        Values that are the same for all of them are read once, and again after anything has
        happened.
        """
        consumer, pool, seconds = self._consumer, self.pool, self._seconds
        process_queue, queue = pending.process_queue, pending.queue
        listen = self._listen_to_packed if packed else self._listen
        calls = ListenerLoop(listen, queue, process_queue, pool, self._clock)
        if queue.topic == self._retry_topic:
            requests = map(self._as_first_sent, requests)
        hooks: Sequence[ConsumeMessageHook] = ()
        watch = special = False
        started, next_ms = 0, 0.0
        look = True  # time has passed: settings and the millisecond may have changed
        while True:
            if look:
                if pool.stopped:
                    return
                if process_queue.dropped:
                    for _ in requests:
                        logger.info("not consumed, the queue is dropped: %s", queue)
                    return
                look = False
                config, hooks = consumer.config, consumer.consume_hooks
                watch = bool(config.resend_after_if_still_un_ack_ms) and self._clustering
                special = bool(hooks) or config.consume_log or watched is not None
                started = self._now_ms()
                next_ms = 0.0 if special else (started + 1) / 1000
            next_requests, hooked = requests, None
            if special or watch:
                messages = next(requests, None)
                if messages is None:
                    return
                if watch and watched is None:
                    self._watch(messages, process_queue, queue)
                    look = True
                    continue
                hooked = call_before(hooks, consumer.group, messages, queue) if hooks else None
                next_requests = iter((messages,))
            ended = calls.run(next_requests, started, next_ms, finished)
            if ended is None:
                return
            messages, context, status, error = ended
            if status is _SUCCESS and context.ack_index is not ACK_ALL:
                error = wrong_ack_index(context)
                status = status if error is None else None
            level = context.delay_level_when_next_consume
            if (
                (status is _LATER or status is None)
                and type(level) is int  # any other value fails alone
                and self._clustering
                and seconds() < next_ms
                and not (process_queue.dropped or pool.stopped)
            ):
                self._log_failure(status, error, queue)
                failure = self._send_back_batcher.failure(error, str(status))
                self._send_back_batcher.note(pending, messages, level, failure)
                continue
            look = True
            if pending.calls:
                self._send_back_batcher.give_noted(pending)
            took = self._now_ms() - started
            if (
                status is _SUCCESS
                and context.ack_index >= len(messages) - 1
                and took <= _QUICK_MS
                and not (special or process_queue.dropped)
            ):
                self._consumer.stats.consume_rt.add_value(
                    self._ack_collector.key(queue), took, times=0
                )
                finished.append(messages)
                continue
            call = _Call(messages, context, status, error, took, hooked, watched)
            self._end(call, process_queue)

    def _as_first_sent(self, messages: Messages) -> Messages:
        reset_retry_topic(messages, self._retry_topic)
        return messages

    def _watch(self, messages: Messages, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        def consume(request: WatchedRequest) -> None:
            pending = PendingSendBacks(process_queue, queue, [])
            self._run(iter((messages,)), pending, [], request, packed=True)

        request = WatchedRequest(messages, process_queue, queue)
        self._timer.run(request, self._consumer.config.resend_after_if_still_un_ack_ms, consume)

    def _end(self, call: _Call, process_queue: ProcessQueue) -> None:
        """Act on the end of a call of the listener, whatever its answer."""
        consumer, queue, status = self._consumer, call.context.message_queue, call.status
        success = status is _SUCCESS
        if not success:
            self._log_failure(status, call.error, queue)
        if call.hooked is not None:
            timed_out = call.took >= consumer.config.consume_timeout_minutes * _MS_PER_MINUTE
            how = return_type(status, call.error, failed=not success, timed_out=timed_out)
            answer = _SUCCESS if success else _LATER
            call_after(consumer.consume_hooks, call.hooked, answer, how, success=success)
        if consumer.config.consume_log:
            ids = [message.msg_id for message in call.messages]
            logger.info("consumed: group=%s status=%s ids=%s", consumer.group, status, ids)
        try:
            if process_queue.dropped:
                logger.info("the result does not count, the queue is dropped: %s", queue)
                self._ack_collector.count(queue, call.took)
            elif call.watched is not None:
                with call.watched.lock:
                    self._process(call, process_queue, call.watched.resent)
                    call.watched.finished = True
            else:
                self._process(call, process_queue)
        except (Exception, SystemExit):
            # The messages stay in the process queue: the next owner of the queue gets them.
            logger.exception("a request failed: group=%s %s", consumer.group, queue)

    def _log_failure(
        self, status: object, error: BaseException | None, queue: MessageQueue
    ) -> None:
        group = self._consumer.group
        if error is not None:
            logger.warning("a listener failed: group=%s %s", group, queue, exc_info=error)
        elif status is not _LATER:
            logger.warning("a listener gave %r, no status: group=%s %s", status, group, queue)

    def _process(
        self, call: _Call, process_queue: ProcessQueue, resent: Collection[int] = ()
    ) -> None:
        """Act on the listener's answer (processConsumeResult).

        ``resent``: offsets that a timer has sent back; their result does not count any more.
        """
        messages, context, status = call.messages, call.context, call.status
        queue, ok = context.message_queue, 0
        if status is _SUCCESS:
            ok = max(0, min(context.ack_index, len(messages) - 1) + 1)
        self._ack_collector.count(queue, call.took, ok, len(messages) - ok)
        failed = [message for message in messages[ok:] if message.queue_offset not in resent]
        kept: Sequence[MessageExt] = ()
        if not self._clustering:
            for message in failed:
                logger.warning("BROADCASTING, consuming failed, dropped: %r", message)
        elif failed:
            answer = f"ack_index={context.ack_index}" if status is _SUCCESS else text_of(status)
            failure = self._send_back_batcher.failure(call.error, answer)
            level = context.delay_level_when_next_consume
            kept = self._send_back_batcher.give(
                FailedMessages(tuple(failed), level, failure), process_queue, queue
            )
        self._ack_collector.remove([m for m in messages if m not in kept], process_queue, queue)
        if failed and self._clustering:
            self._ack_collector.note(process_queue, queue)

    # -- sending back

    def give_back(self) -> None:
        """See ConsumeService.give_back."""
        self._send_back_batcher.give_all_noted()

    def _give_back_late(self, queue: MessageQueue, message: MessageExt) -> None:
        failure = self._send_back_batcher.failure(None, _TOO_LONG)
        self._consumer.send_message_back(message, EXPIRED_DELAY_LEVEL, queue, failure)

    def _remove_late(
        self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue
    ) -> None:
        self._ack_collector.remove(messages, process_queue, queue)
        self._ack_collector.note(process_queue, queue)

    def clean_expire_msg(self) -> None:
        """Send back messages that are in a listener for too long (cleanExpireMsg).

        Weak in known ways, see ProcessQueue.clean_expired_msg; ``resend_after_if_still_un_ack_ms``
        takes its place, but not in a broadcast.
        """
        consumer = self._consumer
        if consumer.config.resend_after_if_still_un_ack_ms and self._clustering:
            return
        timeout_ms = consumer.config.consume_timeout_minutes * _MS_PER_MINUTE
        for queue, process_queue in list(consumer.process_queues.items()):
            try:
                self.settle(process_queue, queue)
            except (Exception, SystemExit):  # a user's own offset store may raise any error
                logger.exception("progress could not be noted: %s", queue)
            process_queue.clean_expired_msg(timeout_ms, partial(self._give_back_late, queue))

    # -- progress

    def settle(
        self, process_queue: ProcessQueue, queue: MessageQueue, pulled_ms: int | None = None
    ) -> None:
        """See ConsumeService.settle."""
        self._ack_collector.settle(process_queue, queue, pulled_ms)

    def _settle_all(self) -> None:
        while True:
            try:
                pulled = self._unsettled.popleft()
            except IndexError:
                return
            self.settle(pulled.process_queue, pulled.queue)

    # -- by hand

    def consume_directly(self, message: MessageExt, broker_name: str) -> ConsumeDirectlyResult:
        """See ConsumeService.consume_directly."""
        reset_retry_topic([message], self._retry_topic)
        queue = MessageQueue(message.topic, broker_name, message.queue_id)
        now_ms = self._consumer.clock.now_ms
        started, remark = now_ms(), ""
        try:
            status = self._listen_to_packed((message,), ConsumeConcurrentlyContext(queue))
            result = _DIRECT.get(status, ConsumeDirectlyStatus.CR_LATER)
        except (Exception, SystemExit) as error:
            logger.exception("a listener failed: %s", queue)
            result = ConsumeDirectlyStatus.CR_THROW_EXCEPTION
            remark = f"{type(error).__name__}: {error}"
        return ConsumeDirectlyResult(False, True, result, remark, now_ms() - started)


_DIRECT: Final = {
    _SUCCESS: ConsumeDirectlyStatus.CR_SUCCESS,
    _LATER: ConsumeDirectlyStatus.CR_LATER,
    None: ConsumeDirectlyStatus.CR_RETURN_NULL,
}
