"""Subscription expressions (FilterAPI.build of 4.9): ``*``, tags ``a || b``, or SQL92."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerSystemError, SubscriptionParseError
from storage.read.tag_filter import SUB_ALL as SUB_ALL, TagFilter

if TYPE_CHECKING:
    from storage.read.message_filter import MessageFilter

TAG: Final = "TAG"
SQL92: Final = "SQL92"


def parse_subscription(expression: str | None) -> TagFilter | None:
    """Read a list of tags; None takes every message.

    The broker compares only hashes of tags, so tags of equal hash pass together. A client compares
    the tags once more before it passes messages to a user (``TagFilter.accepts``). Raises
    SubscriptionParseError for an expression without a tag.
    """
    try:
        return TagFilter.parse(expression)
    except ValueError as error:
        raise SubscriptionParseError(f"the subscription {error}") from error


def message_filter(
    expression: str | None, expression_type: str = TAG, *, enable_property_filter: bool
) -> MessageFilter | None:
    """Read an expression of any type; None takes every message.

    Raises SubscriptionParseError, which names the place, and BrokerSystemError for SQL92 where it
    is switched off (enablePropertyFilter).
    """
    if expression_type == TAG:
        return parse_subscription(expression)
    if expression_type != SQL92:
        raise SubscriptionParseError(
            f"expressions of type {expression_type} are unknown; use {TAG} or {SQL92}"
        )
    from .message_filter import PropertyFilter

    found = PropertyFilter(expression or "")
    if not enable_property_filter:
        raise BrokerSystemError(
            f"the broker does not support to filter messages by {SQL92}; "
            "set enablePropertyFilter=true"
        )
    return found
