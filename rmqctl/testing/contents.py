"""What the topics of a store hold, as text: it stands below a test that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rmqctl.output.values import escape_controls
from storage.format.errors import BodyError

if TYPE_CHECKING:
    from storage.format.message import MessageExt

    from .store import RocketMQStore

_MOST: Final = 20
"""Messages of a topic."""
_WIDTH: Final = 60
"""Characters of a body."""


def contents(store: RocketMQStore) -> Iterator[str]:
    """A line for each topic, and for each of its last 20 messages."""
    for topic in store.topics():
        messages = store.messages(topic)
        count = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
        yield f"{escape_controls(topic)}: {count}"
        if len(messages) > _MOST:
            yield f"  the last {_MOST}:"
        yield from (f"  {_line(message)}" for message in messages[-_MOST:])


def _line(message: MessageExt) -> str:
    words = [f"queue {message.queue_id}, offset {message.queue_offset}:", _body(message)]
    if message.tags:
        words.append(f"tag {escape_controls(message.tags)}")
    if message.keys:
        words.append(f"keys {escape_controls(' '.join(message.keys))}")
    if message.reconsume_times:
        words.append(f"try {message.reconsume_times + 1}")
    return "  ".join(words)


def _body(message: MessageExt) -> str:
    try:
        text = repr(message.body)
    except BodyError as error:
        return f"({escape_controls(str(error))})"
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}... ({len(message.body)} bytes)"
