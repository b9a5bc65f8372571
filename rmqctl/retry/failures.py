"""What a message tells of its failures, and where it was read first.

Only rmqctl's clients say why they gave a message back (broker.retry.failure_reason); for those
of Java's clients the reason is unknown, which is None and never an empty text.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.retry.failure_reason import (
    FAILURE_CLASS,
    FAILURE_CLIENT,
    FAILURE_MESSAGE,
    FAILURE_PROPERTIES,
    FAILURE_STACK,
    FAILURE_TIME,
)
from storage.format.message import PROPERTY_ORIGIN_MESSAGE_ID, PROPERTY_RETRY_TOPIC
from storage.format.message_id import parse_offset_msg_id

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView


class Origin(NamedTuple):
    """Where a message was read first; place and topic are None where nothing tells."""

    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    msg_id: str | None
    """ORIGIN_MESSAGE_ID: the offset id, or the unique id where a consumer sent the retry itself."""


def reason_text(message: "MessageExt") -> str | None:
    """Type and text of the last failure; None if nobody kept it. The type without its module."""
    kind, text = message.get_property(FAILURE_CLASS), message.get_property(FAILURE_MESSAGE)
    kind = kind and kind.rpartition(".")[2]
    return ": ".join(part for part in (kind, text) if part) or None


def reason_parts(message: "MessageExt") -> dict[str, Any] | None:
    """All that is kept of the last failure; None if that is nothing."""
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
    """When the consumer failed, by its own clock; None if it did not say."""
    text = message.get_property(FAILURE_TIME) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def origin_of(view: "StoreView", message: "MessageExt") -> Origin:
    """Find the message that was read first, as far as its record is still there."""
    topic = message.get_property(PROPERTY_RETRY_TOPIC)
    origin_id = message.get_property(PROPERTY_ORIGIN_MESSAGE_ID)
    first = None if origin_id is None else record_with_id(view, origin_id, topic)
    if first is None:
        return Origin(topic, None, None, origin_id)
    return Origin(topic or first.topic, first.queue_id, first.queue_offset, origin_id)


def record_with_id(view: "StoreView", message_id: str, topic: str | None) -> "MessageExt | None":
    """The record with an offset id, else the oldest of a topic with that unique id."""
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
