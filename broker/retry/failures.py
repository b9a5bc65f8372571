"""Failures recorded in a message, and its origin.

Only clients of rmqctl record why they sent a message back (broker.api.failure_reason). For Java
clients the reason is unknown: None, never an empty text.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.api.failure_reason import (
    FAILURE_CLASS,
    FAILURE_CLIENT,
    FAILURE_MESSAGE,
    FAILURE_PROPERTIES,
    FAILURE_STACK,
    FAILURE_TIME,
    failure_text,
)
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, PROPERTY_RETRY_TOPIC
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


class Origin(NamedTuple):
    """The origin of a message; topic and offset are None if unknown."""

    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    msg_id: str | None
    """ORIGIN_MESSAGE_ID: the offset id, or the unique id if a consumer sent the retry itself."""


def reason_text(message: "MessageExt") -> str | None:
    """Type and text of the last failure; None if not recorded. The type without its module."""
    return failure_text(message.properties)


def reason_parts(message: "MessageExt") -> dict[str, Any] | None:
    """All recorded facts of the last failure; None if there are none."""
    if not any(message.get_property(name) for name in FAILURE_PROPERTIES):
        return None
    return {
        "class": message.get_property(FAILURE_CLASS),
        "message": message.get_property(FAILURE_MESSAGE),
        "stack": message.get_property(FAILURE_STACK),
        "failed_timestamp": failed_timestamp(message),
        "client": message.get_property(FAILURE_CLIENT),
    }


def failed_timestamp(message: "MessageExt") -> int | None:
    """When the consumer failed, by its own clock; None if not recorded."""
    text = message.get_property(FAILURE_TIME) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def origin_of(view: "StoreView", message: "MessageExt") -> Origin:
    """Find the original message, as far as its record is still stored."""
    topic = message.get_property(PROPERTY_RETRY_TOPIC)
    origin_id = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
    first = None if origin_id is None else record_with_id(view, origin_id, topic)
    if first is None:
        return Origin(topic, None, None, origin_id)
    return Origin(topic or first.topic, first.queue_id, first.queue_offset, origin_id)


def record_with_id(view: "StoreView", message_id: str, topic: str | None) -> "MessageExt | None":
    """The record with an offset id, else the oldest one of a topic with that unique id."""
    try:
        position = parse_offset_msg_id(message_id)[1]
    except ValueError:
        position = None
    if position is not None:
        found = view.look_message_by_offset(position)
        if found is not None and found.offset_msg_id == message_id.upper():
            return found
    if topic is None:
        return None
    hits = view.find_unique(topic, message_id)
    return hits[0] if hits else None
