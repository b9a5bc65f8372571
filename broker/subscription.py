"""Subscription expressions of pulls (FilterAPI.build of 4.9): ``*``, or tags ``a || b``."""

from __future__ import annotations

from typing import Final

from storage.reading.tag_filter import SUB_ALL as SUB_ALL, TagFilter

from .errors import SubscriptionParseError

TAG: Final = "TAG"


def parse_subscription(expression: str | None, expression_type: str = TAG) -> TagFilter | None:
    """Read an expression; None takes every message.

    The broker compares hashes of tags only, so tags of equal hash pass together; whoever hands
    messages to a user compares the tags once more (``TagFilter.accepts``). Raises
    SubscriptionParseError for an expression without a tag, or of another type.
    """
    if expression_type != TAG:
        raise SubscriptionParseError(
            f"expressions of type {expression_type} are not supported by this broker; use {TAG}"
        )
    try:
        return TagFilter.parse(expression)
    except ValueError as error:
        raise SubscriptionParseError(f"the subscription {error}") from error
