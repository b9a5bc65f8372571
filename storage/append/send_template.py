"""How plain messages of a topic are put and answered, where the next one is like the one before.

Compiled code (storage/native/writing/put_sent.c) makes records, units and answer of a message, or
of a batch, from a template in one step. What makes a template, and how long it holds, are rules of
the broker (broker/send/template.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from storage.format.message import MessageQueue


class SendTemplate(NamedTuple):
    """The fields in the order that put_sent.c uses."""

    topic: str
    queues: tuple[MessageQueue, ...]
    """All queues that may be sent to, by id."""
    added: bytes
    """Properties that are added to each message, encoded."""
    largest: int
    """Most bytes of a body."""
    origin: tuple[int, bytes, bytes, int, int]
    """See ``inner_message`` of storage.format.plain_message."""
    changes: int
    """MessageStore.config_changes when the template was made: another number ends it."""
    until_ms: int
    """When it ends by itself, ms since the epoch."""
    host: str
    """How the ids of messages in this store begin (offsetMsgId)."""
    result_type: type[tuple[Any, ...]]
    """The class of the answer: status, queue, offset, unique id, offset id, transaction id."""
    status: object
    """The status of each answer."""
    options: object
    """What the client sends with: this very object."""
    added_to_items: bytes
    """As ``added``, for the messages of a batch."""
