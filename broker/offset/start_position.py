"""Where a group begins to read a queue (RebalancePushImpl.computePullFromWhere of 4.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.api.offsets import ConsumeFromWhere
from storage.format.message import RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.offsets import OffsetQuery


def compute_pull_from_where(
    broker: Broker,
    group: str,
    topic: str,
    queue_id: int,
    where: ConsumeFromWhere,
    consume_timestamp: int = 0,
) -> OffsetQuery:
    """Give the offset to begin with, never None, and the generation to commit with.

    Progress that the broker knows of wins, and so does its answer 0 for a young queue.
    """
    known = broker.query_consumer_offset(group, topic, queue_id)
    if known.offset is not None:
        return known
    offset = offset_without_progress(broker, topic, queue_id, where, consume_timestamp)
    return known._replace(offset=offset)


def offset_without_progress(
    broker: Broker, topic: str, queue_id: int, where: ConsumeFromWhere, consume_timestamp: int = 0
) -> int:
    """Give the offset at which a group without progress begins.

    That is the end (retry topics: 0), 0 (*not* the queue's min offset), or the message nearest to
    ``consume_timestamp`` in ms (retry topics: the end).
    """
    retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return 0
    if where is ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET:
        return 0 if retry else broker.max_offset(topic, queue_id)
    if retry:
        return broker.max_offset(topic, queue_id)
    return broker.search_offset(topic, queue_id, consume_timestamp)
