"""Requests of a broker to single clients, in any process (Broker2Client of 4.9)."""

from __future__ import annotations

import itertools
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.api.members import ConsumeDirectlyResult, ConsumeDirectlyStatus
from broker.api.transactions import CheckTransactionState
from broker.errors import BrokerSystemError
from storage.format.message import MessageExt, MessageQueue

from .notices import CHECK, Notices
from .process_info_json import members_of, producers_of

if TYPE_CHECKING:
    from broker.api.members import ClientHandler
    from storage.coordination.processes import ControlMessage

_RUNNING_INFO: Final = "running_info"
_STATUS: Final = "status"
_CONSUME: Final = "consume"
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


class ClientCalls:
    """Questions to clients, and their answers here.

    ``handler_of`` finds a client of this process by its id, if it consumes in a group (None: any).
    """

    def __init__(
        self,
        notices: Notices,
        handler_of: Callable[[str, str | None], ClientHandler | None],
        read_message: Callable[[int], MessageExt | None],
    ) -> None:
        self._notices = notices
        self._handler_of = handler_of
        self._read_message = read_message
        self._turn = itertools.count()

    def check_transaction(self, request: CheckTransactionState) -> bool:
        """Ask a producer of the request's group about a half message, each time another one.

        False if there is none. It answers with ``end_transaction``.
        """
        found = [
            (entry.name, client.client_id)
            for entry in self._notices.processes.living()
            for client in producers_of(entry, request.producer_group)
        ]
        if not found:
            return False
        process_entry, client_id = found[next(self._turn) % len(found)]
        control_message = {"kind": CHECK, "client": client_id, "request": check_json(request)}
        return self._notices.send(process_entry, control_message)

    def consumer_running_info(self, group: str, client_id: str) -> Mapping[str, Any]:
        """See MemberApi.consumer_running_info."""
        info: Mapping[str, Any] = self._ask(group, client_id, {"what": _RUNNING_INFO})
        return info

    def consumer_status(self, group: str, topic: str, client_id: str) -> Mapping[MessageQueue, int]:
        """See MemberApi.consumer_status."""
        return status_from(self._ask(group, client_id, {"what": _STATUS, "topic": topic}))

    def consume_message_directly(
        self, group: str, client_id: str, commitlog_offset: int
    ) -> ConsumeDirectlyResult:
        """See MemberApi.consume_message_directly."""
        question = {"what": _CONSUME, "offset": commitlog_offset}
        return consumed_from(self._ask(group, client_id, question))

    def _ask(self, group: str, client_id: str, question: ControlMessage) -> Any:
        question = {**question, "group": group, "client": client_id}
        for entry in self._notices.processes.living():
            if any(member.client.client_id == client_id for member in members_of(entry, group)):
                if entry.name == self._notices.name:
                    return self.answer(question)
                return self._notices.ask(entry.name, question)
        raise _not_online(group, client_id)

    # -- in the client's process --------------------------------------------------------------

    def answer(self, question: ControlMessage) -> Any:
        """Ask a client of this process; returns a value for JSON.

        Raises BrokerSystemError if there is no such client or message.
        """
        group, client_id = question["group"], question["client"]
        handler = self._handler_of(client_id, group)
        if handler is None:
            raise _not_online(group, client_id)
        if question["what"] == _RUNNING_INFO:
            return handler.consumer_running_info(group)
        if question["what"] == _STATUS:
            return status_json(handler.consumer_status(group, question["topic"]))
        message = self._read_message(question["offset"])
        if message is None:
            raise BrokerSystemError(f"there is no message at offset {question['offset']}")
        return handler.consume_message_directly(group, message)._asdict()

    def take_check(self, control_message: ControlMessage) -> None:
        """Pass a question about a half message to its producer, if it is still here."""
        handler = self._handler_of(control_message["client"], None)
        if handler is not None:
            handler.check_transaction_state(check_from(control_message["request"]))


def _not_online(group: str, client_id: str) -> BrokerSystemError:
    return BrokerSystemError(f"consumer {client_id} of group {group} is not online")


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
