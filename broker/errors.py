"""Errors of a broker: RocketMQ's response codes as exceptions.

RocketMQError
  BrokerError                     the broker answered with a code that is no success
    BrokerSystemError             SYSTEM_ERROR: the request makes no sense, or something broke
      ClientIdInUseError          a group has a member of that id already
      OffsetChangedError          progress has changed since the caller read it
      InvalidNameError            a topic's or group's name breaks a rule (also a ValueError)
    BrokerBusyError               SYSTEM_BUSY: try again later
    MessageIllegalError           MESSAGE_ILLEGAL: a message breaks a limit (also a ValueError)
    ServiceNotAvailableError      SERVICE_NOT_AVAILABLE: closing, or the disk is full
    NoPermissionError             NO_PERMISSION: topic, group or broker may not be used that way
    TopicNotExistError            TOPIC_NOT_EXIST
    SubscriptionParseError        SUBSCRIPTION_PARSE_FAILED: invalid expression (also a ValueError)
    SubscriptionGroupNotExistError  SUBSCRIPTION_GROUP_NOT_EXIST

A client sees these from every broker, local or remote. A broker in this process may also raise the
StoreErrors of its store (storage.errors): a client treats them as a broken connection.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from storage.errors import RocketMQError


class ResponseCode(IntEnum):
    """Codes of answers (org.apache.rocketmq.common.protocol.ResponseCode)."""

    SUCCESS = 0
    """Done."""
    SYSTEM_ERROR = 1
    """The request makes no sense to the broker, or something in it broke."""
    SYSTEM_BUSY = 2
    """The broker is overloaded."""
    REQUEST_CODE_NOT_SUPPORTED = 3
    """The request is unknown to the broker."""
    FLUSH_DISK_TIMEOUT = 10
    """Stored; the device did not confirm it in time."""
    SLAVE_NOT_AVAILABLE = 11
    """Stored; no slave was there to copy it."""
    FLUSH_SLAVE_TIMEOUT = 12
    """Stored; a slave did not confirm it in time."""
    MESSAGE_ILLEGAL = 13
    """The message breaks a limit: body, properties or topic."""
    SERVICE_NOT_AVAILABLE = 14
    """The broker takes no messages now: it is closing, or its disk is full."""
    VERSION_NOT_SUPPORTED = 15
    """The client is of a version that the broker does not serve."""
    NO_PERMISSION = 16
    """The topic, group or broker may not be read or written."""
    TOPIC_NOT_EXIST = 17
    """There is no such topic."""
    PULL_NOT_FOUND = 19
    """Nothing new at this offset yet."""
    PULL_RETRY_IMMEDIATELY = 20
    """Nothing of the subscription here: pull again further on."""
    PULL_OFFSET_MOVED = 21
    """The offset lies outside of the queue: go on at the offset in the answer."""
    QUERY_NOT_FOUND = 22
    """The requested object does not exist."""
    SUBSCRIPTION_PARSE_FAILED = 23
    """The subscription's expression cannot be read."""
    SUBSCRIPTION_NOT_EXIST = 24
    """The group has no subscription to this topic at the broker."""
    SUBSCRIPTION_NOT_LATEST = 25
    """The client's newest subscription has not reached the broker."""
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    """There is no such group."""
    CONSUMER_NOT_ONLINE = 206
    """No such consumer is there."""
    CONSUME_MSG_TIMEOUT = 207
    """A consumer did not finish a message in time."""
    NO_MESSAGE = 208
    """There is no such message."""
    FLOW_CONTROL = 215
    """The broker requires fewer requests."""


class BrokerError(RocketMQError):
    """A broker's answer that is no success: its response code, and its remark as one sentence."""

    default_code: ClassVar[ResponseCode] = ResponseCode.SYSTEM_ERROR

    def __init__(self, remark: str, code: ResponseCode | None = None) -> None:
        super().__init__(remark)
        self.remark = remark
        self.code = self.default_code if code is None else code


class BrokerSystemError(BrokerError):
    """The request makes no sense to the broker, or something in it broke."""


class InvalidNameError(BrokerSystemError, ValueError):
    """The name of a topic or group breaks a rule (TopicValidator, Validators)."""


class OffsetChangedError(BrokerSystemError):
    """Progress has changed since the caller read it; nothing was moved."""


class ClientIdInUseError(BrokerSystemError):
    """Another process is in the group under the same client id. ``holder`` names it."""

    def __init__(self, group: str, client_id: str, holder: str) -> None:
        super().__init__(
            f"group {group} has a member {client_id} already ({holder}): both would take the same "
            "queues; give one of them another instance name"
        )
        self.group = group
        self.client_id = client_id
        self.holder = holder


class BrokerBusyError(BrokerError):
    """The broker is overloaded; producers do not try again by themselves."""

    default_code = ResponseCode.SYSTEM_BUSY


class MessageIllegalError(BrokerError, ValueError):
    """A message breaks a limit: body, properties, topic or the rules of a batch."""

    default_code = ResponseCode.MESSAGE_ILLEGAL


class ServiceNotAvailableError(BrokerError):
    """The broker does not take messages now: it is closing, or its disk is full."""

    default_code = ResponseCode.SERVICE_NOT_AVAILABLE


class NoPermissionError(BrokerError):
    """The topic, the group or the broker may not be used that way."""

    default_code = ResponseCode.NO_PERMISSION


class TopicNotExistError(BrokerError):
    """The topic does not exist and may not be created by sending to it."""

    default_code = ResponseCode.TOPIC_NOT_EXIST


class SubscriptionParseError(BrokerError, ValueError):
    """A subscription's expression cannot be read, or its type is not supported."""

    default_code = ResponseCode.SUBSCRIPTION_PARSE_FAILED


class SubscriptionGroupNotExistError(BrokerError):
    """The consumer group does not exist and is not created by use."""

    default_code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


_CLASSES: dict[ResponseCode, type[BrokerError]] = {
    kind.default_code: kind
    for kind in (
        BrokerSystemError,
        BrokerBusyError,
        MessageIllegalError,
        ServiceNotAvailableError,
        NoPermissionError,
        TopicNotExistError,
        SubscriptionParseError,
        SubscriptionGroupNotExistError,
    )
}


def error_of(code: ResponseCode, remark: str) -> BrokerError:
    """Make the exception of a response code."""
    return _CLASSES.get(code, BrokerError)(remark, code)
