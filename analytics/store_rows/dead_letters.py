"""Dead letters: why they are there, where they came from, and whether they were handled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.retry.failures import origin_of, reason_text
from broker.retry.redrive_properties import redrive_count
from storage.configs.dlq_acks import NOTHING_HANDLED, DlqAcksFile
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX

from .messages import body_of, messages_of
from .row_types import DeadLetterRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .wanted import Wanted


def dead_letter_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[DeadLetterRow]:
    """All dead letters of the groups, handled ones, too."""
    view = broker.view
    marks = DlqAcksFile(view.root, view)
    for topic in sorted({topic for topic, _ in view.queues()}):
        group = topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
        if group == topic or not wanted.takes_group(group):
            continue
        handled = marks.read(topic)
        for message in messages_of(view, topic, wanted):
            origin = origin_of(view, message)
            yield DeadLetterRow(
                name,
                group,
                message.queue_id,
                message.queue_offset,
                message.msg_id,
                list(message.keys),
                origin.topic,
                origin.queue_id,
                origin.queue_offset,
                origin.msg_id,
                message.reconsume_times,
                message.store_timestamp,
                reason_text(message),
                message.queue_offset in handled.get(message.queue_id, NOTHING_HANDLED),
                message.store_size,
                message.tags,
                redrive_count(message.properties),
                body_of(message, wanted),
            )
