"""Limits of names and messages, as pure functions; each message names the thing and the bound.

TopicValidator and Validators of 4.9. The separators U+0001 and U+0002 are refused in properties,
where RocketMQ would store them and read back other properties. What is refused raises
InvalidNameError (names), NoPermissionError (system topics) or MessageIllegalError (messages).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from typing import Final

from storage.format.message import (
    NOT_ALLOWED_SEND_TOPICS,
    RESERVED_PROPERTIES,
    Message,
    is_system_topic,
)

from .errors import InvalidNameError, MessageIllegalError, NoPermissionError

TOPIC_MAX_LENGTH: Final = 127
GROUP_MAX_LENGTH: Final = 255
MAX_MESSAGE_SIZE: Final = 4 << 20
MAX_PROPERTIES_LENGTH: Final = 32767
BODY_LENGTH_ZERO: Final = "the message body length is zero"
"""What RocketMQ's clients raise for a message without a body."""

WRONG_TYPES: Final = (TypeError, AttributeError, struct.error)
"""Errors where a part of a message has a wrong type: then ``check_types`` finds it."""

_RESERVED_GROUPS: Final = frozenset({"DEFAULT_PRODUCER", "DEFAULT_CONSUMER"})
_ALLOWED: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
_NAME_END: Final = "\x01"
_VALUE_END: Final = "\x02"
SENT_TO: Final[set[str]] = set()
"""Topics that passed the check to send to; they stay valid."""
_MOST_SENT_TO: Final = 10_000
_SHOWN: Final = 40


def check_topic(topic: str) -> None:
    """Refuse a name that no topic may have: 1 to 127 of ``%|a-zA-Z0-9_-``."""
    _check_name("topic", topic, TOPIC_MAX_LENGTH)


def check_group(group: str) -> None:
    """Refuse a name that no group may have: 1 to 255 of ``%|a-zA-Z0-9_-``, not the default's."""
    _check_name("group", group, GROUP_MAX_LENGTH)
    if group in _RESERVED_GROUPS:
        raise InvalidNameError(f"group {group} is reserved; choose another name")


def check_send_topic(topic: str) -> None:
    """Refuse topics that no client may send to: illegal names, and those that the broker itself
    fills."""
    if topic in SENT_TO:
        return
    check_topic(topic)
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise NoPermissionError(f"topic {topic} is filled by the broker; send to another topic")
    if len(SENT_TO) < _MOST_SENT_TO:
        SENT_TO.add(topic)


def check_changeable_topic(topic: str) -> None:
    """Refuse to create, change or delete an illegal name or a system topic."""
    check_topic(topic)
    if is_system_topic(topic):
        raise NoPermissionError(f"topic {topic} belongs to the system and cannot be changed")


def check_body(body: bytes, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse an empty body and one above ``max_message_size`` bytes (Validators.checkMessage)."""
    if not body:
        if not isinstance(body, bytes | bytearray | memoryview):
            raise MessageIllegalError(_body_of_another_type(body))
        raise MessageIllegalError(f"{BODY_LENGTH_ZERO}; RocketMQ's clients send none")
    check_body_size(body, max_message_size)


def check_body_size(body: bytes, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse a body above ``max_message_size`` bytes; the broker itself takes an empty one."""
    if len(body) > max_message_size:
        raise MessageIllegalError(
            f"the message body has {len(body)} bytes, allowed are {max_message_size}"
        )


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that would be read back differently: U+0001, U+0002, or no name."""
    text = "".join((*properties, *properties.values()))
    if "" not in properties and _NAME_END not in text and _VALUE_END not in text:
        return
    for name, value in properties.items():
        if not name:
            raise MessageIllegalError("a property has no name")
        if _NAME_END in name or _VALUE_END in name or _NAME_END in value or _VALUE_END in value:
            part = "the name" if _NAME_END in name or _VALUE_END in name else "the value"
            raise MessageIllegalError(
                f"{part} of property {_shown(name)} holds U+0001 or U+0002, "
                "which RocketMQ uses to separate properties"
            )


def check_properties_size(encoded: bytes) -> None:
    """Refuse encoded properties above 32,767 bytes."""
    if len(encoded) > MAX_PROPERTIES_LENGTH:
        raise MessageIllegalError(
            f"the properties have {len(encoded)} bytes, allowed are {MAX_PROPERTIES_LENGTH}"
        )


def check_user_property(name: str, value: str) -> None:
    """Refuse what Message.putUserProperty refuses: reserved or blank names, and blank values."""
    if not name.strip():
        raise MessageIllegalError("a property has no name")
    if name in RESERVED_PROPERTIES:
        raise MessageIllegalError(f"property name {name} is reserved by RocketMQ; choose another")
    if not value.strip():
        raise MessageIllegalError(f"property {_shown(name)} has no value")
    check_properties({name: value})


def check_delay_level(level: int) -> None:
    """Refuse a negative delay level; one above the table's last means the last."""
    if level < 0:
        raise MessageIllegalError(f"delay level {level} is negative; levels begin at 1, 0 is none")


def check_messages(messages: Iterable[Message], max_message_size: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse what ``check_message`` refuses, of messages with one topic; quicker for many."""
    topic = None
    for message in messages:
        if message.topic is not topic:
            topic = message.topic
            check_send_topic(topic)
        body = message.body
        if not body or len(body) > max_message_size:
            check_body(body, max_message_size)
        check_properties(message.properties)


def check_message(message: Message, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
    """Refuse what a client refuses to send (Validators.checkMessage), and unsafe properties."""
    check_send_topic(message.topic)
    check_body(message.body, max_message_size)
    check_properties(message.properties)


def check_types(messages: Iterable[object]) -> None:
    """Refuse objects that are no message, and parts of wrong types.

    To be called when something else has failed: the fast paths check no types.
    """
    for message in messages:
        if not isinstance(message, Message):
            raise MessageIllegalError(
                f"{typed(message)} is no message; make a Message of it: Message(topic, body)"
            )
        topic: object = message.topic
        if not isinstance(topic, str):
            raise InvalidNameError(f"the topic is {typed(topic)}; it is a str")
        body: object = message.body
        if not isinstance(body, bytes | bytearray | memoryview):
            raise MessageIllegalError(_body_of_another_type(body))
        flag: object = message.flag
        if not isinstance(flag, int) or not -(1 << 31) <= flag < 1 << 31:
            raise MessageIllegalError(
                f"the message's flag is {typed(flag)}; it is a whole number of 32 bits"
            )
        properties: object = message.properties
        if not isinstance(properties, Mapping):
            raise MessageIllegalError(
                f"the message's properties are {typed(properties)}; they are a dict"
            )
        for name, value in properties.items():
            if not isinstance(name, str):
                raise MessageIllegalError(f"a property's name is {typed(name)}; it is a str")
            if not isinstance(value, str):
                raise MessageIllegalError(
                    f"the value of property {_shown(name)} is {typed(value)}; it is a str"
                )


def _body_of_another_type(body: object) -> str:
    encode = "; encode it: text.encode()" if isinstance(body, str) else ""
    return f"the message body is {typed(body)}; it is bytes{encode}"


def typed(value: object) -> str:
    """Write a value and its type for an error: None, ``5 (int)``."""
    if value is None:
        return "None"
    text = repr(value)
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{short} ({type(value).__name__})"


def _check_name(kind: str, name: str, longest: int) -> None:
    if not isinstance(name, str):
        raise InvalidNameError(f"the {kind} is {typed(name)}; it is a str")
    if not name.strip():
        raise InvalidNameError(f"the {kind} has no name")
    if not _ALLOWED.fullmatch(name):
        raise InvalidNameError(
            f"{kind} {_shown(name)} has characters other than %, |, -, _, letters and digits"
        )
    if len(name) > longest:
        raise InvalidNameError(
            f"{kind} {_shown(name)} has {len(name)} characters, allowed are {longest}"
        )


def _shown(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")
