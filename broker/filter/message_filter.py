"""Filters of reads by SQL92 expressions (ExpressionMessageFilter and its retry form of 4.9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from storage.format.message import PROPERTY_RETRY_TOPIC

from .expression import matches
from .parser import compile_sql92
from .subscription import SQL92

if TYPE_CHECKING:
    from broker.api.members import SubscriptionData
    from storage.format.message import MessageExt


class PropertyFilter:
    """Messages whose properties fulfil an expression. Immutable."""

    __slots__ = ("_condition", "expression")

    looks_into_messages = True

    def __init__(self, expression: str) -> None:
        """Read the expression. Raises SubscriptionParseError."""
        self.expression = expression
        self._condition = compile_sql92(expression)

    def matches(self, tags_code: int) -> bool:
        """Let every unit pass: a tag hash contains no properties."""
        del tags_code
        return True

    def accepts_message(self, message: MessageExt) -> bool:
        """Return whether the message fulfils the expression."""
        return matches(self._condition, message.properties)

    def __repr__(self) -> str:
        return f"PropertyFilter({self.expression!r})"


class RetryFilter:
    """Passes retries that match the group's current expression for their original topic.

    For ``filterSupportRetry``: a subscription may have changed since a message was sent back.
    ``subscriptions`` gives the group's current ones, by topic.
    """

    __slots__ = ("_subscriptions",)

    looks_into_messages = True

    def __init__(self, subscriptions: Callable[[], Mapping[str, SubscriptionData]]) -> None:
        self._subscriptions = subscriptions

    def matches(self, tags_code: int) -> bool:
        """Let every unit pass."""
        del tags_code
        return True

    def accepts_message(self, message: MessageExt) -> bool:
        """Return whether it fulfils the expression; without one it does."""
        topic = message.get_property(PROPERTY_RETRY_TOPIC) or ""
        wanted = self._subscriptions().get(topic)
        if wanted is None or wanted.expression_type != SQL92:
            return True
        return matches(compile_sql92(wanted.sub_string), message.properties)
