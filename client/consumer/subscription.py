"""Subscriptions (FilterAPI, MessageSelector of 4.9), and the client's exact tag filter.

The broker compares only the hashes of tags, so messages of another tag with the same hash come too;
this filter removes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.api.members import SubscriptionData
from broker.filter.subscription import SUB_ALL, TAG, parse_subscription
from broker.validation import typed
from client.arguments import check_text
from client.errors import ClientArgumentError, ClientConfigError

if TYPE_CHECKING:
    from storage.format.message import MessageExt

SQL92: Final = "SQL92"


class MessageSelector(NamedTuple):
    """An expression and its language; None is every message (MessageSelector of 4.9)."""

    expression: str | None = SUB_ALL
    expression_type: str = TAG

    @classmethod
    def by_tag(cls, tags: str | None) -> MessageSelector:
        """Select by tag: ``*``, or ``a || b``."""
        return cls(tags, TAG)

    @classmethod
    def by_sql(cls, sql: str) -> MessageSelector:
        """Select by properties; the broker must have ``enable_property_filter``, as it has in a
        store that rmqctl made."""
        return cls(sql, SQL92)


ALL_MESSAGES: Final = MessageSelector()


def selector_of(selector: str | MessageSelector | None) -> MessageSelector:
    """Give the selector that an argument is or stands for: a text, or None, selects by tag.

    Raises ClientArgumentError for another type, ClientConfigError for an unknown language.
    """
    if not isinstance(selector, MessageSelector):
        if selector is not None and not isinstance(selector, str):
            raise ClientArgumentError(
                f"the selector is {typed(selector)}; it is tags such as 'a || b', or "
                "MessageSelector.by_sql(...)"
            )
        return MessageSelector.by_tag(selector)
    check_text("the selector's expression", selector.expression)
    if selector.expression_type not in (TAG, SQL92):
        raise ClientConfigError(
            f"the selector's expression_type is {typed(selector.expression_type)}; "
            f"it is {TAG} or {SQL92}"
        )
    return selector


def subscription_data(topic: str, selector: MessageSelector, version: int) -> SubscriptionData:
    """Make the subscription to a topic since ``version``, ms (FilterAPI.build).

    Raises SubscriptionParseError for a list without a tag, ClientConfigError for an empty
    expression of another type; the broker checks whether that one is valid.
    """
    expression, expression_type = selector
    if expression_type != TAG:
        if not expression:
            raise ClientConfigError(
                f"the {expression_type} expression for topic {topic} is empty; give one, or "
                "subscribe without a selector to get all messages"
            )
        return SubscriptionData(
            topic, expression, sub_version=version, expression_type=expression_type
        )
    tags = parse_subscription(expression)
    if tags is None:
        return SubscriptionData(topic, SUB_ALL, sub_version=version)
    return SubscriptionData(topic, tags.expression, tags.tags, tags.codes, version)


def wanted(messages: list[MessageExt], subscription: SubscriptionData) -> list[MessageExt]:
    """Leave out messages whose tag is none of the subscribed ones, at least one
    (PullAPIWrapper)."""
    tags = subscription.tags_set
    return [message for message in messages if message.tags in tags]


def selects_alike(subscription: SubscriptionData, other: SubscriptionData | None) -> bool:
    """Whether ``other`` is a subscription that selects the same messages; versions may differ, as
    each round of rebalance that changes something gives a new one."""
    return other is not None and (
        (subscription.sub_string, subscription.expression_type)
        == (other.sub_string, other.expression_type)
    )


def newer(subscription: SubscriptionData, now_ms: int) -> SubscriptionData:
    """Give a subscription a version that is larger than its own."""
    return subscription._replace(sub_version=max(now_ms, subscription.sub_version + 1))
