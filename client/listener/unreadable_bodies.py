"""Messages whose bodies cannot be decompressed: they fail alone, without a call of the listener.

RocketMQ's client silently gives up such a message and the rest of its pull. Here only that message
fails: it is sent back as if a listener had raised the BodyError, so it becomes a dead letter with
the reason in its properties. Only compressed bodies can be affected, so a pull without one costs a
check of the flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from storage.format.compress import MAX_INFLATED_BODY_SIZE
from storage.format.errors import BodyError
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from storage.format.message import MessageExt

    from .process_queue import Messages

_sys_flag = attrgetter("sys_flag")
_Answer = TypeVar("_Answer")
_Context = TypeVar("_Context")
_Messages = TypeVar("_Messages", bound="Sequence[MessageExt]")


def packed(messages: Sequence[MessageExt]) -> bool:
    """Return whether any body is compressed."""
    if not any(map(_sys_flag, messages)):
        return False
    return any(message.sys_flag & MessageSysFlag.COMPRESSED_FLAG for message in messages)


def unreadable(message: MessageExt) -> bool:
    """Return whether a body cannot be decompressed; the body is not kept."""
    try:
        message.inflated_body(MAX_INFLATED_BODY_SIZE)
    except BodyError:
        return True
    return False


def apart(requests: Iterable[Messages]) -> Iterator[Messages]:
    """Cut requests so that each message that cannot be read stands alone."""
    for messages in requests:
        begin = 0
        for at, message in enumerate(messages):
            if len(messages) > 1 and unreadable(message):
                if begin < at:
                    yield messages[begin:at]
                yield (message,)
                begin = at + 1
        if begin < len(messages):
            yield messages[begin:]


def checked(
    listen: Callable[[_Messages, _Context], _Answer],
) -> Callable[[_Messages, _Context], _Answer]:
    """Make a listener that raises BodyError before it is called with an unreadable body."""

    def listen_to_readable(messages: _Messages, context: _Context) -> _Answer:
        for message in messages:
            message.body  # noqa: B018 - raises; a usual one is kept for the listener
        return listen(messages, context)

    return listen_to_readable
