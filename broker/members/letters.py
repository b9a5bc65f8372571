"""What brokers of one store write to each other, in JSON and back.

``members/NAME.json`` says which clients a process has; letters carry notices, questions and
answers (storage.sharing.stations, broker.notices).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

from broker.port.members import (
    ClientDescription,
    ConsumeDirectlyResult,
    ConsumeDirectlyStatus,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from broker.port.progress import ConsumeFromWhere
from broker.port.transactions import CheckTransactionState
from storage.model import MessageExt, MessageQueue
from storage.sharing.stations import Said

from .group_table import Member

Json = dict[str, Any]

_PLAIN: Final = (
    "topic",
    "flag",
    "queue_id",
    "queue_offset",
    "commitlog_offset",
    "store_size",
    "body_crc",
    "sys_flag",
    "born_timestamp",
    "store_timestamp",
    "reconsume_times",
    "prepared_transaction_offset",
    "version",
)
_BYTES: Final = ("stored_body", "property_bytes", "born_host_bytes", "store_host_bytes")


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


def message_json(message: MessageExt) -> Json:
    """Write a message, with properties and body that were changed since it was read."""
    value: Json = {name: getattr(message, name) for name in _PLAIN}
    value.update({name: b64encode(getattr(message, name)).decode() for name in _BYTES})
    value["properties"] = message.properties
    return value


def message_from(value: Mapping[str, Any]) -> MessageExt:
    """Read what ``message_json`` wrote."""
    fields = {name: value[name] for name in _PLAIN}
    fields.update({name: b64decode(value[name]) for name in _BYTES})
    message = MessageExt(**fields)
    message.properties = dict(value["properties"])
    return message


def check_json(request: CheckTransactionState) -> Json:
    """Write a question about a half message."""
    return {**request._asdict(), "message": message_json(request.message)}


def check_from(value: Mapping[str, Any]) -> CheckTransactionState:
    """Read what ``check_json`` wrote."""
    return CheckTransactionState(**{**value, "message": message_from(value["message"])})


def status_json(status: Mapping[MessageQueue, int]) -> list[list[Any]]:
    """Write offsets by queue."""
    return [[*queue, offset] for queue, offset in status.items()]


def status_from(value: list[list[Any]]) -> dict[MessageQueue, int]:
    """Read what ``status_json`` wrote."""
    return {MessageQueue(*queue): offset for *queue, offset in value}


def consumed_from(value: Mapping[str, Any]) -> ConsumeDirectlyResult:
    """Read a result that went as a plain dict."""
    status = ConsumeDirectlyStatus(value["consume_result"])
    return ConsumeDirectlyResult(**{**value, "consume_result": status})
