"""Parts of a push consumer that depend on its message model, its listener and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.listener.service import ConsumeService
    from client.trace.trace_hooks import ConsumeMessageTraceHook

    from .push_consumer import PushConsumer


def make_consume_service(consumer: PushConsumer, listener: Any) -> ConsumeService:
    """Make the service that calls the listener."""
    if consumer.orderly:
        from client.listener.orderly import ConsumeMessageOrderlyService

        return ConsumeMessageOrderlyService(consumer, listener)
    from client.listener.concurrently import ConsumeMessageConcurrentlyService

    return ConsumeMessageConcurrentlyService(consumer, listener)


def start_trace(consumer: PushConsumer) -> ConsumeMessageTraceHook | None:
    """Make calls of the listener leave traces, if the setting is on."""
    if not consumer.config.enable_msg_trace:
        return None
    from client.producer.tracing import trace_dispatcher
    from client.trace.trace_hooks import ConsumeMessageTraceHook

    topic = consumer.config.customized_trace_topic
    dispatcher = trace_dispatcher(consumer.instance, consumer.group, "CONSUME", topic)
    hook = ConsumeMessageTraceHook.of(consumer.instance, dispatcher)
    consumer.consume_hooks.append(hook)
    return hook
