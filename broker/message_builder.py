"""From what a producer sends to what the store keeps: the property rules of a 4.9 broker.

Plain send     UNIQ_KEY if there is none, CLUSTER; WAIT is dropped (SendMessageProcessor, 4.9.1+)
Batch          the same, but WAIT stays, as the client's bytes of each item are kept
Delay level    stored in SCHEDULE_TOPIC_XXXX, queue level - 1, with REAL_TOPIC and REAL_QID; WAIT
               stays; a level beyond the table becomes the last one (CommitLog.asyncPutMessage)

Java writes properties in the order of its hash map, which means nothing: here the producer's come
first, as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from storage.errors import InvalidMessageError
from storage.format.delay import capped_level, delay_ms
from storage.format.encode import MessageInner
from storage.format.properties import encode_properties
from storage.model import (
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    SCHEDULE_TOPIC,
    split_keys,
)

from .errors import MessageIllegalError, NoPermissionError
from .validation import check_body_size, check_properties, check_properties_size

if TYPE_CHECKING:
    from storage.model import Message

    from .config import BrokerConfig

_NO_WAIT = "true"


class Origin(NamedTuple):
    """Where and when messages come from: times in ms, hosts packed."""

    born_timestamp: int
    born_host: bytes
    store_host: bytes
    sys_flag: int = 0
    reconsume_times: int = 0


class Schedule(NamedTuple):
    """Where a delayed message waits: level (0 = not delayed), and how long."""

    level: int
    delay_ms: int


NOT_DELAYED = Schedule(0, -1)


class MessageBuilder:
    """Makes the store's messages. Holds settings only; safe for threads."""

    def __init__(
        self, config: BrokerConfig, delays_ms: Sequence[int], max_message_size: int
    ) -> None:
        self._cluster = config.broker_cluster_name
        self._reject_transactions = config.reject_transaction_message
        self._delays_ms = delays_ms
        self._max_message_size = max_message_size

    def build(
        self, message: Message, topic: str, queue_id: int, unique_id: str, origin: Origin
    ) -> tuple[MessageInner, str]:
        """Make one message of a plain send, perhaps delayed; gives it and its msg_id.

        ``unique_id`` is used if the message has none. Raises MessageIllegalError.
        """
        check_body_size(message.body, self._max_message_size)
        properties = dict(message.properties)
        schedule = self.schedule(properties)
        wait = properties.pop(PROPERTY_WAIT_STORE_MSG_OK, _NO_WAIT)
        unique_id = properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_id)
        properties[PROPERTY_CLUSTER] = self._cluster
        if schedule.level:
            self.put_schedule(properties, topic, queue_id, schedule, wait)
            topic, queue_id = SCHEDULE_TOPIC, schedule.level - 1
        return self._inner(message, topic, queue_id, properties, origin, schedule), unique_id

    def build_item(
        self, message: Message, queue_id: int, unique_id: str, origin: Origin
    ) -> tuple[MessageInner, str]:
        """Make one message of a batch; gives it and its msg_id. Raises MessageIllegalError."""
        check_body_size(message.body, self._max_message_size)
        properties = dict(message.properties)
        if self.schedule(properties).level:
            raise MessageIllegalError("a batch can not be delayed; send its messages one by one")
        unique_id = properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_id)
        properties.setdefault(PROPERTY_WAIT_STORE_MSG_OK, _NO_WAIT)
        properties[PROPERTY_CLUSTER] = self._cluster
        inner = self._inner(message, message.topic, queue_id, properties, origin, NOT_DELAYED)
        return inner, unique_id

    def shared_properties(
        self, properties: Mapping[str, str] | None
    ) -> tuple[dict[str, str], Schedule]:
        """Make the properties that the messages of a column share, without ids and schedule."""
        shared = dict(properties or {})
        if shared.pop(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, None) is not None:
            raise MessageIllegalError("messages of a column can not share one UNIQ_KEY")
        schedule = self.schedule(shared)
        shared.pop(PROPERTY_WAIT_STORE_MSG_OK, None)
        shared[PROPERTY_CLUSTER] = self._cluster
        return shared, schedule

    def schedule(self, properties: Mapping[str, str]) -> Schedule:
        """Read the delay that properties ask for; refuses half messages where they are refused."""
        if (
            self._reject_transactions
            and properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"
        ):
            raise NoPermissionError("this broker takes no transaction messages")
        text = properties.get(PROPERTY_DELAY_TIME_LEVEL)
        if not text:
            return NOT_DELAYED
        try:
            level = int(text)
        except ValueError:
            raise MessageIllegalError(f"delay level {text!r} is no number") from None
        if level <= 0:
            return NOT_DELAYED
        level = capped_level(level, self._delays_ms)
        return Schedule(level, delay_ms(level, self._delays_ms))

    def put_schedule(
        self,
        properties: dict[str, str],
        topic: str,
        queue_id: int,
        schedule: Schedule,
        wait: str = _NO_WAIT,
    ) -> None:
        """Note where a delayed message goes when its time has come."""
        properties[PROPERTY_DELAY_TIME_LEVEL] = str(schedule.level)
        properties[PROPERTY_WAIT_STORE_MSG_OK] = wait
        properties[PROPERTY_REAL_TOPIC] = topic
        properties[PROPERTY_REAL_QUEUE_ID] = str(queue_id)

    def encode(self, properties: Mapping[str, str]) -> bytes:
        """Encode properties; MessageIllegalError for U+0001, U+0002 and above 32,767 bytes."""
        try:
            encoded = encode_properties(properties)
        except InvalidMessageError as error:
            raise MessageIllegalError(str(error)) from error
        except UnicodeEncodeError as error:
            raise MessageIllegalError("a property holds characters that are no Unicode") from error
        # A name ends at its U+0001; another one lies in a value, which the format could hold.
        if encoded.count(b"\x01") != encoded.count(b"\x02") + 1:
            check_properties(properties)
        check_properties_size(encoded)
        return encoded

    def _inner(
        self,
        message: Message,
        topic: str,
        queue_id: int,
        properties: dict[str, str],
        origin: Origin,
        schedule: Schedule,
    ) -> MessageInner:
        unique_id = properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
        return MessageInner(
            topic,
            queue_id,
            message.body,
            self.encode(properties),
            origin.born_timestamp,
            origin.born_host,
            origin.store_host,
            message.flag,
            origin.sys_flag,
            origin.reconsume_times,
            0,
            properties.get(PROPERTY_TAGS),
            (unique_id, *split_keys(properties.get(PROPERTY_KEYS))),
            schedule.level,
            schedule.delay_ms,
        )
