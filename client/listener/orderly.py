"""Consuming each queue in order (ConsumeMessageOrderlyService of 4.9).

A request names a queue and no messages: its task takes them itself, batch after batch, until none
is left, the queue is lost, or a minute is over. The listener's answer decides:

    SUCCESS                            the batch is committed; on with the next
    SUSPEND_..., None, error           the same batch again in a moment, everything after it waits;
                                       a message that failed max_reconsume_times leaves it for the
                                       retry topic, and so the dead letters (by default never)
    COMMIT, ROLLBACK                   only without auto_commit, where SUCCESS commits nothing

Three locks keep the order, taken in this order:

    1. the broker's lock on the queue: one member. Taken before the first pull, refreshed each 20 s,
       not relied upon when older than 30 s.
    2. the mutex of the queue in this process: one thread, for as long as it takes batches.
    3. ProcessQueue.consume_lock: held while the listener runs and until its answer is noted, so
       that a rebalance cannot give the queue away meanwhile.

The order may be broken for a moment when a member dies: batches that were consumed and not
committed come again. The counter of attempts is in memory, it restarts with each new owner.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.api.failure_reason import failure_properties, failure_text, text_of
from broker.api.members import ConsumeDirectlyResult, ConsumeDirectlyStatus, MessageModel
from broker.errors import MessageIllegalError
from client.listener.service import DEAD_LETTER_LEVEL, MAX_RECONSUME_TIMES_ORDERLY
from storage.format.message import MessageExt, MessageQueue, retry_topic

from .consume_hooks import call_after, call_before, return_type
from .listener import ConsumeOrderlyContext, ConsumeOrderlyStatus, orderly_function
from .process_queue import REBALANCE_LOCK_INTERVAL_MS
from .service import reset_retry_topic, thread_name
from .unreadable_bodies import checked, packed, unreadable
from .worker_pool import WorkerPool

if TYPE_CHECKING:
    from .listener import AnyOrderlyListener
    from .process_queue import Objects, ProcessQueue
    from .service import ConsumerContext
    from .worker_pool import BorrowedWorker

logger = logging.getLogger("rmqctl.client.consume")

MAX_TIME_CONSUME_CONTINUOUSLY_MS: Final = 60_000
"""After this a task yields to other queues (rocketmq.client.maxTimeConsumeContinuously)."""
FIRST_LOCK_DELAY_MS: Final = 1_000
MIN_SUSPEND_MS: Final = 10
MAX_SUSPEND_MS: Final = 30_000

_LOCK_LATER_MS: Final = 100  # not locked when a task begins
_LOCK_SOON_MS: Final = 10  # lost while it runs; also the pause before it goes on
_NOT_LOCKED_DELAY_MS: Final = 3_000
_MS_PER_MINUTE: Final = 60_000
_SUSPEND: Final = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
_DONE: Final = (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT)


class _Task:
    """One request; of the threads that find it, one does it."""

    __slots__ = ("_service", "_turns", "process_queue", "queue")

    def __init__(
        self,
        service: ConsumeMessageOrderlyService,
        process_queue: ProcessQueue,
        queue: MessageQueue,
    ) -> None:
        self._service = service
        self._turns: Iterator[None] = iter((None,))
        self.process_queue = process_queue
        self.queue = queue

    @property
    def size(self) -> int:
        """See Job: as many as one call of the listener gets."""
        return 1

    def has_more(self) -> bool:
        """See Job.has_more."""
        return False

    def work(self) -> None:
        """See Job.work."""
        for _ in self._turns:
            self._service.consume_queue(self.process_queue, self.queue)


class ConsumeMessageOrderlyService:
    """A ConsumeService: see the module."""

    def __init__(self, consumer: ConsumerContext, listener: AnyOrderlyListener) -> None:
        """Consume messages by ``listener``."""
        self._consumer = consumer
        self._listen = orderly_function(listener)
        self._listen_to_packed = self._listen
        if not consumer.config.deliver_unreadable_bodies:
            self._listen_to_packed = checked(self._listen)
        self._retry_topic = retry_topic(consumer.group)
        group = consumer.group
        self.pool: Final = WorkerPool(
            thread_name("ConsumeMessageThread", group), consumer.config.consume_thread_min
        )
        self._later = consumer.schedulers(thread_name("ConsumeMessageScheduledThread", group))
        self._mutexes: dict[MessageQueue, threading.Lock] = {}  # MessageQueueLock

    @property
    def _clustering(self) -> bool:
        return self._consumer.config.message_model is MessageModel.CLUSTERING

    def start(self) -> None:
        """See ConsumeService.start: the broker's locks are refreshed from now on."""
        if self._clustering:
            self._later.call_every(
                FIRST_LOCK_DELAY_MS, REBALANCE_LOCK_INTERVAL_MS, self._consumer.lock_all_queues
            )

    def shutdown(self, await_ms: int) -> None:
        """See ConsumeService.shutdown; releases all queues in the end."""
        self._later.shutdown()
        if not self.pool.shutdown(await_ms):
            logger.info("a listener still runs: group=%s", self._consumer.group)
        if self._clustering:
            self._consumer.unlock_all_queues()

    def submit(
        self,
        messages: Sequence[MessageExt],
        process_queue: ProcessQueue,
        queue: MessageQueue,
        dispatch_to_consume: bool,
        *,
        more_follows: bool = False,
        may_borrow: bool = False,
    ) -> BorrowedWorker | None:
        """See ConsumeService.submit; a task that runs takes the messages as well."""
        if not dispatch_to_consume:
            return None
        task = _Task(self, process_queue, queue)
        borrowed = self.pool.lend(task) if may_borrow else None
        if borrowed is None:
            self.pool.submit(task)
        return borrowed

    def hand_over(self) -> None:
        """Submit what is left; there is something only after a pool got no thread."""
        if not self.pool.threads:
            self.pool.hand_over()

    def settle(
        self, process_queue: ProcessQueue, queue: MessageQueue, pulled_ms: int | None = None
    ) -> None:
        """Do nothing: each batch is committed as soon as it is consumed."""

    def give_back(self) -> None:
        """Do nothing: failed messages are kept here, or were sent back at once."""

    def _submit(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self.pool.submit(_Task(self, process_queue, queue))

    def _submit_later(
        self, process_queue: ProcessQueue, queue: MessageQueue, suspend_ms: int
    ) -> None:
        """Go on with a queue later; -1: the consumer's setting."""
        if suspend_ms == -1:
            suspend_ms = self._consumer.config.suspend_current_queue_time_millis
        delay_ms = min(max(suspend_ms, MIN_SUSPEND_MS), MAX_SUSPEND_MS)
        self._later.call_later(delay_ms, partial(self._submit, process_queue, queue))

    def _lock_later(self, process_queue: ProcessQueue, queue: MessageQueue, delay_ms: int) -> None:
        """Lock a queue and go on with it soon, or try again (tryLockLaterAndReconsume)."""

        def lock() -> None:
            locked = self._consumer.lock_queue(queue)
            delay_ms = _LOCK_SOON_MS if locked else _NOT_LOCKED_DELAY_MS
            self._submit_later(process_queue, queue, delay_ms)

        self._later.call_later(delay_ms, lock)

    # -- one task

    def consume_queue(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Consume a queue in this thread until there is a reason to stop (ConsumeRequest.run)."""
        if process_queue.dropped:
            logger.info("not consumed, the queue is dropped: %s", queue)
            return
        with self._mutexes.setdefault(queue, threading.Lock()):
            if not self._lock_is_good(process_queue):
                self._lock_later(process_queue, queue, _LOCK_LATER_MS)
                return
            try:
                self._take_batches(process_queue, queue)
            except (Exception, SystemExit):
                logger.exception("a task failed, once more in a moment: %s", queue)
                process_queue.rollback()
                self._submit_later(process_queue, queue, -1)
        if process_queue.try_unlock_times:  # a rebalance waits to give the queue away
            self._consumer.rebalance_immediately()

    def _lock_is_good(self, process_queue: ProcessQueue) -> bool:
        if not self._clustering:
            return True
        return process_queue.locked and not process_queue.is_lock_expired()

    def _take_batches(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        now_ms = self._consumer.clock.now_ms
        began = now_ms()
        while not process_queue.dropped:
            if not self._lock_is_good(process_queue):
                logger.warning("a queue's lock is lost or too old: %s", queue)
                self._lock_later(process_queue, queue, _LOCK_SOON_MS)
                return
            if now_ms() - began > MAX_TIME_CONSUME_CONTINUOUSLY_MS:
                self._submit_later(process_queue, queue, _LOCK_SOON_MS)
                return
            size = self._consumer.config.consume_message_batch_max_size
            messages = tuple(process_queue.take_messages(size))
            if len(messages) > 1 and packed(messages) and any(map(unreadable, messages)):
                # One at a time until it is past that one, so that it fails alone.
                process_queue.make_message_to_consume_again(messages)
                messages = tuple(process_queue.take_messages(1))
            if not messages or not self._consume(messages, process_queue, queue):
                return
        logger.info("consumed no further, the queue is dropped: %s", queue)

    def _consume(self, messages: Objects, process_queue: ProcessQueue, queue: MessageQueue) -> bool:
        """Call the listener; returns whether the task may go on.

        RocketMQ releases ``consume_lock`` before it reads the answer, and ignores the answer if the
        queue was dropped meanwhile, so the batch comes again. Here the rebalance that gives the
        queue away waits for both, and what was consumed under the lock counts.
        """
        with process_queue.consume_lock:
            if process_queue.dropped:
                logger.info("not consumed, the queue is dropped: %s", queue)
                return False
            return self._consume_locked(messages, process_queue, queue)

    def _consume_locked(
        self, messages: Objects, process_queue: ProcessQueue, queue: MessageQueue
    ) -> bool:
        consumer = self._consumer
        context = ConsumeOrderlyContext(queue)
        reset_retry_topic(messages, self._retry_topic)
        hooks = consumer.consume_hooks
        hooked = call_before(hooks, consumer.group, messages, queue) if hooks else None
        status: ConsumeOrderlyStatus | None = None
        error: BaseException | None = None
        started = consumer.clock.now_ms()
        try:
            listen = self._listen_to_packed if packed(messages) else self._listen
            status = listen(messages, context)
        except BaseException as raised:  # noqa: BLE001 - the queue goes on after any error
            error = raised
        took = consumer.clock.now_ms() - started
        answer, known = text_of(status), isinstance(status, ConsumeOrderlyStatus)
        if error is not None:
            logger.warning("a listener failed: %s", queue, exc_info=error)
        elif not known:
            logger.warning("a listener gave %r, no status: %s", status, queue)
        judged = status if known and status is not None else _SUSPEND
        if hooked is not None:
            timed_out = took >= consumer.config.consume_timeout_minutes * _MS_PER_MINUTE
            how = return_type(status, error, failed=judged is _SUSPEND, timed_out=timed_out)
            call_after(hooks, hooked, judged, how, success=judged in _DONE)
        if consumer.config.consume_log:
            ids = [message.msg_id for message in messages]
            logger.info("consumed: group=%s status=%s ids=%s", consumer.group, judged, ids)
        key = f"{queue.topic}@{consumer.group}"
        consumer.stats.consume_rt.add_value(key, took)
        failure = self._failure(error, answer) if judged is _SUSPEND else {}
        return self._process(messages, judged, context, process_queue, failure)

    def _process(
        self,
        messages: Objects,
        status: ConsumeOrderlyStatus,
        context: ConsumeOrderlyContext,
        process_queue: ProcessQueue,
        failure: dict[str, str],
    ) -> bool:
        """Act on the listener's answer (processConsumeResult); False ends the task."""
        consumer, queue = self._consumer, context.message_queue
        key = f"{queue.topic}@{consumer.group}"
        commits = False
        goes_on = True
        if status is _SUSPEND:
            consumer.stats.consume_failed_tps.add_value(key, len(messages))
            process_queue.last_failure = failure_text(failure)
            again = self._check_reconsume_times(messages, queue, failure)
            kept = {message.queue_offset for message in again}
            gone = [message for message in messages if message.queue_offset not in kept]
            process_queue.note_sent_away(gone)
            process_queue.make_message_to_consume_again(again)
            goes_on = not again
            commits = context.auto_commit and bool(gone)
        elif context.auto_commit:
            if status is not ConsumeOrderlyStatus.SUCCESS:
                logger.warning("%s means SUCCESS with auto_commit: %s", status, queue)
            commits = True
            consumer.stats.consume_ok_tps.add_value(key, len(messages))
        elif status is ConsumeOrderlyStatus.SUCCESS:
            consumer.stats.consume_ok_tps.add_value(key, len(messages))
        elif status is ConsumeOrderlyStatus.COMMIT:
            commits = True
        else:
            process_queue.rollback()
            goes_on = False
        if not goes_on:
            self._submit_later(process_queue, queue, context.suspend_current_queue_time_millis)
        if commits:
            # A thread that restarts the queue clears it under ``ack_collector``: nothing is
            # committed then.
            with process_queue.ack_collector:
                offset = process_queue.commit()
                if offset is not None:
                    consumer.offset_store.update_offset(queue, offset, increase_only=False)
            if status is _SUSPEND:  # they were sent to the retry topic
                consumer.note_progress(queue)
        return goes_on

    def _failure(self, error: BaseException | None, answer: str) -> dict[str, str]:
        consumer = self._consumer
        if not consumer.config.record_failure_reason:
            return {}
        return failure_properties(error, consumer.client_id, consumer.clock.now_ms(), answer=answer)

    def _check_reconsume_times(
        self, messages: Objects, queue: MessageQueue, failure: dict[str, str]
    ) -> list[MessageExt]:
        """Count an attempt of each message; gives those to be tried again here. The others were
        sent to the retry topic; RocketMQ puts them back as well where one is left.

        A body that cannot be decompressed will not change: its message becomes a dead letter at
        once, so that the queue goes on. In a broadcast, which has no dead letters, it is skipped.
        """
        most = self._consumer.config.max_reconsume_times
        if most == -1:
            most = MAX_RECONSUME_TIMES_ORDERLY
        again = []
        for message in messages:
            if packed((message,)) and unreadable(message):
                if not self._clustering or self._sent_to_dead_letters(message, queue, failure):
                    continue
            elif message.reconsume_times >= most and self._sent_to_retry(message, queue, failure):
                continue
            message.reconsume_times += 1
            again.append(message)
        return again

    def _sent_to_dead_letters(
        self, message: MessageExt, queue: MessageQueue, failure: dict[str, str]
    ) -> bool:
        """Let the broker store a message as it is: it cannot be sent as a new message."""
        try:
            self._consumer.send_message_back(message, DEAD_LETTER_LEVEL, queue, failure)
        except Exception:
            logger.exception("a message cannot be sent to the dead letters: %r", message)
            return False
        return True

    def _sent_to_retry(
        self, message: MessageExt, queue: MessageQueue, failure: dict[str, str]
    ) -> bool:
        """Send a message to the retry topic; one that has no room for a retry's properties becomes
        a dead letter at once."""
        try:
            self._consumer.send_orderly_to_retry(message, failure)
        except MessageIllegalError as error:
            logger.warning("a message cannot be a retry, it becomes a dead letter: %s", error)
            return self._sent_to_dead_letters(message, queue, failure)
        except Exception:
            logger.exception("a message cannot be sent to the retry topic: %r", message)
            return False
        return True

    # -- by hand

    def consume_directly(self, message: MessageExt, broker_name: str) -> ConsumeDirectlyResult:
        """See ConsumeService.consume_directly; the order is not kept."""
        reset_retry_topic([message], self._retry_topic)
        context = ConsumeOrderlyContext(MessageQueue(message.topic, broker_name, message.queue_id))
        now_ms = self._consumer.clock.now_ms
        started = now_ms()
        remark = ""
        try:
            status = self._listen_to_packed((message,), context)
            result = _DIRECT.get(status, ConsumeDirectlyStatus.CR_LATER)
        except (Exception, SystemExit) as error:
            logger.exception("a listener failed: %s", context.message_queue)
            result = ConsumeDirectlyStatus.CR_THROW_EXCEPTION
            remark = f"{type(error).__name__}: {error}"
        return ConsumeDirectlyResult(True, context.auto_commit, result, remark, now_ms() - started)


_DIRECT: Final = {
    ConsumeOrderlyStatus.SUCCESS: ConsumeDirectlyStatus.CR_SUCCESS,
    ConsumeOrderlyStatus.COMMIT: ConsumeDirectlyStatus.CR_COMMIT,
    ConsumeOrderlyStatus.ROLLBACK: ConsumeDirectlyStatus.CR_ROLLBACK,
    _SUSPEND: ConsumeDirectlyStatus.CR_LATER,
    None: ConsumeDirectlyStatus.CR_RETURN_NULL,
}
