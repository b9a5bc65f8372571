"""Subscription expressions by tag (FilterAPI.buildSubscriptionData of 4.9).

``*`` (or nothing) takes every message, ``a || b`` those tagged ``a`` or ``b``. The broker compares
hashes of tags only, so two tags with equal hash pass together; whoever hands messages to a user
compares the tags themselves once more (``SubscriptionData.matches``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from storage.format.java_hash import tags_code

from .errors import SubscriptionParseError

SUB_ALL: Final = "*"
TAG: Final = "TAG"
_OR: Final = "||"


class SubscriptionData(NamedTuple):
    """A parsed expression: no tags means all messages. ``codes`` are the hashes of ``tags``."""

    topic: str
    expression: str = SUB_ALL
    tags: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset()

    @property
    def takes_all(self) -> bool:
        """Whether every message passes."""
        return not self.tags

    def matches(self, tags: str | None) -> bool:
        """Compare a message's tag exactly, as clients do after the broker's hash."""
        return not self.tags or (tags is not None and tags in self.tags)


def parse_subscription(
    topic: str, expression: str | None = SUB_ALL, expression_type: str = TAG
) -> SubscriptionData:
    """Read an expression; SubscriptionParseError for one without tags, or of another type."""
    if expression_type != TAG:
        raise SubscriptionParseError(
            f"expressions of type {expression_type} are not supported by this broker; use {TAG}"
        )
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic)
    tags = frozenset(tag for part in expression.split(_OR) if (tag := part.strip()))
    if not tags:
        raise SubscriptionParseError(f"the subscription expression {expression!r} names no tag")
    return SubscriptionData(topic, expression, tags, frozenset(map(tags_code, tags)))
