"""Contents of control messages to single clients and of their answers, in JSON and back."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from broker.api.members import ConsumeDirectlyResult, ConsumeDirectlyStatus
from broker.api.transactions import CheckTransactionState
from storage.format.message import MessageExt, MessageQueue

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


def message_json(message: MessageExt) -> Json:
    """Write a message, with properties and body as changed since it was read."""
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
    """Read a result that was sent as a plain dict."""
    status = ConsumeDirectlyStatus(value["consume_result"])
    return ConsumeDirectlyResult(**{**value, "consume_result": status})
