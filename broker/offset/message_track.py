"""Which groups have consumed a message (DefaultMQAdminExtImpl.messageTrackDetail).

CONSUMED means that a group's progress has passed the message, no more: one that went to the retry
topic or the dead letters counts as consumed, too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from broker.api.members import ConsumeType, MessageModel
from broker.filter.subscription import SQL92
from storage.errors import RocketMQError

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.members import ClientDescription, SubscriptionData
    from storage.format.message import MessageExt


class TrackType(StrEnum):
    """What is known of a group and a message (org.apache.rocketmq.tools.admin.api.TrackType)."""

    CONSUMED = "CONSUMED"
    CONSUMED_BUT_FILTERED = "CONSUMED_BUT_FILTERED"
    """Progress has passed it, but the group's subscription does not want it."""
    PULL = "PULL"
    """The group pulls by itself: what it does with messages is not known."""
    NOT_CONSUME_YET = "NOT_CONSUME_YET"
    NOT_ONLINE = "NOT_ONLINE"
    """The group has no live member; what it has consumed is not looked at."""
    CONSUME_BROADCASTING = "CONSUME_BROADCASTING"
    """Every member consumes it, and keeps its own progress."""
    UNKNOWN = "UNKNOWN"


class MessageTrack(NamedTuple):
    """One group and a message; ``exception_desc`` says why nothing is known, if so."""

    consumer_group: str
    track_type: TrackType
    exception_desc: str = ""


def message_track(broker: Broker, message: MessageExt) -> list[MessageTrack]:
    """Track a message: one row for each group that has progress in its topic or subscribes to it.

    Sorted by group. Raises what ``Broker.groups`` and ``Broker.consumer_offsets`` raise; an error
    about one group makes its row UNKNOWN.
    """
    offsets = broker.consumer_offsets()
    known = {group for group, topic in offsets if topic == message.topic}
    tracks = []
    for group in sorted({*known, *broker.groups()}):
        try:
            members = broker.consumer_connection(group)
        except RocketMQError as error:
            tracks.append(MessageTrack(group, TrackType.UNKNOWN, str(error)))
            continue
        subscription = _subscription(members, message.topic)
        if group not in known and subscription is None:
            continue
        offset = offsets.get((group, message.topic), {}).get(message.queue_id)
        consumed = offset is not None and offset > message.queue_offset
        kind = _track_type(members, subscription, message, consumed=consumed)
        tracks.append(MessageTrack(group, kind))
    return tracks


def _track_type(
    members: list[ClientDescription],
    subscription: SubscriptionData | None,
    message: MessageExt,
    *,
    consumed: bool,
) -> TrackType:
    consumers = [member.consumer for member in members if member.consumer is not None]
    if not consumers:
        return TrackType.NOT_ONLINE
    if consumers[0].consume_type is ConsumeType.CONSUME_ACTIVELY:
        return TrackType.PULL
    if consumers[0].message_model is MessageModel.BROADCASTING:
        return TrackType.CONSUME_BROADCASTING
    if not consumed:
        return TrackType.NOT_CONSUME_YET
    if subscription is not None and not _wants(subscription, message):
        return TrackType.CONSUMED_BUT_FILTERED
    return TrackType.CONSUMED


def _subscription(members: list[ClientDescription], topic: str) -> SubscriptionData | None:
    """Give the newest subscription to a topic that a live member has told of."""
    found = [
        subscription
        for member in members
        if member.consumer is not None
        for subscription in member.consumer.subscriptions
        if subscription.topic == topic
    ]
    return max(found, key=lambda subscription: subscription.sub_version, default=None)


def _wants(subscription: SubscriptionData, message: MessageExt) -> bool:
    if subscription.expression_type == SQL92:
        from broker.filter.message_filter import PropertyFilter

        return PropertyFilter(subscription.sub_string).accepts_message(message)
    return not subscription.tags_set or message.tags in subscription.tags_set
