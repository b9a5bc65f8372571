"""Which messages a function reads or changes: a filter, or a list of ids."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from storage.format.message import MessageExt

Predicate = Callable[["MessageExt"], bool]


class MessageTest(NamedTuple):
    """One test of messages."""

    holds: Predicate
    fields: frozenset[str] | None
    """What it reads, as fields of storage.read.message_table; None for a test of messages only."""
    bodies: Callable[[Any, Any, bytearray], None] | None = None
    """The same test for many bodies: ends (int32 each, after a first 0), text, and a byte for each
    row. Rows that are not 0 become 1 where it holds, else 0."""


class MessageFilter(NamedTuple):
    """A filter of messages; times and queues also limit what is read."""

    from_timestamp: int | None = None
    to_timestamp: int | None = None
    queues: tuple[int, ...] | None = None
    tags: str | None = None
    """A subscription expression, for a filter in the broker."""
    predicate: Predicate | None = None
    """What else a message must be; None accepts every message."""
    tests: tuple[MessageTest, ...] | None = None
    """The tests of the predicate, which all have to hold; None where they are not known."""

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
