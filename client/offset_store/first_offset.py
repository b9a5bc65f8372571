"""The offset at which a consumer begins in a new queue (computePullFromWhere of 4.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.offset.start_position import offset_without_progress

from .offset_store import ReadOffsetType

if TYPE_CHECKING:
    from client.consumer.consumer_config import ConsumerConfig
    from client.runtime.routes import Routes
    from storage.format.message import MessageQueue

    from .offset_store import OffsetStore


def compute_pull_from_where(
    offset_store: OffsetStore, routes: Routes, config: ConsumerConfig, queue: MessageQueue
) -> int:
    """Give the progress that is stored, else the start of the settings for a group without any.

    Raises the errors of the broker and the store.
    """
    known = offset_store.read_offset(queue, ReadOffsetType.READ_FROM_STORE)
    if known is not None:
        return known
    return offset_without_progress(
        routes.broker(queue.broker_name),
        queue.topic,
        queue.queue_id,
        config.consume_from_where,
        config.consume_timestamp,
    )
