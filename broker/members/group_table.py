"""How groups follow from heartbeats (ConsumerManager, ConsumerGroupInfo of 4.9). Pure.

A group's subscriptions are those of the last heartbeat: members with different topics replace each
other's, as with the real broker. Of a topic that stays, the subscription with the largest version
holds. Nothing is kept between heartbeats: the table is computed from what the live members report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.api.members import ClientDescription, ConsumerData, MessageModel, SubscriptionData

CHANNEL_EXPIRED_TIMEOUT_MS: Final = 120_000
"""How long a client may be silent if nothing else shows that it lives (ConsumerManager)."""


class Member(NamedTuple):
    """One client of one group. ``beat`` orders heartbeats of all processes of a machine.

    ``client.consumer`` None: its part cannot be read here, and ``consumer`` takes its place.
    """

    client: ClientDescription
    consumer: ConsumerData
    beat: int
    process_entry: str


class GroupTable(NamedTuple):
    """What a group consists of now (ConsumerGroupInfo); ``members`` by client id."""

    members: tuple[Member, ...]
    message_model: MessageModel
    subscriptions: dict[str, SubscriptionData]


def group_table(members: Iterable[Member]) -> GroupTable | None:
    """Make a group from its members; None without any."""
    present = tuple(sorted(members, key=lambda member: java_order(member.client.client_id)))
    if not present:
        return None
    readable = [member for member in present if member.client.consumer is not None] or present
    last = max(readable, key=lambda member: member.beat).consumer
    wanted = {item.topic: item for item in last.subscriptions}
    for member in present:
        for item in member.consumer.subscriptions:
            known = wanted.get(item.topic)
            if known is not None and item.sub_version > known.sub_version:
                wanted[item.topic] = item
    return GroupTable(present, last.message_model, wanted)


def is_expired(last_heartbeat: int, now: int) -> bool:
    """Return whether a client that is not a process here counts as gone (both times in ms)."""
    return now - last_heartbeat > CHANNEL_EXPIRED_TIMEOUT_MS


def java_order(text: str) -> bytes:
    """Give the key that sorts texts as Java does: by UTF-16 unit."""
    return text.encode("utf-16-be", "surrogatepass")
