"""Which messages a function reads or changes: a filter, or a list of ids."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from storage.format.message import MessageExt

Predicate = Callable[["MessageExt"], bool]


class MessageFilter(NamedTuple):
    """A filter of messages; times and queues also limit what is read."""

    from_timestamp: int | None = None
    to_timestamp: int | None = None
    queues: tuple[int, ...] | None = None
    tags: str | None = None
    """A subscription expression, for a filter in the broker."""
    predicate: Predicate | None = None
    """What else a message must be; None accepts every message."""

    @property
    def is_given(self) -> bool:
        """Whether it leaves any message out."""
        return any(part is not None for part in self)


EVERY_MESSAGE: Final = MessageFilter()


class MessageSelection(NamedTuple):
    """Messages by id; without ids, those that a filter selects."""

    ids: Sequence[str] = ()
    wanted: MessageFilter = EVERY_MESSAGE


def key_hint(name: str) -> str:
    """The end of a sentence about an unknown id: a text that is none may be a key."""
    is_id = len(name) in (32, 56) and not set(name.upper()) - set("0123456789ABCDEF")
    return "" if is_id or name.isdigit() else f"; to select by key: -k {name}"
