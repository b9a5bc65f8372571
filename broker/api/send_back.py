"""Retrying: giving messages back that a consumer could not consume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from storage.errors import RocketMQError


class SendBackRequest(NamedTuple):
    """One message given back (ConsumerSendMsgBackRequestHeader); its body stays where it is.

    ``commitlog_offset`` says which stored instance it is. ``delay_level`` -1: to the dead letters,
    0: the broker decides (3 + attempts so far), else that level. ``max_reconsume_times`` None: the
    group's. ``failure`` are user properties that tell why, see broker.retry.failure_reason.
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

        When this returns it is stored. Raises SubscriptionGroupNotExistError, NoPermissionError,
        and BrokerSystemError if it can not be read or stored.
        """
        ...

    def send_messages_back(self, requests: Sequence[SendBackRequest]) -> list[RocketMQError | None]:
        """Store messages as ``send_message_back`` does, in their order and with fewer puts.

        Gives for each request None, or what was raised if it were given back alone. Those that
        stand before or behind it are stored all the same.
        """
        ...
