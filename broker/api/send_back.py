"""Retrying: giving messages back that a consumer could not consume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from storage.errors import RocketMQError


class SendBackRequest(NamedTuple):
    """One message given back (ConsumerSendMsgBackRequestHeader); its body stays where it is.

    ``commitlog_offset`` names the stored record. ``delay_level`` -1: to the dead letters, 0: the
    broker decides (3 + attempts so far), else that level. ``max_reconsume_times`` None: the
    group's. ``failure`` are user properties with the reason, see broker.api.failure_reason.
    """

    group: str
    origin_topic: str
    commitlog_offset: int
    origin_msg_id: str
    delay_level: int = 0
    max_reconsume_times: int | None = None
    failure: Mapping[str, str] = {}


class SendBackApi(Protocol):
    """Giving messages back."""

    def send_message_back(self, request: SendBackRequest) -> None:
        """Store the message for its next attempt, or as a dead letter (CONSUMER_SEND_MSG_BACK).

        It is stored when this returns. Raises SubscriptionGroupNotExistError, NoPermissionError,
        MessageIllegalError if it has no room for a retry, in its properties or in a log file (a
        dead letter has those that fit), and BrokerSystemError if it cannot be read or stored.
        """
        ...

    def send_messages_back(self, requests: Sequence[SendBackRequest]) -> list[RocketMQError | None]:
        """Store messages as ``send_message_back`` does, in their order and with fewer puts.

        Gives for each request None, or the error that it would raise alone. The requests before and
        after a failed one are stored all the same.
        """
        ...
