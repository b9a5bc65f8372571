"""Naming messages that a command leaves out: the first ones each, the others by their number."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from storage.format.errors import BodyError

if TYPE_CHECKING:
    from storage.readonly import StoreView

MOST_NAMED: Final = 10
"""How many messages are named; of the others there is the number."""


class Named:
    """Tells of messages as they come, and at the end how many more there were."""

    def __init__(self, tell: Callable[[str], None], end: str = "") -> None:
        """``end`` stands behind what is told of each message."""
        self._tell = tell
        self._end = end
        self.count = 0

    def add(self, what: str) -> None:
        """Tell of one more, unless enough were told of."""
        self.count += 1
        if self.count <= MOST_NAMED:
            self._tell(what + self._end)

    def finish(self) -> None:
        """Say how many more there were."""
        if self.count > MOST_NAMED:
            self._tell(f"and {self.count - MOST_NAMED:,} more such messages{self._end}")


def tell_unreadable(
    tell: Callable[[str], None], count: int, bodies: Sequence[str], what: str = "dead letters"
) -> None:
    """Say how many could not be read; ``bodies`` names some whose bodies cannot be unpacked."""
    for error in bodies[:MOST_NAMED]:
        tell(f"left out {error}")
    if count:
        tell(f"{count} {what} can not be read; see 'rmqctl store fsck'")


def tell_left_out(view: "StoreView", offsets: Iterable[int], tell: Callable[[str], None]) -> None:
    """Name what lies at log offsets and was left out, and say why."""
    named = Named(tell)
    for offset in sorted(offsets):
        named.add(_reason(view, offset) if named.count < MOST_NAMED else "")
    named.finish()


def _reason(view: "StoreView", offset: int) -> str:
    message = view.look_message_by_offset(offset)
    if message is None:
        return f"left out what lies at log offset {offset}: the record is damaged"
    try:
        message.body  # noqa: B018 - to hear why it cannot be unpacked
    except BodyError as error:
        return f"left out {error}"
    return f"left out {message.place}: it could not be read"
