"""The real message of a delayed one whose time has come (ScheduleMessageService.messageTimeup)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.send.message_builder import stored_again
from storage.format.dispatch import is_possible_topic
from storage.format.java_numbers import parse_int
from storage.format.message import PROPERTY_REAL_QUEUE_ID, PROPERTY_REAL_TOPIC, TRANS_HALF_TOPIC

if TYPE_CHECKING:
    from storage.format.encode import MessageInner
    from storage.format.message import MessageExt

logger = logging.getLogger("rmqctl.broker")


def message_timeup(message: MessageExt) -> MessageInner | None:
    """Make the record for the real topic; None if the message cannot be delivered to one.

    Its properties stay as they are: consumers still see DELAY, REAL_TOPIC and REAL_QID. A half
    message is never delivered this way. Java retries a message without a real topic without end;
    here it is passed over, like an unreadable one. No checksum covers the name, so one that can be
    no folder is passed over, too.
    """
    properties = message.properties  # read several times from here on
    topic = properties.get(PROPERTY_REAL_TOPIC)
    queue_id = parse_int(properties.get(PROPERTY_REAL_QUEUE_ID, ""))
    if not topic or queue_id is None:
        logger.error("delayed message at %d names no real topic", message.commitlog_offset)
        return None
    if not is_possible_topic(topic):
        logger.error(
            "delayed message at %d is for %r, which can be no topic",
            message.commitlog_offset,
            topic,
        )
        return None
    if topic == TRANS_HALF_TOPIC:
        logger.error("delayed message at %d is a half message", message.commitlog_offset)
        return None
    return stored_again(message, topic, queue_id)
