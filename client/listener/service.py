"""Consume services and their view of the consumer (ConsumeMessageService of 4.9).

A service has the worker threads of one push consumer: it takes pulled messages, calls the listener
and notes progress. It uses its consumer only through :class:`ConsumerContext`, so that both can be
tested without a running client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from storage.format.message import PROPERTY_RETRY_TOPIC, MessageExt, MessageQueue

if TYPE_CHECKING:
    from broker.api.members import ConsumeDirectlyResult
    from client.consumer.consumer_config import ConsumerConfig
    from client.hooks import ConsumeMessageHook
    from client.offset_store.offset_store import OffsetStore
    from client.runtime.stats import ConsumerStatsManager
    from client.timing import Clock, Scheduler

    from .process_queue import ProcessQueue
    from .worker_pool import BorrowedWorker, WorkerPool

MAX_RECONSUME_TIMES_ORDERLY: Final = (1 << 31) - 1
"""How often a message is consumed again in order where no limit is set."""
DEAD_LETTER_LEVEL: Final = -1
"""The delay level that makes a dead letter of a message."""
MAX_THREAD_NAME: Final = 100
"""Characters of a group that go into the names of its threads."""


class ListenerResult(NamedTuple):
    """A message to send back, its delay level (see ConsumeConcurrentlyContext), and the reason
    (broker.api.failure_reason)."""

    message: MessageExt
    delay_level: int
    failure: Mapping[str, str]


class ConsumerContext(Protocol):
    """A push consumer as its consume service sees it.

    ``config`` is read anew at each use, so that a consumer may replace it while it runs.
    ``schedulers`` makes timers: each service has its own, and shuts them down.
    """

    @property
    def group(self) -> str:
        """The consumer's group."""
        ...

    @property
    def client_id(self) -> str:
        """The client's id."""
        ...

    @property
    def config(self) -> ConsumerConfig:
        """The consumer's settings as they are now."""
        ...

    @property
    def clock(self) -> Clock:
        """Wall-clock time."""
        ...

    @property
    def schedulers(self) -> Callable[[str], Scheduler]:
        """Make timers with a thread of the given name."""
        ...

    @property
    def offset_store(self) -> OffsetStore:
        """Where progress is noted."""
        ...

    @property
    def consume_hooks(self) -> Sequence[ConsumeMessageHook]:
        """Called around each call of the listener."""
        ...

    @property
    def stats(self) -> ConsumerStatsManager:
        """The client's counters."""
        ...

    @property
    def process_queues(self) -> Mapping[MessageQueue, ProcessQueue]:
        """The queues that the consumer has now; iterated over as a copy."""
        ...

    def send_message_back(
        self, message: MessageExt, delay_level: int, queue: MessageQueue, failure: Mapping[str, str]
    ) -> None:
        """Send a message back for its next attempt; stored when this returns.

        Raises RocketMQError if neither its broker nor an ordinary send takes it.
        """
        ...

    def send_messages_back(
        self, returned: Sequence[ListenerResult], queue: MessageQueue
    ) -> Sequence[Exception | None]:
        """Send messages of a queue back; for each None, or the error that ``send_message_back``
        raises."""
        ...

    def send_orderly_to_retry(self, message: MessageExt, failure: Mapping[str, str]) -> None:
        """Send an orderly message that used up its attempts to the retry topic: the broker makes
        a dead letter of it. Raises RocketMQError."""
        ...

    def note_progress(self, queue: MessageQueue) -> None:
        """Make the progress of a queue survive this process, at next to no cost.

        A broker that cannot be reached gets it with the next pull or commit.
        """
        ...

    def lock_queue(self, queue: MessageQueue) -> bool:
        """Lock a queue at its broker, and note it in its process queue; False if not got, or if
        the consumer has given the queue up."""
        ...

    def lock_all_queues(self) -> None:
        """Lock all queues that the consumer has; those not got become unlocked."""
        ...

    def unlock_all_queues(self) -> None:
        """Commit the progress, release all queues, and wait for the brokers' answers."""
        ...

    def rebalance_immediately(self) -> None:
        """Divide queues anew, soon."""
        ...


class ConsumeService(Protocol):
    """Consumes messages by a listener. Safe for threads."""

    @property
    def pool(self) -> WorkerPool:
        """The threads that run the listener."""
        ...

    def start(self) -> None:
        """Start the timers; threads come with work."""
        ...

    def shutdown(self, await_ms: int) -> None:
        """Accept no more work.

        Waits up to ``await_ms`` for what is queued and running, then discards what is queued. A
        listener that still runs is left alone (Java interrupts it); its result does not count once
        its queue is dropped.
        """
        ...

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
        """Consume messages that were just put into ``process_queue``; does not wait.

        ``dispatch_to_consume`` is the result of ``put_message``; only orderly consumption uses it.
        ``more_follows``: the caller submits more, or calls ``hand_over``; they may lie until then.
        ``may_borrow``: the caller may get the job back, to do it or to leave it.
        """
        ...

    def hand_over(self) -> None:
        """Report that no more follows for now."""
        ...

    def settle(
        self, process_queue: ProcessQueue, queue: MessageQueue, pulled_ms: int | None = None
    ) -> None:
        """Turn what has finished so far into progress.

        To be called before a queue is pulled, before its progress is read or persisted, and before
        it is dropped; cheap if there is nothing. ``pulled_ms``: the time, if the queue is only
        pulled; then what a running thread has finished may stay for some milliseconds, because
        removing a part of a pull is expensive.
        """
        ...

    def give_back(self) -> None:
        """Send back now what has failed and waits for more failures."""
        ...

    def consume_directly(self, message: MessageExt, broker_name: str) -> ConsumeDirectlyResult:
        """Call the listener with one message in this thread; no progress is touched."""
        ...


def thread_name(kind: str, group: str) -> str:
    """Name a service's threads after its group."""
    return f"{kind}_{group[:MAX_THREAD_NAME]}"


def reset_retry_topic(messages: Sequence[MessageExt], retry_topic: str) -> None:
    """Show messages that come from the retry topic under their original one (resetRetryTopic)."""
    for message in messages:
        if message.topic == retry_topic:
            original = message.get_property(PROPERTY_RETRY_TOPIC)
            if original is not None:
                message.topic = original
