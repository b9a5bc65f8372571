"""Batches: messages of one topic that are stored in sequence, all or none.

org.apache.rocketmq.common.message.MessageBatch; MessageDecoder.encodeMessage for their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from broker.errors import MessageIllegalError
from broker.validation import MAX_MESSAGE_SIZE
from storage.format.message import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_WAIT_STORE_MSG_OK,
    RETRY_GROUP_TOPIC_PREFIX,
    Message,
)
from storage.format.properties import encode_properties

ITEM_HEAD: Final = 22
"""Bytes of an item of a batch beside body and properties."""
_ADDED: Final = 256
"""Room for what is added to the properties: UNIQ_KEY, WAIT and CLUSTER (75 bytes) by client and
broker, ``traceparent`` (68 bytes) and a short ``tracestate`` by a hook (client.telemetry)."""
_UTF8_BYTES: Final = 4
"""Bytes of a character, at most."""
_SEPARATORS: Final = 2
"""Bytes between and in properties, each."""


def check_batch(messages: Sequence[Message]) -> None:
    """Refuse messages that cannot be one batch (MessageBatch.generateFromList)."""
    if not messages:
        raise MessageIllegalError("the batch has no message")
    first = messages[0]
    topic, waits = first.topic, _waits(first)
    retries = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    for message in messages:
        properties = message.properties
        if PROPERTY_DELAY_TIME_LEVEL in properties and message.delay_time_level > 0:
            raise MessageIllegalError("a batch cannot be delayed; send its messages one by one")
        if retries:
            raise MessageIllegalError(f"topic {topic} takes no batch; send its messages one by one")
        if message.topic != topic:
            raise MessageIllegalError(
                f"the messages of a batch have one topic, not {topic} and {message.topic}"
            )
        if (PROPERTY_WAIT_STORE_MSG_OK in properties or not waits) and _waits(message) != waits:
            raise MessageIllegalError(
                "the messages of a batch wait for the store, or none does (property WAIT)"
            )


def encoded_size(messages: Iterable[Message]) -> int:
    """Give the bytes that messages take as the body of a batch request."""
    return sum(
        ITEM_HEAD + len(message.body) + len(encode_properties(message.properties))
        for message in messages
    )


def fits(messages: Sequence[Message], max_message_size: int) -> bool:
    """Return whether ``encoded_size`` is at most so much; nothing is encoded where that is
    clear."""
    most = sum([len(message.body) for message in messages]) + ITEM_HEAD * len(messages)
    for message in messages:
        properties = message.properties
        characters = sum(map(len, properties)) + sum(map(len, properties.values()))
        most += _UTF8_BYTES * characters + _SEPARATORS * len(properties)
    return most <= max_message_size or encoded_size(messages) <= max_message_size


def split_batch(
    messages: Iterable[Message], max_message_size: int = MAX_MESSAGE_SIZE
) -> Iterator[list[Message]]:
    """Cut messages, in their order, into batches that are small enough to be sent.

    A message that is too large by itself becomes a batch of its own, which is refused when sent.

    Examples:
        >>> from rmqctl import Message
        >>> many = [Message("OrderEvent", b"x" * 1_000_000) for _ in range(10)]
        >>> [len(batch) for batch in split_batch(many)]
        [4, 4, 2]
    """
    batch: list[Message] = []
    size = 0
    for message in messages:
        added = encoded_size([message]) + _ADDED
        if batch and size + added > max_message_size:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += added
    if batch:
        yield batch


def _waits(message: Message) -> bool:
    return (message.get_property(PROPERTY_WAIT_STORE_MSG_OK) or "true").lower() == "true"
