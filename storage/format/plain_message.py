"""Fast paths for plain messages: those that need nothing but to be stored, as nearly all do.

A plain message is an object of the class Message itself with a body of bytes. Its properties all
have names and values, without separators in them and without DELAY, WAIT, TRAN_MSG and CLUSTER.
Compiled loops process such messages. All other messages, and all messages where nothing is
compiled, take the general path with its rules and errors: the client's checks, and MessageBuilder
of broker.send. Both paths store the same bytes.

A message made of tags and keys alone keeps them, and its id, as they are. ``properties`` becomes a
dict when it is first read, and stays that dict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from storage import native

from .encode import MessageInner, PreparedRecords
from .message import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, Message
from .prepared_table import PreparedTable

Seen = tuple[int, int]
"""Of messages: how many have no UNIQ_KEY, and the bytes of their bodies and properties."""
PLAIN_WITHOUT_ID: Final = 2
"""``look_at`` gives it for a plain message without UNIQ_KEY; 1 for another plain one, else 0."""


LookAt = Callable[[Message, int], "int | None"]
LookOver = Callable[[Sequence[Message], str, int], Seen | None]
HaveTopic = Callable[[Sequence[Message], str], "bool | None"]
GiveIds = Callable[[Sequence[Message], bytes, int], None]
InnerMessage = Callable[
    [str, int, bytes, int, Any, Message, str], "tuple[MessageInner, str] | None"
]
EncodeSent = Callable[
    [str, int, bytes, int, Any, Sequence[Message], Sequence[str] | None],
    tuple[bytearray, bytes, list[tuple[str, int]], bytes, str] | None,
]


def _give_id(message: Message, unique_id: str) -> None:
    message.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = unique_id


def _has_id(message: Message) -> bool:
    return PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX in message.properties


native.form("bind_inner", native.nothing)(MessageInner)

look_at: Final[LookAt] = native.form("look_at", native.nothing)
"""Whether a message is plain, with a body of 1 byte up to the given size."""
look_over: Final[LookOver] = native.form("look_over", native.nothing)
"""The same for messages of one topic in a list or tuple; None if one is not plain."""
have_topic: Final[HaveTopic] = native.form("have_topic", native.nothing)
"""Whether all messages in a list or tuple have this topic object; False if one has an equal one."""
give_ids: Final[GiveIds] = native.form("give_ids", native.nothing)
"""Give each plain message without UNIQ_KEY the next of joined ids of one width."""
give_id: Final = native.form("give_id", _give_id)
"""Give any message an id, as its UNIQ_KEY."""
has_id: Final = native.form("has_unique_id", _has_id)
"""Whether a message has a UNIQ_KEY; its properties are not made for that."""
inner_message: Final[InnerMessage] = native.form("inner_message", native.nothing)
"""Make the stored form of a plain message, and give its id; None for another message.

Arguments: topic and queue id where it is stored, encoded properties to add, bytes of the largest
body, the message's Origin (broker.send.message_builder), the message, an id if it has none.
"""
_encode_sent: Final[EncodeSent] = native.form("encode_sent", native.nothing)


def prepare_sent(
    topic: str,
    queue_id: int,
    after: bytes,
    largest: int,
    origin: tuple[int, bytes, bytes, int, int],
    messages: Sequence[Message],
    unique_ids: Sequence[str] | None,
) -> tuple[PreparedRecords, str] | None:
    """Encode plain messages of a topic, in a list or tuple; with it their ids, joined by commas.

    Arguments as for ``inner_message``; ``None`` for ids: all have theirs. None if one is not plain,
    or if they have more than ``largest`` bytes together as the body of a batch request.
    """
    made = _encode_sent(topic, queue_id, after, largest, origin, messages, unique_ids)
    if made is None:
        return None
    buffer, table, queues, hashes, msg_ids = made
    return PreparedTable(buffer, table, queues, hashes), msg_ids
