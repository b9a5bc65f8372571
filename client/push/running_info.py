"""The state of a push consumer, for people and tools (ConsumerRunningInfo of 4.9)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from broker.api.members import ConsumeType
from client.consumer.consumer_config import rocketmq_name
from client.offset_store.offset_store import ReadOffsetType

if TYPE_CHECKING:
    from .push_consumer import PushConsumer

MAYBE_BLOCKED_MS: Final = 60_000
"""A concurrent queue that holds messages and has finished none for so long may be blocked."""


def consumer_running_info(consumer: PushConsumer) -> dict[str, Any]:
    """Give settings, subscriptions, queues in work and statistics, ready for JSON.

    Settings go by RocketMQ's names; unknown values are None.
    """
    now_ms = consumer.clock.now_ms()
    return {
        "properties": _properties(consumer),
        "subscriptions": [
            {
                "topic": data.topic,
                "sub_string": data.sub_string,
                "expression_type": data.expression_type,
                "tags": sorted(data.tags_set),
                "sub_version": data.sub_version,
            }
            for _, data in sorted(consumer.rebalance.subscriptions.items())
        ],
        "queues": _queues(consumer, now_ms),
        "status": {
            topic: consumer.stats.consume_status(consumer.group, topic)._asdict()
            for topic in sorted(consumer.rebalance.subscriptions)
        },
    }


def _properties(consumer: PushConsumer) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for config in (consumer.config, consumer.instance.config):
        for field in dataclasses.fields(config):
            value = getattr(config, field.name)
            if not isinstance(value, str | int | float | bool):
                name = getattr(value, "name", None)  # a strategy of the user's may have none
                value = name if isinstance(name, str) else type(value).__name__
            properties[rocketmq_name(field.name)] = value
    properties["consumeType"] = ConsumeType.CONSUME_PASSIVELY.value
    properties["consumerGroup"] = consumer.group
    properties["clientId"] = consumer.client_id
    properties["consumeOrderly"] = consumer.orderly
    properties["paused"] = consumer.paused
    properties["consumerStartTimestamp"] = consumer.start_timestamp
    return properties


def _queues(consumer: PushConsumer, now_ms: int) -> list[dict[str, Any]]:
    rows = []
    for queue, process_queue in sorted(consumer.rebalance.process_queues.items()):
        info = process_queue.info()
        blocked = (
            not consumer.orderly
            and info["cached_msg_count"] > 0
            and now_ms - info["last_consume_timestamp"] > MAYBE_BLOCKED_MS
        )
        offset = consumer.offset_store.read_offset(queue, ReadOffsetType.READ_FROM_MEMORY)
        rows.append({**queue._asdict(), "commit_offset": offset, **info, "maybe_blocked": blocked})
    return rows
