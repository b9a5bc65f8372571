"""The history of a message in one group, from its records."""

from typing import TYPE_CHECKING

from analytics.lag.delayed import copies
from broker.api.failure_reason import FAILURE_CLIENT
from broker.retry.failures import reason_text, record_with_id
from storage.configs.redrive_runs import RedriveRuns
from storage.format.message import (
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_RETRY_TOPIC,
    SCHEDULE_TOPIC,
    dlq_topic,
    retry_topic,
)

from .rows import AttemptRow

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


def life(view: "StoreView", group: str, message: "MessageExt") -> list[AttemptRow]:
    """All known events of a message in a group, oldest first.

    Events without a record are missing: reading, and attempts that an orderly consumer counts
    itself. A message without a unique id has only its origin and itself.
    """
    retry, dead = retry_topic(group), dlq_topic(group)
    records = {message.commitlog_offset: message}
    origin_id = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
    topic = message.get_property(PROPERTY_RETRY_TOPIC)
    first = None if origin_id is None else record_with_id(view, origin_id, topic)
    if first is not None:
        records[first.commitlog_offset] = first
    for place in (SCHEDULE_TOPIC, retry, dead):
        for copy in copies(view, place, message):
            if place != SCHEDULE_TOPIC or copy.get_property(PROPERTY_REAL_TOPIC) in (retry, dead):
                records[copy.commitlog_offset] = copy
    events = [_event(view, group, records[at]) for at in sorted(records)]
    return sorted([*events, *_redrives(view, group, message)], key=lambda event: event.at_timestamp)


def _event(view: "StoreView", group: str, record: "MessageExt") -> AttemptRow:
    what, due, level, reason, client = "STORED", None, None, None, None
    if record.topic == SCHEDULE_TOPIC:
        what, level = "FAILED", record.queue_id + 1
        unit = view.unit(record.topic, record.queue_id, record.queue_offset)
        due = None if unit is None else unit[2]
    elif record.topic == retry_topic(group):
        what = "DELIVERED"
    elif record.topic == dlq_topic(group):
        what = "DEAD"
    if what in ("FAILED", "DEAD"):
        reason, client = reason_text(record), record.get_property(FAILURE_CLIENT)
    return AttemptRow(
        record.store_timestamp,
        what,
        record.reconsume_times,
        record.topic,
        record.queue_id,
        record.queue_offset,
        due,
        reason,
        level,
        client,
        record.msg_id,
    )


def _redrives(view: "StoreView", group: str, message: "MessageExt") -> list[AttemptRow]:
    """Redrives of the group's dead letters with this id, from receipts."""
    runs = RedriveRuns(view.root)
    read = [found for name in runs.names() if (found := runs.read(name)) is not None]
    return [
        AttemptRow(
            receipt["redriven_timestamp"],
            "REDRIVEN",
            None,
            receipt["target"],
            receipt["new_queue_id"],
            receipt["new_queue_offset"],
            None,
            None,
            None,
            None,
            receipt["new_msg_id"],
        )
        for task, receipts in read
        if task["group"] == group
        for receipt in receipts
        if receipt.get("applied") and receipt["msg_id"] == message.msg_id
    ]
