"""Hooks: user callbacks around sending, consuming and ending a transaction.

Hooks are objects with the methods below. They only read the contexts; ``trace_context`` carries
state from before to after. Errors of a hook are logged and swallowed, except those of
``CheckForbiddenHook``, whose purpose is to refuse. (org.apache.rocketmq.client.hook)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from .send_kinds import CommunicationMode, MessageType

if TYPE_CHECKING:
    from broker.api.send import SendResult
    from broker.api.transactions import LocalTransactionState
    from storage.format.message import Message, MessageExt, MessageQueue

__all__ = [
    "CONSUME_CONTEXT_TYPE",
    "CheckForbiddenContext",
    "CheckForbiddenHook",
    "CommunicationMode",
    "ConsumeMessageContext",
    "ConsumeMessageHook",
    "ConsumeReturnType",
    "EndTransactionContext",
    "EndTransactionHook",
    "FilterMessageContext",
    "FilterMessageHook",
    "MessageType",
    "SendMessageContext",
    "SendMessageHook",
    "call_hooks",
]

_Context = TypeVar("_Context")

logger: Final = logging.getLogger("rmqctl.client.hooks")

CONSUME_CONTEXT_TYPE: Final = "ConsumeContextType"
"""Key in ``ConsumeMessageContext.props`` of a ConsumeReturnType's name (MixAll)."""


class ConsumeReturnType(IntEnum):
    """How a listener returned (ConsumeReturnType)."""

    SUCCESS = 0
    TIME_OUT = 1
    """It took longer than the consume timeout."""
    EXCEPTION = 2
    """It raised."""
    RETURNNULL = 3
    FAILED = 4
    """It returned RECONSUME_LATER, or SUSPEND_CURRENT_QUEUE_A_MOMENT."""


@dataclass(slots=True, kw_only=True)
class SendMessageContext:
    """One attempt to send. Of a batch, ``message`` is the first and ``batch`` are all.

    ``body_length`` is the size sent to the broker: compressed, or a batch's encoding. Afterwards
    there is a result or an error; neither if the message was sent one-way.
    """

    producer_group: str
    message: Message
    message_queue: MessageQueue
    communication_mode: CommunicationMode
    client_id: str = ""
    body_length: int = 0
    batch: Sequence[Message] = ()
    message_type: MessageType = MessageType.Normal_Msg
    send_result: SendResult | None = None
    error: Exception | None = None
    trace_context: Any = None


@dataclass(slots=True, kw_only=True)
class CheckForbiddenContext:
    """A message that is about to be sent."""

    group: str
    message: Message
    message_queue: MessageQueue
    communication_mode: CommunicationMode


@dataclass(slots=True, kw_only=True)
class ConsumeMessageContext:
    """One call of a listener. ``success`` and ``status`` (its answer's name) are set afterwards.

    ``props`` holds CONSUME_CONTEXT_TYPE then.
    """

    consumer_group: str
    messages: Sequence[MessageExt]
    message_queue: MessageQueue
    success: bool = False
    status: str = ""
    props: dict[str, str] = field(default_factory=dict)
    trace_context: Any = None


@dataclass(slots=True, kw_only=True)
class FilterMessageContext:
    """Messages that a pull brought; a hook may take some out of ``messages``."""

    consumer_group: str
    messages: list[MessageExt]
    message_queue: MessageQueue


@dataclass(slots=True, kw_only=True)
class EndTransactionContext:
    """A transaction that ends now; ``store_host`` is ``ip:port`` of its half message's broker."""

    producer_group: str
    message: Message
    broker_name: str
    store_host: str
    msg_id: str
    transaction_id: str
    transaction_state: LocalTransactionState
    from_transaction_check: bool = False
    client_id: str = ""


class SendMessageHook(Protocol):
    """Called around each attempt to send."""

    def send_message_before(self, context: SendMessageContext) -> None:
        """Called with the message to send; properties that are added to it go with it."""
        ...

    def send_message_after(self, context: SendMessageContext) -> None:
        """Called with the result."""
        ...


class CheckForbiddenHook(Protocol):
    """Called before each attempt to send; may refuse it."""

    def check_forbidden(self, context: CheckForbiddenContext) -> None:
        """Raise a ClientError to refuse; the producer may try another queue then."""
        ...


class ConsumeMessageHook(Protocol):
    """Called around each call of a listener."""

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """Called with the messages to consume."""
        ...

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """Called with the outcome."""
        ...


class FilterMessageHook(Protocol):
    """Called with what a pull brought, after the subscription's own filter."""

    def filter_message(self, context: FilterMessageContext) -> None:
        """Take messages out of ``context.messages``; they count as consumed."""
        ...


class EndTransactionHook(Protocol):
    """Called when a transaction ends."""

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Called with how it ends."""
        ...


def call_hooks(hooks: Iterable[Callable[[_Context], None]], context: _Context) -> None:
    """Call bound methods of hooks in their order; an error is logged, SystemExit too, and the next
    is called."""
    for hook in hooks:
        try:
            hook(context)
        except (Exception, SystemExit):
            logger.exception("a hook failed: hook=%r", hook)
