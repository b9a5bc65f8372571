"""Messages that groups will consume again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analytics.lag.delayed import (
    copies,
    doubt_of_level,
    levels,
    targets_in_doubt,
    waiting,
    was_due,
)
from analytics.lag.ready_retries import unknown_retries
from broker.api.failure_reason import FAILURE_CLIENT
from broker.retry.failures import failed_timestamp, origin_of, reason_text
from storage.clock import now_ms
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
)

from .messages import messages_of
from .row_types import RetryRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .wanted import Wanted


def retry_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[RetryRow]:
    """Those that wait in the delay topic, also dead letters on their way, and those in the retry
    topics that their groups have not read past.

    None of a queue beyond whose end the group's progress lies, or of a delay level beyond whose end
    its saved offset lies: ``wanted.unknown`` gets a sentence.
    """
    view, now = broker.view, now_ms()
    for level_id, targets in targets_in_doubt(view).items():
        groups = {
            _group_of(topic, DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX) for topic in targets
        }
        if any(group is not None and wanted.takes_group(group) for group in groups):
            wanted.unknown(f"{view.root}: {doubt_of_level(level_id)}")
    for level in levels(view):
        for one in waiting(view, level):
            group = _group_of(one.topic, DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX)
            if group is not None and wanted.takes_group(group):
                failed = failed_timestamp(one.message)
                at = one.message.store_timestamp if failed is None else failed
                state = "WAITING" if one.due_timestamp > now else "OVERDUE"
                yield _row(view, name, group, one.message, state, one.due_timestamp, at)
    committed = broker.consumer_offsets()
    for topic in sorted({topic for topic, _ in view.queues()}):
        group = _group_of(topic, RETRY_GROUP_TOPIC_PREFIX)
        if group is not None and wanted.takes_group(group):
            begins = committed.get((group, topic), {})
            queue_ids = [queue_id for name, queue_id in view.queues() if name == topic]
            for sentence in unknown_retries(view, topic, queue_ids, begins).values():
                wanted.unknown(f"{view.root}: {sentence}")
            for message in messages_of(view, topic, wanted, begins):
                due, failed = was_due(view, message), given_back_timestamp(view, message)
                yield _row(view, name, group, message, "READY", due, failed)


def _group_of(topic: str, *prefixes: str) -> str | None:
    found = next((prefix for prefix in prefixes if topic.startswith(prefix)), None)
    return None if found is None else topic.removeprefix(found)


def given_back_timestamp(view: StoreView, message: MessageExt) -> int | None:
    """When a delivered message was sent back: by the consumer's clock, else the store time of its
    record in the delay topic."""
    said = failed_timestamp(message)
    if said is not None:
        return said
    return next(
        (
            copy.store_timestamp
            for copy in copies(view, SCHEDULE_TOPIC, message)
            if copy.reconsume_times == message.reconsume_times
        ),
        None,
    )


def _row(
    view: StoreView,
    name: str,
    group: str,
    message: MessageExt,
    state: str,
    due: int | None,
    failed: int | None,
) -> RetryRow:
    origin = origin_of(view, message)
    return RetryRow(
        name,
        group,
        message.msg_id,
        list(message.keys),
        origin.topic,
        origin.queue_id,
        origin.queue_offset,
        message.reconsume_times,
        failed,
        due,
        reason_text(message),
        message.store_size,
        message.tags,
        message.delay_time_level or None,
        message.get_property(FAILURE_CLIENT),
        state,
    )
