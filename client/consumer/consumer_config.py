"""Settings of consumers (DefaultMQPushConsumer and its check of 4.9).

Numbers of messages are per queue, unless stated otherwise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.arguments import check_settings, check_time
from client.errors import ClientConfigError, check_range
from storage.format.message import TRACE_TOPIC

if TYPE_CHECKING:
    from client.rebalance.allocate import AllocateMessageQueueStrategy

HALF_AN_HOUR_MS: Final = 30 * 60 * 1000
MAX_RECONSUME_TIMES_CONCURRENTLY: Final = 16


def _half_an_hour_ago() -> int:
    """Now less 30 minutes; whole seconds, as consumeTimestamp has them."""
    now_ms = time.time_ns() // 1_000_000
    return (now_ms - HALF_AN_HOUR_MS) // 1000 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Settings of one consumer; immutable. A value out of its range raises ClientConfigError."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Where a group without progress begins; see broker.offset.start_position."""
    consume_timestamp: int = field(default_factory=_half_an_hour_ago)
    """For CONSUME_FROM_TIMESTAMP, ms since the epoch; half an hour before this object was made."""
    allocate_message_queue_strategy: str | AllocateMessageQueueStrategy = "AVG"
    """Allocation strategy of the group, by name or as an object (client.rebalance.allocate). All
    members must have the same."""

    consume_thread_min: int = 20
    consume_thread_max: int = 20
    """Threads that run the listener. The queue of work is unbounded, so ``consume_thread_min`` is
    the number that counts (ConsumeMessageConcurrentlyService)."""
    adjust_thread_pool_nums_threshold: int = 100_000
    """Backlog from which threads would be added; without effect, as in 4.9.8, unless:"""
    adjust_thread_pool_nums_enable: bool = False
    """Whether each minute a thread is added, up to ``consume_thread_max``, while the backlog is at
    that threshold, and removed, down to ``consume_thread_min``, while it is below 80 % of it: the
    rule of RocketMQ 3, of which later clients have only the timer."""
    consume_message_batch_max_size: int = 1
    """Messages that a listener gets at once, at most."""
    deliver_unreadable_bodies: bool = False
    """Whether listeners get messages whose bodies cannot be decompressed (``body`` raises
    BodyError, ``raw_body`` is what is stored); if not, those fail without a call. RocketMQ skips
    them."""
    consume_timeout_minutes: int = 15
    """How long a message may be consumed before it is sent back (consumeTimeout)."""
    clean_expired_messages: bool = True
    """Whether messages over ``consume_timeout_minutes`` are sent back; older clients never did."""
    resend_after_if_still_un_ack_ms: int = 0
    """If > 0, a timer of its own watches each message and sends it back after this time; replaces
    the scan of ``consume_timeout_minutes``, but not in a broadcast. RocketMQ has no such thing."""

    consume_concurrently_max_span: int = 2000
    """Pulling pauses when unfinished messages lie further apart. Concurrent consumption only."""
    pull_threshold_for_queue: int = 1000
    """Pulling pauses when more messages are unfinished."""
    pull_threshold_size_for_queue: int = 100
    """Pulling pauses when more whole MiB of bodies are unfinished."""
    pull_threshold_for_topic: int = -1
    """Messages over all queues of this consumer; -1: only the threshold for a queue counts."""
    pull_threshold_size_for_topic: int = -1
    """The same in MiB."""
    pull_interval_ms: int = 0
    """Pause between two pulls of a queue."""
    pull_batch_size: int = 32
    """Messages of one pull; brokers give 32 at most."""
    post_subscription_when_pull: bool = False
    """Whether each pull carries the subscription, instead of relying on the heartbeats."""
    broker_suspend_max_time_ms: int = 15_000
    """How long a broker may hold a pull that finds nothing (BROKER_SUSPEND_MAX_TIME_MILLIS)."""

    max_reconsume_times: int = -1
    """Retries before a message is a dead letter; -1: 16, and without end for orderly listeners."""
    suspend_current_queue_time_millis: int = 1000
    """Pause of a queue whose orderly listener failed, 10 to 30,000 ms."""
    unlock_delay_time_mills: int = 0
    """How long an orderly queue that was given away stays locked at its broker if messages of it
    wait here (rocketmq.client.unlockDelayTimeMills, there 20,000: no member has the queue then).
    Not needed: a queue is given away when its listener has ended and its progress is stored."""
    await_termination_millis_when_shutdown: int = 0
    """How long a shutdown waits for running listeners."""
    record_failure_reason: bool = True
    """Whether a message given back carries the reason, see broker.api.failure_reason."""
    consume_log: bool = False
    """Whether each call of the listener is logged with its status and message ids."""
    enable_msg_trace: bool = False
    """Whether each call of the listener leaves trace messages, before and after."""
    customized_trace_topic: str = TRACE_TOPIC
    """The trace topic."""

    def __post_init__(self) -> None:
        checked = (field for field in fields(ConsumerConfig) if field.name != _CHECKED_AT_START)
        check_settings(self, checked, _RANGES, rocketmq_name)
        if self.consume_from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            check_time(rocketmq_name("consume_timestamp"), self.consume_timestamp)
        for name, high in _TOPIC_THRESHOLDS.items():
            if getattr(self, name) != -1:
                but = ", or -1 for none"
                check_range(rocketmq_name(name), getattr(self, name), 1, high, but=but)
        if self.consume_thread_min > self.consume_thread_max:
            raise ClientConfigError(
                f"consumeThreadMin ({self.consume_thread_min}) is larger than "
                f"consumeThreadMax ({self.consume_thread_max})"
            )


_CHECKED_AT_START: Final = "allocate_message_queue_strategy"
_INT_MAX: Final = (1 << 31) - 1
_RANGES: Final[dict[str, tuple[int, int]]] = {
    "consume_timestamp": (0, (1 << 63) - 1),
    "consume_thread_min": (1, 1000),
    "consume_thread_max": (1, 1000),
    "adjust_thread_pool_nums_threshold": (0, (1 << 63) - 1),
    "consume_concurrently_max_span": (1, 65_535),
    "pull_threshold_for_queue": (1, 65_535),
    "pull_threshold_size_for_queue": (1, 1024),
    "pull_interval_ms": (0, 65_535),
    "consume_message_batch_max_size": (1, 1024),
    "pull_batch_size": (1, 1024),
    "max_reconsume_times": (-1, _INT_MAX),
    "suspend_current_queue_time_millis": (0, _INT_MAX),
    "consume_timeout_minutes": (1, _INT_MAX),
    "resend_after_if_still_un_ack_ms": (0, _INT_MAX),
    "unlock_delay_time_mills": (0, _INT_MAX),
    "await_termination_millis_when_shutdown": (0, _INT_MAX),
    "broker_suspend_max_time_ms": (1, _INT_MAX),
}
_TOPIC_THRESHOLDS: Final = {
    "pull_threshold_for_topic": 6_553_500,
    "pull_threshold_size_for_topic": 102_400,
}
_UNITS: Final = ("_minutes", "_ms")


def rocketmq_name(field_name: str) -> str:
    """Spell a setting as RocketMQ does: ``pull_interval_ms`` is ``pullInterval``."""
    for unit in _UNITS:
        field_name = field_name.removesuffix(unit)
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)
