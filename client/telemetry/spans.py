"""Hooks that make spans, by OpenTelemetry's semantic conventions for messaging and RocketMQ.

    publish TOPIC    an attempt to send a message or a batch
    receive TOPIC    messages that a pull brought to a consumer that pulls
    process TOPIC    a call of a listener, with all its messages

Names are those of the conventions 1.45 (``rocketmq.*``, and not ``messaging.rocketmq.*``). Where no
hook is added, nothing of this runs and OpenTelemetry is not imported.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context as contexts, propagate, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from client.hooks import CONSUME_CONTEXT_TYPE, ConsumeReturnType, MessageType

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

    from client.hooks import ConsumeMessageContext, FilterMessageContext, SendMessageContext
    from storage.format.message import Message, MessageExt, MessageQueue

SYSTEM: Final = "messaging.system"
ROCKETMQ: Final = "rocketmq"
OPERATION_NAME: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
GROUP: Final = "messaging.consumer.group.name"
CLIENT: Final = "messaging.client.id"
MESSAGE_ID: Final = "messaging.message.id"
BODY_SIZE: Final = "messaging.message.body.size"
COUNT: Final = "messaging.batch.message_count"
ERROR: Final = "error.type"
_TAG: Final = "rocketmq.message.tag"
_KEYS: Final = "rocketmq.message.keys"
_TYPE: Final = "rocketmq.message.type"
_DELAY_LEVEL: Final = "rocketmq.message.delay_time_level"
_MODEL: Final = "rocketmq.consumption_model"

_TYPES: Final[Mapping[MessageType, str]] = {
    MessageType.Normal_Msg: "normal",
    MessageType.Trans_Msg_Half: "transaction",
    MessageType.Trans_msg_Commit: "transaction",
    MessageType.Delay_Msg: "delay",
}
_RETURNED: Final = frozenset({ConsumeReturnType.SUCCESS.name, ConsumeReturnType.TIME_OUT.name})


class SendSpans:
    """Makes a span of each attempt to send (SendMessageHook)."""

    def __init__(self, tracer: Tracer, *, propagate: bool) -> None:
        """With ``propagate`` each message gets the properties by which a consumer finds the span
        (``traceparent``, or what the propagators of the program write)."""
        self._tracer = tracer
        self._propagate = propagate
        self._open = _Open()

    def send_message_before(self, context: SendMessageContext) -> None:
        """Begin a span, a child of the caller's."""
        queue, message = context.message_queue, context.message
        attributes = _attributes("publish", "send", queue)
        attributes[CLIENT] = context.client_id
        attributes[BODY_SIZE] = context.body_length
        attributes[_TYPE] = _TYPES.get(context.message_type, "normal")
        if context.batch:
            attributes[COUNT] = len(context.batch)
        else:
            attributes |= _of_message(message)
        span = self._tracer.start_span(
            f"publish {queue.topic}", kind=SpanKind.PRODUCER, attributes=attributes
        )
        self._open.put(context, (span, None))
        if self._propagate:
            carrier: dict[str, str] = {}
            propagate.inject(carrier, trace.set_span_in_context(span))
            for one in context.batch or (message,):
                one.properties.update(carrier)

    def send_message_after(self, context: SendMessageContext) -> None:
        """End it with the result."""
        span, _ = self._open.take(context)
        if span is None:
            return
        result = context.send_result
        if context.error is not None:
            _fail(span, type(context.error).__name__, str(context.error))
        elif result is not None:
            span.set_attribute(MESSAGE_ID, result.msg_id)
            if result.send_status.name != "SEND_OK":
                _fail(span, result.send_status.name, "the message is stored, perhaps not safely")
        span.end()


class ProcessSpans:
    """Makes a span of each call of a listener, in which the listener runs (ConsumeMessageHook)."""

    def __init__(self, tracer: Tracer, *, propagate: bool, model: str) -> None:
        """With ``propagate`` the span has a link to the span that sent each message.

        ``model``: clustering or broadcasting.
        """
        self._tracer = tracer
        self._propagate = propagate
        self._model = model
        self._open = _Open()

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """Begin a span, and make it the current one of this thread."""
        queue, messages = context.message_queue, context.messages
        attributes = _attributes("process", "process", queue)
        attributes[GROUP] = context.consumer_group
        attributes[_MODEL] = self._model
        attributes |= _of_messages(messages)
        span = self._tracer.start_span(
            f"process {queue.topic}",
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(messages) if self._propagate else None,
        )
        token = contexts.attach(trace.set_span_in_context(span))
        self._open.put(context, (span, token))

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """End it with the listener's answer."""
        span, token = self._open.take(context)
        if span is None:
            return
        if token is not None:
            contexts.detach(token)
        how = context.props.get(CONSUME_CONTEXT_TYPE, "")
        if not context.success or how not in _RETURNED:
            _fail(span, how or "FAILED", context.status)
        span.end()


class ReceiveSpans:
    """Makes a span of each pull that brought messages, without a duration (FilterMessageHook)."""

    def __init__(self, tracer: Tracer, *, propagate: bool) -> None:
        """``propagate`` as in ProcessSpans."""
        self._tracer = tracer
        self._propagate = propagate

    def filter_message(self, context: FilterMessageContext) -> None:
        """Make the span; takes no message out."""
        queue, messages = context.message_queue, context.messages
        attributes = _attributes("receive", "receive", queue)
        attributes[GROUP] = context.consumer_group
        attributes |= _of_messages(messages)
        self._tracer.start_span(
            f"receive {queue.topic}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            links=_links(messages) if self._propagate else None,
        ).end()


class _Open:
    """Spans between the two calls of a hook. The hooks of a client share the context's own field,
    so it is not used. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: dict[int, tuple[Span, Token[Context] | None]] = {}

    def put(self, context: object, span: tuple[Span, Token[Context] | None]) -> None:
        with self._lock:
            self._spans[id(context)] = span

    def take(self, context: object) -> tuple[Span, Token[Context] | None] | tuple[None, None]:
        with self._lock:
            return self._spans.pop(id(context), (None, None))


def _attributes(name: str, kind: str, queue: MessageQueue) -> dict[str, Any]:
    return {
        SYSTEM: ROCKETMQ,
        OPERATION_NAME: name,
        OPERATION_TYPE: kind,
        DESTINATION: queue.topic,
        PARTITION: str(queue.queue_id),
    }


def _of_messages(messages: Sequence[MessageExt]) -> dict[str, Any]:
    if len(messages) != 1:
        return {COUNT: len(messages)}
    return {MESSAGE_ID: messages[0].msg_id, **_of_message(messages[0])}


def _of_message(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if message.tags is not None:
        found[_TAG] = message.tags
    if keys := message.keys:
        found[_KEYS] = list(keys)
    if level := message.delay_time_level:
        found[_DELAY_LEVEL] = level
    return found


def _links(messages: Sequence[MessageExt]) -> list[Link]:
    links = []
    for message in messages:
        sent = trace.get_current_span(propagate.extract(message.properties)).get_span_context()
        if sent.is_valid:
            links.append(Link(sent, {MESSAGE_ID: message.msg_id}))
    return links


def _fail(span: Span, kind: str, description: str) -> None:
    span.set_attribute(ERROR, kind)
    span.set_status(Status(StatusCode.ERROR, description))
