"""Listeners: what users write (org.apache.rocketmq.client.consumer.listener).

A listener is an object with ``consume_message``, or a plain function of the same arguments. It gets
a tuple of messages, one by default, and runs in many threads at once (concurrently), or in one
thread a queue (orderly). No lock of rmqctl is held meanwhile except, orderly, the queue's.

    def listen(messages, context):
        for message in messages:
            charge(message.body)          # raises: the message comes again later
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

A message may come more than once: a listener must be idempotent or detect repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from operator import index
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from client.errors import ClientArgumentError

if TYPE_CHECKING:
    from storage.format.message import MessageExt, MessageQueue

ACK_ALL: Final = (1 << 31) - 1
"""An ``ack_index`` that was not set."""


class ConsumeConcurrentlyStatus(StrEnum):
    """What became of messages; an exception, and None, count as RECONSUME_LATER."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"
    """Consume again: they go to the group's retry topic, in the end to its dead letters."""


class ConsumeOrderlyStatus(StrEnum):
    """What became of messages of a queue; an exception, and None, count as SUSPEND_...."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    """Put back what was not committed yet; only without auto-commit (deprecated)."""
    COMMIT = "COMMIT"
    """Note the progress; only without auto-commit (deprecated)."""
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"
    """The same messages again in a moment; what follows in the queue waits."""


class ConsumeConcurrentlyContext:
    """One call of a concurrent listener; it may set the two numbers.

    ``delay_level_when_next_consume``: -1 straight to the dead letters, 0 the broker decides, else
    that level. ``ack_index``: the listener's answer is valid for messages 0..ack_index; the others
    come again, even with CONSUME_SUCCESS.
    """

    __slots__ = ("ack_index", "delay_level_when_next_consume", "message_queue")

    def __init__(self, message_queue: MessageQueue) -> None:
        self.message_queue = message_queue
        self.delay_level_when_next_consume = 0
        self.ack_index = ACK_ALL


def wrong_ack_index(context: ConsumeConcurrentlyContext) -> TypeError | None:
    """Make the error for a context number that is no number; such a call has failed."""
    try:
        context.ack_index = index(context.ack_index)
    except TypeError:
        return TypeError(f"ack_index is {context.ack_index!r}; it is a whole number")
    return None


class ConsumeOrderlyContext:
    """One call of an orderly listener; it may set the two fields.

    ``auto_commit`` False: progress is noted at COMMIT only. ``suspend_current_queue_time_millis``:
    how long a suspended queue waits, 10 to 30,000; -1: the consumer's setting.
    """

    __slots__ = ("auto_commit", "message_queue", "suspend_current_queue_time_millis")

    def __init__(self, message_queue: MessageQueue) -> None:
        self.message_queue = message_queue
        self.auto_commit = True
        self.suspend_current_queue_time_millis = -1


class MessageListenerConcurrently(Protocol):
    """Consumes messages in any order, in many threads."""

    def consume_message(
        self, messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        """Consume; only CONSUME_SUCCESS marks them as finished."""
        ...


class MessageListenerOrderly(Protocol):
    """Consumes the messages of each queue one after the other."""

    def consume_message(
        self, messages: tuple[MessageExt, ...], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus | None:
        """Consume; only SUCCESS lets the queue go on."""
        ...


ConcurrentFunction: TypeAlias = """Callable[
    [tuple[MessageExt, ...], ConsumeConcurrentlyContext], ConsumeConcurrentlyStatus | None
]"""
OrderlyFunction: TypeAlias = """Callable[
    [tuple[MessageExt, ...], ConsumeOrderlyContext], ConsumeOrderlyStatus | None
]"""
ConcurrentCall: TypeAlias = (
    "Callable[[Any, ConsumeConcurrentlyContext], ConsumeConcurrentlyStatus | None]"
)
"""The same as it is called: with rows of a table, too, where it was registered for them."""
AnyConcurrentListener: TypeAlias = "MessageListenerConcurrently | ConcurrentFunction"
AnyOrderlyListener: TypeAlias = "MessageListenerOrderly | OrderlyFunction"


def concurrent_function(listener: AnyConcurrentListener) -> ConcurrentCall:
    """Give the function to call. Raises ClientArgumentError if there is none."""
    return _function(listener)


def orderly_function(listener: AnyOrderlyListener) -> OrderlyFunction:
    """Give the function to call. Raises ClientArgumentError if there is none."""
    return _function(listener)


def _function(listener: object) -> Callable[..., Any]:
    function = getattr(listener, "consume_message", listener)
    if not callable(function):
        raise ClientArgumentError(
            f"{listener!r} is no listener: it has no consume_message, and is no function"
        )
    return function
