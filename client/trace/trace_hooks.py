"""Hooks that leave traces (org.apache.rocketmq.client.trace.hook)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.api.send import SendStatus
from client.hooks import CONSUME_CONTEXT_TYPE, ConsumeReturnType, MessageType
from client.runtime.unique_ids import client_unique_ids
from storage.format.host import unpack_host
from storage.format.message import (
    PROPERTY_KEYS,
    PROPERTY_MSG_REGION,
    PROPERTY_TRACE_SWITCH,
    MessageExt,
)
from storage.format.message_id import parse_offset_msg_id

from .dispatcher import TraceDispatcher
from .trace import DEFAULT_REGION, TraceBean, TraceContext, TraceType

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.hooks import ConsumeMessageContext, EndTransactionContext, SendMessageContext
    from client.runtime.instance import ClientInstance
    from client.timing import Clock

_OFF: Final = "false"


class SendMessageTraceHook:
    """Traces sends and their answers; one-way messages and trace messages are left out."""

    def __init__(self, dispatcher: TraceDispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock

    def send_message_before(self, context: SendMessageContext) -> None:
        """Note the time and the message."""
        message = context.message
        if message.topic.startswith(self._dispatcher.trace_topic):
            return
        bean = TraceBean(
            topic=message.topic,
            tags=None if context.batch else message.tags,
            keys=None if context.batch else message.get_property(PROPERTY_KEYS),
            body_length=context.body_length,
            msg_type=context.message_type,
        )
        context.trace_context = TraceContext(
            trace_type=TraceType.Pub,
            beans=[bean],
            timestamp=self._clock.now_ms(),
            group_name=context.producer_group,
        )

    def send_message_after(self, context: SendMessageContext) -> None:
        """Note the result, and pass it on."""
        trace, result = context.trace_context, context.send_result
        if trace is None or result is None:
            return
        trace.cost_ms = self._clock.now_ms() - trace.timestamp
        trace.success = result.send_status is SendStatus.SEND_OK
        bean = trace.beans[0]
        bean.msg_id = result.msg_id
        bean.offset_msg_id = result.offset_msg_id
        bean.store_host = _store_host(result.offset_msg_id)
        self._dispatcher.append(trace)


class ConsumeMessageTraceHook:
    """Traces calls of listeners, before and after. ``request_id`` makes their ids."""

    def __init__(
        self, dispatcher: TraceDispatcher, clock: Clock, request_id: Callable[[], str]
    ) -> None:
        self._dispatcher = dispatcher
        self._clock = clock
        self._request_id = request_id

    @classmethod
    def of(cls, instance: ClientInstance, dispatcher: TraceDispatcher) -> ConsumeMessageTraceHook:
        """Make the hook of a consumer, which owns the dispatcher; ``shutdown`` ends both."""
        clock = instance.clock
        ids = client_unique_ids(instance.config.client_ip)
        return cls(dispatcher, clock, lambda: ids.next(clock.now_ms()))

    def shutdown(self) -> None:
        """Send what is left, and wait until it is sent; after the last call of the listener."""
        self._dispatcher.shutdown()

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """Pass on the messages of the call; those with tracing off are left out."""
        traced = [it for it in context.messages if it.get_property(PROPERTY_TRACE_SWITCH) != _OFF]
        if not traced:
            return
        trace = TraceContext(
            trace_type=TraceType.SubBefore,
            beans=[_consumed(message) for message in traced],
            timestamp=self._clock.now_ms(),
            region_id=traced[-1].get_property(PROPERTY_MSG_REGION),
            group_name=context.consumer_group,
            request_id=self._request_id(),
        )
        context.trace_context = trace
        self._dispatcher.append(trace)

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """Pass on the listener's result; its time is divided among the messages."""
        before: TraceContext | None = context.trace_context
        if before is None:
            return
        now_ms = self._clock.now_ms()
        kind = context.props.get(CONSUME_CONTEXT_TYPE)
        self._dispatcher.append(
            TraceContext(
                trace_type=TraceType.SubAfter,
                beans=before.beans,
                timestamp=now_ms,
                region_id=before.region_id,
                group_name=before.group_name,
                cost_ms=(now_ms - before.timestamp) // len(context.messages),
                success=context.success,
                request_id=before.request_id,
                context_code=ConsumeReturnType[kind] if kind else ConsumeReturnType.SUCCESS,
            )
        )


class EndTransactionTraceHook:
    """Traces the ends of transactions."""

    def __init__(self, dispatcher: TraceDispatcher, clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Pass the end on."""
        message = context.message
        if message.topic.startswith(self._dispatcher.trace_topic):
            return
        bean = TraceBean(
            topic=message.topic,
            msg_id=context.msg_id,
            tags=message.tags,
            keys=message.get_property(PROPERTY_KEYS),
            store_host=context.store_host,
            client_host=context.client_id,
            msg_type=MessageType.Trans_msg_Commit,
            transaction_id=context.transaction_id,
            transaction_state=context.transaction_state,
            from_transaction_check=context.from_transaction_check,
        )
        self._dispatcher.append(
            TraceContext(
                trace_type=TraceType.EndTransaction,
                beans=[bean],
                timestamp=self._clock.now_ms(),
                region_id=message.get_property(PROPERTY_MSG_REGION) or DEFAULT_REGION,
                group_name=context.producer_group,
            )
        )


def _consumed(message: MessageExt) -> TraceBean:
    return TraceBean(
        topic=message.topic,
        msg_id=message.msg_id,
        tags=message.tags,
        keys=message.get_property(PROPERTY_KEYS),
        body_length=message.store_size,
        retry_times=message.reconsume_times,
    )


def _store_host(offset_msg_id: str) -> str:
    """Read the broker's ``ip:port`` from the id that it gave; of a batch from the first one."""
    return unpack_host(parse_offset_msg_id(offset_msg_id.split(",")[0])[0])
