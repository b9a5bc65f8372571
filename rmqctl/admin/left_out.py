"""Warnings about messages that a command leaves out: names of the first ones, then a count."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from storage.format.errors import BodyError

if TYPE_CHECKING:
    from storage.readonly import StoreView

MOST_NAMED: Final = 10
"""Number of messages that are named; the others are counted."""


class Named:
    """Names messages as they come, and counts the others."""

    def __init__(self, tell: Callable[[str], object], end: str = "") -> None:
        """``end`` is appended to each sentence."""
        self._tell = tell
        self._end = end
        self.count = 0

    def add(self, what: str) -> None:
        """Name a message, unless enough were named."""
        self.count += 1
        if self.count <= MOST_NAMED:
            self._tell(what + self._end)

    def finish(self) -> None:
        """Print the number of further messages."""
        if self.count > MOST_NAMED:
            self._tell(f"and {self.count - MOST_NAMED:,} more such messages{self._end}")


def tell_unreadable(
    tell: Callable[[str], object], count: int, bodies: Sequence[str], what: str = "dead letters"
) -> None:
    """Print how many could not be read; ``bodies`` names some whose bodies cannot be unpacked."""
    for error in bodies[:MOST_NAMED]:
        tell(f"left out {error}")
    if count:
        tell(f"{count} {what} cannot be read; see 'rmqctl store fsck'")


def tell_left_out(view: "StoreView", offsets: Iterable[int], tell: Callable[[str], object]) -> None:
    """Name the messages at log offsets that were left out, with the reason."""
    named = Named(tell)
    for offset in sorted(offsets):
        named.add(_reason(view, offset) if named.count < MOST_NAMED else "")
    named.finish()


def _reason(view: "StoreView", offset: int) -> str:
    message = view.look_message_by_offset(offset)
    if message is None:
        return f"left out {_name(view, offset)} at log offset {offset}: it is damaged"
    try:
        message.body  # noqa: B018 - to hear why it cannot be unpacked
    except BodyError as error:
        return f"left out {error}"
    return f"left out {message.place}: it could not be read"


def _name(view: "StoreView", offset: int) -> str:
    """A damaged record by its place in a queue, if a unit points at it."""
    from storage.read.record_place import place_of_record

    place = place_of_record(view, offset)
    if place is None:
        return "the record"
    queue = f"topic {place.topic}, queue {place.queue_id}, offset {place.queue_offset}"
    return f"a message ({queue})" if place.msg_id is None else f"message {place.msg_id} ({queue})"
