"""The messages of a queue that a subscription selects, by the hash of their tag.

The broker's side of tag filtering (org.apache.rocketmq.broker.filter.ExpressionMessageFilter with
the subscription data of FilterAPI.buildSubscriptionData): only hashes are compared, so messages
with another tag of the same hash pass, and a client compares the text once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from storage.format.java_hash import java_hash

if TYPE_CHECKING:
    from storage.format.message import MessageExt

SUB_ALL: Final = "*"
_INT: Final = 1 << 32
_SIGN: Final = 1 << 31


class TagFilter:
    """Tags of a subscription ``A || B``. Immutable.

    ``tags`` holds the texts, ``codes`` their hashes as signed ints.
    """

    __slots__ = ("codes", "expression", "tags")

    looks_into_messages = False

    def __init__(self, expression: str, tags: frozenset[str]) -> None:
        self.expression = expression
        self.tags = tags
        self.codes = frozenset(map(java_hash, tags))

    @classmethod
    def parse(cls, expression: str | None) -> Self | None:
        """Read an expression; None means every message (``*``, empty or nothing).

        Raises ValueError for an expression of separators alone.
        """
        text = (expression or "").strip()
        if not text or text == SUB_ALL:
            return None
        tags = frozenset(tag for part in text.split("||") if (tag := part.strip()))
        if not tags:
            raise ValueError(f"{expression!r} names no tag")
        return cls(text, tags)

    def matches(self, tags_code: int) -> bool:
        """Tell whether a unit's tags code passes; its low 32 bits are compared, as in RocketMQ."""
        return (tags_code + _SIGN) % _INT - _SIGN in self.codes

    def accepts_message(self, message: MessageExt) -> bool:
        """Accept every message whose unit passed: the client compares texts."""
        del message
        return True

    def accepts(self, tags: str | None) -> bool:
        """Tell whether a message with this tag is really selected (the client's comparison)."""
        return tags in self.tags

    def __repr__(self) -> str:
        return f"TagFilter({self.expression!r})"
