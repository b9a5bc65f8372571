"""Errors of the client.

RocketMQError
  ClientError                     the client could not do what was requested
    ClientStateError              not started, started twice, or shut down
      GroupRegisteredError        the client runs a producer or consumer of this group already
    ProgressMovedError            the group's progress was moved: read where to go on
    ClientConfigError             a setting out of its range, or missing (also a ValueError)
      ClientArgumentError         an argument of a wrong type (also a TypeError)
    RouteNotFoundError            no broker has a queue of the topic for this
    BrokerNotExistError           no broker of that name is known (any more)
    RemotingError                 no answer came: the broker may have done it, or not
      RemotingTimeoutError        no answer in time
    SendFailedError               all attempts to send failed, the last one is the cause
      SendTimeoutError            the time of the whole send was used up (also a TimeoutError)
    TooManyAsyncSendsError        the queue of asynchronous sends is full

A client also raises the errors of its broker (broker.errors). A broker in this process has
no connection to break: the StoreErrors of its store take the place of RemotingErrors, see
``UNANSWERED``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from storage.errors import RocketMQError, StoreError

if TYPE_CHECKING:
    from storage.format.message import MessageQueue


class ClientErrorCode(IntEnum):
    """Codes of errors that no broker sent (org.apache.rocketmq.client.common.ClientErrorCode)."""

    CONNECT_BROKER_EXCEPTION = 10001
    ACCESS_BROKER_TIMEOUT = 10002
    BROKER_NOT_EXIST_EXCEPTION = 10003
    NO_NAME_SERVER_EXCEPTION = 10004
    NOT_FOUND_TOPIC_EXCEPTION = 10005


class ClientError(RocketMQError):
    """The client could not do what was requested; ``code`` is RocketMQ's, None if it has none."""

    code: int | None = None


class ClientStateError(ClientError):
    """A producer or consumer is not in the state for this: CREATE_JUST, RUNNING, ..."""


class GroupRegisteredError(ClientStateError):
    """This client runs a producer, or a consumer, of the group already."""

    def __init__(self, kind: str, group: str, client_id: str) -> None:
        super().__init__(
            f"the {kind} group {group} has been created before in client {client_id}; "
            "use another group, or another instance_name"
        )
        self.group = group


class ProgressMovedError(ClientError):
    """The group's progress in a queue was moved since this consumer read or noted it."""

    def __init__(self, group: str, queue: MessageQueue, offset: int | None) -> None:
        to = "was removed" if offset is None else f"was moved to {offset}"
        super().__init__(
            f"the progress of group {group} in {queue} {to}, for instance by a reset; "
            "fetch_consume_offset(queue) gives the offset to go on from"
        )
        self.group = group
        self.queue = queue
        self.offset = offset


class ClientConfigError(ClientError, ValueError):
    """A setting is out of its range, or a required one is missing."""


class ClientArgumentError(ClientConfigError, TypeError):
    """An argument of a wrong type; the text names what was given and what is allowed."""


def check_number(name: str, value: object) -> None:
    """Refuse an argument that is no number, or has a fraction. Raises ClientConfigError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ClientConfigError(f"{name} is {value!r}; it is a number")
    if value % 1:
        raise ClientConfigError(f"{name} is {value}; it is a whole number")


def check_range(name: str, value: float, low: int, high: int, *, but: str = "") -> None:
    """Refuse a number outside of low..high. ``but`` names what is allowed beside them.

    Raises ClientConfigError.
    """
    if not low <= value <= high:
        raise ClientConfigError(f"{name} is {value}; it must be {low} to {high}{but}")


class RouteNotFoundError(ClientError):
    """No broker has a queue of the topic that may be written, or read."""

    code = ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION

    def __init__(self, topic: str, *, brokers: int) -> None:
        """``brokers``: how many brokers the client has."""
        if brokers:
            what = (
                f"no broker has topic {topic}, or none lets it be written; create it, or let a "
                "broker create topics (auto_create_topic_enable)"
            )
        else:
            what = (
                f"the client has no broker to send topic {topic} to; pass "
                "brokers=[EmbeddedBroker.open(FOLDER)], or use Producer.open(FOLDER, GROUP)"
            )
        super().__init__(what)
        self.topic = topic


class BrokerNotExistError(ClientError):
    """No broker of that name is known, or not any more."""

    code = ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION

    def __init__(self, broker_name: str, known: Sequence[str] = ()) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"there is no broker {broker_name}; the client knows {names}")
        self.broker_name = broker_name


class RemotingError(ClientError):
    """No answer came from a broker: the request may have been done, or not."""

    code = ClientErrorCode.CONNECT_BROKER_EXCEPTION


class RemotingTimeoutError(RemotingError, TimeoutError):
    """No answer came in time."""

    code = ClientErrorCode.ACCESS_BROKER_TIMEOUT


UNANSWERED: Final = (RemotingError, StoreError, OSError)
"""What a broker call raises when no answer came (RemotingException)."""


class SendFailedError(ClientError):
    """Every attempt to send failed; the last failure is the cause.

    The message may be stored all the same, if an attempt ended without an answer. ``brokers_sent``
    names the broker of each attempt, ``cost_ms`` is the time of all of them; ``code`` is a
    ClientErrorCode, or the broker's ResponseCode if the last attempt was refused.
    """

    def __init__(
        self,
        topic: str,
        brokers_sent: Sequence[str],
        cost_ms: int,
        cause: Exception | None,
        code: int | None = None,
    ) -> None:
        times = len(brokers_sent)
        attempts = "1 attempt" if times == 1 else f"{times} attempts"
        super().__init__(
            f"sending to topic {topic} failed after {attempts} in {cost_ms} ms, at "
            f"{', '.join(brokers_sent) or 'no broker'}; the last error: {cause}"
        )
        self.topic = topic
        self.brokers_sent = tuple(brokers_sent)
        self.cost_ms = cost_ms
        self.code = code


class SendTimeoutError(SendFailedError, TimeoutError):
    """The time for the whole send was used up before an attempt succeeded.

    ``brokers_sent`` is empty if not even one attempt was made.
    """

    code = ClientErrorCode.ACCESS_BROKER_TIMEOUT

    def __init__(
        self,
        topic: str,
        timeout_ms: int,
        brokers_sent: Sequence[str],
        cost_ms: int,
        cause: Exception | None = None,
    ) -> None:
        tried = f"after attempts at {', '.join(brokers_sent)}" if brokers_sent else "before any try"
        last = f"; the last error: {cause}" if cause else ""
        ClientError.__init__(
            self,
            f"sending to topic {topic} took {cost_ms} ms of {timeout_ms} ms allowed, {tried}{last}",
        )
        self.topic = topic
        self.timeout_ms = timeout_ms
        self.brokers_sent = tuple(brokers_sent)
        self.cost_ms = cost_ms


class TooManyAsyncSendsError(ClientError):
    """The queue of asynchronous sends is full; wait for callbacks before sending more."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} asynchronous sends wait already; wait for some of them to end")
        self.limit = limit
