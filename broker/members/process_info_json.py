"""Clients of the processes of one store, in JSON and back: ``members/NAME.json``.

Contents of control messages are in broker_to_client.py (storage.coordination.processes,
notices.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from broker.api.members import (
    ClientDescription,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere
from storage.coordination.processes import ProcessInfo
from storage.format.message import MessageQueue

from .group_table import Member

logger = logging.getLogger("rmqctl.broker")

Json = dict[str, Any]

_PARTS: Final = frozenset({"id", "since", "last_heartbeat", "beat", "producers", "consumers"})
_UNREADABLE: Final = (AttributeError, KeyError, TypeError, ValueError)
_reported: Final[set[tuple[str, str]]] = set()
_MOST_TOLD: Final = 1000


def _clients(info: ProcessInfo) -> Iterator[Json]:
    """Give the clients of a process entry; one that lacks a part is logged and left out."""
    for client in info.content.get("clients", ()):
        if isinstance(client, dict) and client.keys() >= _PARTS:
            yield client
        else:
            _tell_unreadable(info, "-", info.name, "a part is missing")


def members_of(info: ProcessInfo, group: str, *, with_queues: bool = False) -> Iterator[Member]:
    """Give the clients of a process entry that consume in a group.

    One of a newer version may have content that is unknown here. It still counts as a member, but
    its subscriptions do not. Its description has no ``consumer``. Queues are None unless they are
    asked for: groups are read often, and a member may have thousands.
    """
    for client in _clients(info):
        consumer = client["consumers"].get(group)
        if consumer is None:
            continue
        data: ConsumerData | None = None
        try:
            data = consumer_from(group, consumer, with_queues=with_queues)
        except _UNREADABLE as error:
            _tell_unreadable(info, group, client["id"], f"{type(error).__name__}: {error}")
        description = _description(info, client, data)
        yield Member(description, data or _unknown(group), client["beat"], info.name)


def producers_of(info: ProcessInfo, group: str) -> Iterator[ClientDescription]:
    """Give the clients of a process entry that produce in a group."""
    for client in _clients(info):
        if group in client["producers"]:
            yield _description(info, client, None)


def groups_of(info: ProcessInfo) -> set[str]:
    """Name the groups that the clients of a process entry consume in."""
    return {group for client in _clients(info) for group in client["consumers"]}


def topics_of(info: ProcessInfo) -> set[str]:
    """Name the topics that the consumers of a process entry subscribe to; those of a newer version
    may have content that is unknown here, and are left out."""
    found: set[str] = set()
    for client in _clients(info):
        for group, consumer in client["consumers"].items():
            try:
                found.update(item.topic for item in consumer_from(group, consumer).subscriptions)
            except _UNREADABLE as error:
                _tell_unreadable(info, group, client["id"], f"{type(error).__name__}: {error}")
    return found


def _tell_unreadable(info: ProcessInfo, group: str, client_id: str, why: str) -> None:
    """Log it once for each client and group, because groups are read often."""
    if (client_id, group) in _reported:
        return
    if len(_reported) >= _MOST_TOLD:
        _reported.clear()
    _reported.add((client_id, group))
    logger.warning(
        "what a member wants cannot be read, perhaps its rmqctl is newer: group=%s client_id=%s "
        "pid=%s: %s",
        group,
        client_id,
        info.content.get("pid"),
        why,
    )


def _unknown(group: str) -> ConsumerData:
    return ConsumerData(
        group,
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    )


def _description(info: ProcessInfo, client: Json, data: ConsumerData | None) -> ClientDescription:
    return ClientDescription(
        client["id"],
        info.content.get("host", ""),
        info.content.get("pid", 0),
        client["since"],
        client["last_heartbeat"],
        data,
    )


def consumer_json(data: ConsumerData) -> Json:
    """Write one group's part of a client."""
    value: Json = {
        "type": data.consume_type,
        "model": data.message_model,
        "where": data.consume_from_where,
        "subscriptions": [
            [item.topic, item.sub_string, sorted(item.tags_set), sorted(item.code_set), *item[4:]]
            for item in data.subscriptions
        ],
    }
    if data.queues is not None:
        value["queues"] = _queues_json(data.queues)
    return value


def consumer_from(group: str, value: Json, *, with_queues: bool = False) -> ConsumerData:
    """Read what ``consumer_json`` wrote; without ``with_queues`` all but the queues."""
    return ConsumerData(
        group,
        ConsumeType(value["type"]),
        MessageModel(value["model"]),
        ConsumeFromWhere(value["where"]),
        tuple(
            SubscriptionData(topic, text, frozenset(tags), frozenset(codes), *rest)
            for topic, text, tags, codes, *rest in value["subscriptions"]
        ),
        _queues_from(value.get("queues")) if with_queues else None,
    )


def _queues_json(queues: Sequence[MessageQueue]) -> list[tuple[str, str, list[int]]]:
    """Write queues as topic, broker and ids: a member may have thousands."""
    ids: dict[tuple[str, str], list[int]] = {}
    for topic, broker_name, queue_id in queues:
        ids.setdefault((topic, broker_name), []).append(queue_id)
    return [(*of, found) for of, found in ids.items()]


def _queues_from(value: Any) -> tuple[MessageQueue, ...] | None:
    """Give the queues; None where it does not say them, or a newer version does it otherwise."""
    try:
        return tuple(
            MessageQueue(topic, broker_name, queue_id)
            for topic, broker_name, queue_ids in value
            for queue_id in queue_ids
        )
    except (TypeError, ValueError):
        return None
