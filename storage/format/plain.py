"""Short ways for plain messages: those that ask for nothing but to be stored, as nearly all do.

Plain is an object of the class Message itself with a body of bytes and properties that all have
names and values, without separators in them and without DELAY, WAIT, TRAN_MSG and CLUSTER. Compiled
loops see to such messages at once. Whatever else there is, and everything where nothing is
compiled, goes the general way, which knows the rules and the errors: the client's checks, and
MessageBuilder of broker.sending. Both ways end with the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from storage import native
from storage.model import Message

from .encode import MessageInner

Seen = tuple[int, int]
"""Of messages: how many have no UNIQ_KEY, and the bytes of their bodies and properties."""
Stored = tuple[list[MessageInner], list[str], int]
"""What is stored of messages, their ids, and the bytes of their bodies and properties."""

PLAIN_WITHOUT_ID: Final = 2
"""``look_at`` says so of a message that has no UNIQ_KEY yet; 1 of another plain one, else 0."""


LookAt = Callable[[Message, int], "int | None"]
LookOver = Callable[[Sequence[Message], str, int], Seen | None]
GiveIds = Callable[[Sequence[Message], bytes, int], None]
InnerMessage = Callable[
    [str, int, bytes, int, Any, Message, str], "tuple[MessageInner, str] | None"
]
InnerMessages = Callable[
    [str, int, bytes, int, Any, Sequence[Message], Sequence[str] | None], Stored | None
]


def _not_plain(*_: object) -> Any:
    return None


def _compiled(name: str) -> Any:
    return _not_plain if native.compiled is None else getattr(native.compiled, name)


if native.compiled is not None:
    native.compiled.bind_sent(Message, MessageInner)

look_at: Final[LookAt] = _compiled("look_at")
"""Tell whether a message is plain, with a body of 1 byte to so many."""
look_over: Final[LookOver] = _compiled("look_over")
"""The same of messages of one topic in a list or tuple; None if one is not plain."""
give_ids: Final[GiveIds] = _compiled("give_ids")
"""Put the next of joined ids of one width into each plain message that has no UNIQ_KEY."""
inner_message: Final[InnerMessage] = _compiled("inner_message")
"""Make what is stored of a plain message, and give its id; None for another.

Arguments: topic and queue id where it is stored, encoded properties to add, bytes of the largest
body, the message's Origin (broker.sending.message_builder), the message, an id if it has none.
"""
inner_messages: Final[InnerMessages] = _compiled("inner_messages")
"""The same of messages of that topic in a list or tuple; ``None`` for ids: all have theirs."""
