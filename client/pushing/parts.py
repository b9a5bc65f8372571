"""Parts of a push consumer that depend on its message model, its listener and its settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.port.members import MessageModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from client.consuming.service import ConsumeService
    from client.progress.offset_store import OffsetStore
    from client.tracing.trace_hooks import ConsumeMessageTraceHook
    from storage.model import MessageQueue

    from .push_consumer import PushConsumer


def make_offset_store(
    consumer: PushConsumer, *, moved: Callable[[Mapping[MessageQueue, int | None]], object]
) -> OffsetStore:
    """Make where progress is kept: with the brokers, or in a file of this machine's.

    ``moved`` hears of progress that somebody moved in the meantime.
    """
    if consumer.message_model is MessageModel.BROADCASTING:
        from client.progress.local_offset_store import LocalFileOffsetStore

        folder = consumer.instance.config.local_offset_store_dir
        return LocalFileOffsetStore(
            consumer.client_id, consumer.group, Path(folder) if folder else None
        )
    from client.progress.remote_offset_store import RemoteBrokerOffsetStore

    return RemoteBrokerOffsetStore(consumer.group, consumer.instance.routes.broker, moved=moved)


def make_consume_service(consumer: PushConsumer, listener: Any) -> ConsumeService:
    """Make what calls the listener."""
    if consumer.orderly:
        from client.consuming.orderly import ConsumeMessageOrderlyService

        return ConsumeMessageOrderlyService(consumer, listener)
    from client.consuming.concurrently import ConsumeMessageConcurrentlyService

    return ConsumeMessageConcurrentlyService(consumer, listener)


def start_trace(consumer: PushConsumer) -> ConsumeMessageTraceHook | None:
    """Have calls of the listener leave traces, if that is wanted."""
    if not consumer.config.enable_msg_trace:
        return None
    from client.tracing.trace_hooks import ConsumeMessageTraceHook

    topic = consumer.config.customized_trace_topic
    hook = ConsumeMessageTraceHook.of(consumer.instance, consumer.group, topic)
    consumer.consume_hooks.append(hook)
    return hook
