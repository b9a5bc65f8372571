"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 message``, ``1,200 messages``: ``many`` is ``one`` with an s unless given.

    Both may go on with a verb: ``counted(lost, "message is lost", "messages are lost")``.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
