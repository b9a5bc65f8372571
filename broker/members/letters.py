"""Which clients the processes of one store have, in JSON and back: ``members/NAME.json``.

What goes in letters beside is in call_letters.py (storage.sharing.stations, notices.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker.port.members import (
    ClientDescription,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from broker.port.progress import ConsumeFromWhere
from storage.sharing.stations import Said

from .group_table import Member

Json = dict[str, Any]


def members_of(said: Said, group: str) -> Iterator[Member]:
    """Give the clients of a station that consume in a group."""
    for client in said.content.get("clients", ()):
        consumer = client["consumers"].get(group)
        if consumer is not None:
            data = consumer_from(group, consumer)
            yield Member(_description(said, client, data), data, client["beat"], said.name)


def producers_of(said: Said, group: str) -> Iterator[ClientDescription]:
    """Give the clients of a station that produce in a group."""
    for client in said.content.get("clients", ()):
        if group in client["producers"]:
            yield _description(said, client, None)


def groups_of(said: Said) -> set[str]:
    """Name the groups that a station's clients consume in."""
    return {group for client in said.content.get("clients", ()) for group in client["consumers"]}


def _description(said: Said, client: Json, data: ConsumerData | None) -> ClientDescription:
    return ClientDescription(
        client["id"],
        said.content["host"],
        said.content["pid"],
        client["since"],
        client["last_heartbeat"],
        data,
    )


def consumer_json(data: ConsumerData) -> Json:
    """Write what a client says of one group."""
    return {
        "type": data.consume_type,
        "model": data.message_model,
        "where": data.consume_from_where,
        "subscriptions": [
            [item.topic, item.sub_string, sorted(item.tags_set), sorted(item.code_set), *item[4:]]
            for item in data.subscriptions
        ],
    }


def consumer_from(group: str, value: Json) -> ConsumerData:
    """Read what ``consumer_json`` wrote."""
    return ConsumerData(
        group,
        ConsumeType(value["type"]),
        MessageModel(value["model"]),
        ConsumeFromWhere(value["where"]),
        tuple(
            SubscriptionData(topic, text, frozenset(tags), frozenset(codes), *rest)
            for topic, text, tags, codes, *rest in value["subscriptions"]
        ),
    )
