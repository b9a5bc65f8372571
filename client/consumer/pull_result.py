"""Processing of a pull's messages before hooks and users get them (PullAPIWrapper of 4.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from client import native
from client.hooks import FilterMessageContext, FilterMessageHook, call_hooks
from storage.format.message import PROPERTY_MAX_OFFSET, PROPERTY_MIN_OFFSET, MessageExt

from .subscription import wanted

if TYPE_CHECKING:
    from broker.api.members import SubscriptionData
    from broker.api.pull import PullResult
    from storage.format.message import MessageQueue
    from storage.read.message_rows import MessageRows


def messages_of(
    result: PullResult,
    subscription: SubscriptionData,
    group: str,
    queue: MessageQueue,
    hooks: Sequence[FilterMessageHook] = (),
) -> list[MessageExt]:
    """Give the messages that match exactly, with the queue's bounds as properties
    (processPullResult)."""
    messages = result.messages
    if subscription.tags_set:
        messages = wanted(messages, subscription)
    if hooks and messages:
        context = FilterMessageContext(
            consumer_group=group, messages=list(messages), message_queue=queue
        )
        call_hooks((hook.filter_message for hook in hooks), context)
        messages = list(context.messages)
    add_property_bytes(messages, _bounds(result))
    return messages


def rows_of(result: PullResult) -> MessageRows | None:
    """Give the rows that a pull brought, which are not filtered, with the same properties; None if
    it brought messages."""
    if result.rows is not None:
        result.rows.add_property_bytes(_bounds(result))
    return result.rows


def _bounds(result: PullResult) -> bytes:
    return (
        f"{PROPERTY_MIN_OFFSET}\x01{result.min_offset}\x02"
        f"{PROPERTY_MAX_OFFSET}\x01{result.max_offset}"
    ).encode()


def _add_property_bytes(messages: Sequence[MessageExt], items: bytes) -> None:
    """Add the same properties to all messages, written as they are stored."""
    before, both = b"", items
    for message in messages:
        own = message.added_property_bytes
        if own is not before:  # nearly always they all have the same, or none
            before = own
            both = own + b"\x02" + items if own else items
        message.added_property_bytes = both


add_property_bytes: Final = native.form("add_property_bytes", _add_property_bytes)
"""The same for a list or a tuple of messages."""
