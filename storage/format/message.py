"""Messages as people and programs see them, and RocketMQ's reserved words.

``Message`` is what is sent, ``MessageExt`` what is stored and delivered
(org.apache.rocketmq.common.message). Reserved property names are those of MessageConst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from storage import native

from .compress import KEPT_BODY_SIZE, MAX_INFLATED_BODY_SIZE, decompress
from .errors import BodyError
from .host import unpack_host
from .message_id import offset_msg_id
from .names import exact_str
from .properties import find_property, parse_properties
from .sys_flag import MessageSysFlag as MessageSysFlag

PROPERTY_KEYS: Final = "KEYS"
"""The keys by which it can be found, separated by blanks."""
PROPERTY_TAGS: Final = "TAGS"
"""The word that subscriptions filter by."""
PROPERTY_WAIT_STORE_MSG_OK: Final = "WAIT"
"""Whether the sender waits until the device has it; false: until the log has it."""
PROPERTY_DELAY_TIME_LEVEL: Final = "DELAY"
"""The delay level at which it is to be delivered."""
PROPERTY_RETRY_TOPIC: Final = "RETRY_TOPIC"
"""Of a retry: the topic that it was first consumed from."""
PROPERTY_REAL_TOPIC: Final = "REAL_TOPIC"
"""Of a delayed or half message: its final topic."""
PROPERTY_REAL_QUEUE_ID: Final = "REAL_QID"
"""Of a delayed or half message: its final queue."""
PROPERTY_TRANSACTION_PREPARED: Final = "TRAN_MSG"
"""Whether it is the half message of a transaction."""
PROPERTY_PRODUCER_GROUP: Final = "PGROUP"
"""The producer's group, which answers checks of the transaction."""
PROPERTY_MIN_OFFSET: Final = "MIN_OFFSET"
"""Given to consumers: the first offset of the queue when it was pulled."""
PROPERTY_MAX_OFFSET: Final = "MAX_OFFSET"
"""Given to consumers: the end of the queue when it was pulled."""
PROPERTY_BUYER_ID: Final = "BUYER_ID"
PROPERTY_ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
"""Of a retry or a dead letter: the id of the message that failed first."""
PROPERTY_TRANSFER_FLAG: Final = "TRANSFER_FLAG"
PROPERTY_CORRECTION_FLAG: Final = "CORRECTION_FLAG"
PROPERTY_MQ2_FLAG: Final = "MQ2_FLAG"
PROPERTY_RECONSUME_TIME: Final = "RECONSUME_TIME"
"""Of a message for a retry topic: how often it has failed."""
PROPERTY_MSG_REGION: Final = "MSG_REGION"
"""The broker's region, for traces."""
PROPERTY_TRACE_SWITCH: Final = "TRACE_ON"
"""Whether it is traced."""
PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: Final = "UNIQ_KEY"
"""The id that its producer gave it; copies keep it."""
PROPERTY_MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
"""Of a message for a retry topic: after how many attempts it is a dead letter."""
PROPERTY_CONSUME_START_TIMESTAMP: Final = "CONSUME_START_TIME"
"""Given to listeners: when consuming it began, ms since 1970."""
PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
"""Of the end of a transaction: the queue offset of its half message."""
PROPERTY_TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
"""How often the transaction was checked with the producer."""
PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
"""How long the transaction is not checked."""
PROPERTY_INSTANCE_ID: Final = "INSTANCE_ID"
PROPERTY_CORRELATION_ID: Final = "CORRELATION_ID"
"""Joins a reply to its request."""
PROPERTY_MESSAGE_REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
"""The client that waits for the reply."""
PROPERTY_MESSAGE_TTL: Final = "TTL"
"""How long the requester waits for the reply, ms."""
PROPERTY_REPLY_MESSAGE_ARRIVE_TIME: Final = "ARRIVE_TIME"
PROPERTY_PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
PROPERTY_CLUSTER: Final = "CLUSTER"
"""The cluster of the broker that stored it."""
PROPERTY_MESSAGE_TYPE: Final = "MSG_TYPE"
"""Marks the reply to a request."""
PROPERTY_INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
"""The light queues that it is in, too."""
PROPERTY_INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
"""Its offsets in those light queues."""

RESERVED_PROPERTIES: Final[frozenset[str]] = frozenset(
    value for name, value in list(globals().items()) if name.startswith("PROPERTY_")
)
"""Names that a user property may not have (MessageConst.STRING_HASH_SET)."""

KEY_SEPARATOR: Final = " "

SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
AUTO_CREATE_TOPIC_KEY_TOPIC: Final = "TBW102"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
BENCHMARK_TOPIC: Final = "BenchmarkTest"
OFFSET_MOVED_EVENT: Final = "OFFSET_MOVED_EVENT"
TRANS_HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
TRANS_OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRANS_CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
RETRY_GROUP_TOPIC_PREFIX: Final = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
SYSTEM_TOPIC_PREFIX: Final = "rmq_sys_"

NOT_ALLOWED_SEND_TOPICS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        TRANS_HALF_TOPIC,
        TRANS_OP_HALF_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_EVENT,
    }
)
"""Topics that clients may not send to (TopicValidator.NOT_ALLOWED_SEND_TOPIC_SET)."""

SYSTEM_TOPICS: Final = NOT_ALLOWED_SEND_TOPICS | {
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    BENCHMARK_TOPIC,
    TRACE_TOPIC,
}
"""Topics that may not be created, changed or deleted (TopicValidator.SYSTEM_TOPIC_SET)."""


def is_system_topic(topic: str) -> bool:
    """Return whether a topic belongs to RocketMQ itself (TopicValidator.isSystemTopic)."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def retry_topic(group: str) -> str:
    """Name the topic of a consumer group's retries (MixAll.getRetryTopic)."""
    return RETRY_GROUP_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """Name the topic of a consumer group's dead letters (MixAll.getDLQTopic)."""
    return DLQ_GROUP_TOPIC_PREFIX + group


class MessageQueue(NamedTuple):
    """One queue of a topic: what consumers divide among themselves."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        """As sentences and log records name it."""
        return f"queue {self.queue_id} of {self.topic} on {self.broker_name}"


_COMPRESSED: Final = MessageSysFlag.COMPRESSED_FLAG


# Compiled code makes the messages, where there is some: it gives the class its base and its type.
# After the class, it replaces ``__init__`` and ``properties``.
if TYPE_CHECKING or native.compiled is None:
    _Made = object
    _Called = type
else:
    _Made = native.compiled.Made
    _Called = native.compiled.CalledAtOnce


class Message(_Made, metaclass=_Called):
    """A message to send. The broker checks limits when it is sent.

    ``tags``, ``keys`` and ``delay_time_level`` live in ``properties`` under TAGS, KEYS and DELAY;
    keys may be given as one string, or as several that are joined by blanks.
    """

    __slots__ = ("body", "flag", "properties", "topic")

    topic: str
    body: bytes
    flag: int
    properties: dict[str, str]

    def __init__(
        self,
        topic: str,
        body: bytes,
        *,
        tags: str | None = None,
        keys: str | Iterable[str] | None = None,
        flag: int = 0,
        delay_time_level: int = 0,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.topic = topic if type(topic) is str else exact_str(topic)
        self.body = body
        self.flag = flag
        try:
            own = self.properties = dict(properties) if properties else {}
        except (TypeError, ValueError):
            raise TypeError(
                f"properties are {properties!r}; they are a dict of names and values"
            ) from None
        if tags:
            own[PROPERTY_TAGS] = tags if type(tags) is str else exact_str(tags)
        if keys:
            if type(keys) is str:
                own[PROPERTY_KEYS] = keys
            else:
                self.keys = keys
        if delay_time_level:
            self.delay_time_level = delay_time_level

    @property
    def tags(self) -> str | None:
        """The tag (one in practice), None if there is none."""
        return self.get_property(PROPERTY_TAGS)

    @tags.setter
    def tags(self, tags: str | None) -> None:
        self._set(PROPERTY_TAGS, tags)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys by which the message can be found, in order, without empty ones."""
        return split_keys(self.get_property(PROPERTY_KEYS))

    @keys.setter
    def keys(self, keys: str | Iterable[str] | None) -> None:
        try:
            joined = keys if keys is None or isinstance(keys, str) else KEY_SEPARATOR.join(keys)
        except TypeError:
            raise TypeError(f"keys are {keys!r}; they are a str, or several") from None
        self._set(PROPERTY_KEYS, joined)

    @property
    def delay_time_level(self) -> int:
        """Level 1..18 in the table of delays; 0 for none, or if the property is no number."""
        text = self.get_property(PROPERTY_DELAY_TIME_LEVEL) or ""
        try:
            return int(text)
        except ValueError:
            return 0

    @delay_time_level.setter
    def delay_time_level(self, level: int) -> None:
        """Raises TypeError for what is no whole number, ValueError below 0."""
        given: object = level
        if not isinstance(given, int):
            raise TypeError(f"delay_time_level is {level!r}; it is a whole number, 0 for no delay")
        if level < 0:
            raise ValueError(f"delay_time_level is {level}; levels begin at 1, 0 is no delay")
        self._set(PROPERTY_DELAY_TIME_LEVEL, str(level) if level else None)

    def get_property(self, name: str) -> str | None:
        """Read one property; None if it is not set."""
        return self.properties.get(name)

    def _set(self, name: str, value: str | None) -> None:
        if value:
            self.properties[name] = exact_str(value)
        else:
            self.properties.pop(name, None)

    def __repr__(self) -> str:
        try:
            body = f"{len(self.body)} bytes"
        except TypeError:
            body = f"body={self.body!r}"
        return f"{type(self).__name__}(topic={self.topic!r}, {body})"


if not TYPE_CHECKING and native.compiled is not None:
    # Programs that send make one for each message: half of that time was Python's. The dict was
    # half of the rest, and few programs read it.
    native.compiled.bind_message(Message)
    Message.properties = native.compiled.make_late(Message.__init__)
    Message.__init__ = native.compiled.Made.__init__


def split_keys(keys: str | None) -> tuple[str, ...]:
    """Split a KEYS value at single blanks and leave out empty parts (IndexService.buildIndex)."""
    if not keys:
        return ()
    if KEY_SEPARATOR not in keys:
        return (keys,)
    return tuple(key for key in keys.split(KEY_SEPARATOR) if key)


class MessageExt(Message):
    """A message as it is stored: made by ``storage.format.record.decode_record``.

    Times are ms since the epoch; hosts are ``ip:port``, IPv6 in brackets. ``stored_body`` and
    ``property_bytes`` are those on disk; ``body`` and ``properties`` are derived from them on
    first use. Reading ``body`` of a compressed message inflates it, up to 64 MiB: more raises
    BodyTooLargeError, damage BodyError, both with topic, queue and offset in their text
    (``inflated_body`` takes another limit, ``raw_body`` is what is stored).
    Assigning ``body`` or ``properties`` changes the object only, never the store.

    ``added_property_bytes`` are properties that a client adds to what it has pulled, written alike;
    of two with one name the added one counts. Many messages share one such object: assigning it
    is its whole cost until a property is read.
    """

    __slots__ = (
        "_added",
        "_body",
        "_properties",
        "_stored",
        "added_property_bytes",
        "body_crc",
        "born_host_bytes",
        "born_timestamp",
        "commitlog_offset",
        "prepared_transaction_offset",
        "property_bytes",
        "queue_id",
        "queue_offset",
        "reconsume_times",
        "store_host_bytes",
        "store_size",
        "store_timestamp",
        "stored_body",
        "sys_flag",
        "version",
    )

    queue_id: int
    queue_offset: int
    commitlog_offset: int
    store_size: int
    body_crc: int
    sys_flag: int
    born_timestamp: int
    born_host_bytes: bytes
    store_timestamp: int
    store_host_bytes: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    stored_body: bytes
    property_bytes: bytes
    added_property_bytes: bytes
    version: int
    _stored: bytes
    # Head and properties of the record; set by compiled code only, which makes the fields of it
    # when they are first read.

    def __init__(
        self,
        topic: str,
        stored_body: bytes,
        property_bytes: bytes = b"",
        *,
        flag: int = 0,
        queue_id: int = 0,
        queue_offset: int = 0,
        commitlog_offset: int = 0,
        store_size: int = 0,
        body_crc: int = 0,
        sys_flag: int = 0,
        born_timestamp: int = 0,
        born_host_bytes: bytes = bytes(8),
        store_timestamp: int = 0,
        store_host_bytes: bytes = bytes(8),
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        version: int = 1,
    ) -> None:
        self.topic = topic
        self.flag = flag
        self.stored_body = stored_body
        self.property_bytes = property_bytes
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.commitlog_offset = commitlog_offset
        self.store_size = store_size
        self.body_crc = body_crc
        self.sys_flag = sys_flag
        self.born_timestamp = born_timestamp
        self.born_host_bytes = born_host_bytes
        self.store_timestamp = store_timestamp
        self.store_host_bytes = store_host_bytes
        self.reconsume_times = reconsume_times
        self.prepared_transaction_offset = prepared_transaction_offset
        self.version = version
        self.added_property_bytes = b""
        self._body: bytes | None = None
        self._properties: dict[str, str] | None = None
        self._added = b""  # of the added ones, those that ``_properties`` has; set with it

    @property
    def body(self) -> bytes:
        """The body as it was sent, inflated if it is stored compressed.

        An inflated body of more than 1 MiB is not kept: each use inflates it again.
        """
        body = self._body
        if body is None:
            if not self.sys_flag & _COMPRESSED:
                return self.stored_body
            return self._inflated_once()
        return body

    @body.setter
    def body(self, body: bytes) -> None:
        self._body = body

    def _inflated_once(self) -> bytes:
        """The body of a compressed message, which keeps it if it is small."""
        try:
            body = self.inflated_body(MAX_INFLATED_BODY_SIZE)
        except BodyError as error:
            raise error.of(self.place) from None
        if len(body) <= KEPT_BODY_SIZE:
            self._body = body
        return body

    @property
    def raw_body(self) -> bytes:
        """The body as it is stored: compressed if ``sys_flag`` says so. It can always be read."""
        return self.stored_body

    @property
    def place(self) -> str:
        """Topic, queue, offset and id, for errors and warnings."""
        return (
            f"message {self.msg_id} (topic {self.topic}, queue {self.queue_id}, "
            f"offset {self.queue_offset})"
        )

    def inflated_body(self, limit: int) -> bytes:
        """Give the body as it was sent; BodyTooLargeError if it inflates beyond ``limit`` bytes."""
        return decompress(self.stored_body, self.sys_flag, limit)

    @property
    def properties(self) -> dict[str, str]:
        """All properties, reserved ones too."""
        properties = self._properties
        added = self.added_property_bytes
        if properties is None:
            properties = self._properties = parse_properties(self.property_bytes)
            self._added = b""
        if added is not self._added:
            known = self._added
            added_since = added[len(known) :] if added.startswith(known) else added
            properties.update(parse_properties(added_since))
            self._added = added
        return properties

    @properties.setter
    def properties(self, properties: dict[str, str]) -> None:
        self._properties = properties
        self._added = self.added_property_bytes

    def get_property(self, name: str) -> str | None:
        """Read one property, without parsing the others."""
        if self._properties is not None:
            return self.properties.get(name)
        added = self.added_property_bytes
        if not added:
            return find_property(self.property_bytes, name)
        return find_property(self.property_bytes + b"\x02" + added, name)

    @property
    def born_host(self) -> str:
        """The producer's ``ip:port``; IPv6 as ``[ip]:port``."""
        return unpack_host(self.born_host_bytes)

    @property
    def store_host(self) -> str:
        """The broker's ``ip:port`` when the message was stored."""
        return unpack_host(self.store_host_bytes)

    @property
    def offset_msg_id(self) -> str:
        """The broker's id: store host and commit log offset in hex."""
        return offset_msg_id(self.store_host_bytes, self.commitlog_offset)

    @property
    def msg_id(self) -> str:
        """The client's id (UNIQ_KEY), or the broker's if the client gave none."""
        return self.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or self.offset_msg_id

    @property
    def index_keys(self) -> tuple[str, ...]:
        """The keys that enter the index, in order: UNIQ_KEY, then the parts of KEYS."""
        unique = self.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        return (unique, *self.keys) if unique else self.keys

    def __repr__(self) -> str:
        return (
            f"MessageExt(topic={self.topic!r}, queue_id={self.queue_id}, "
            f"queue_offset={self.queue_offset}, commitlog_offset={self.commitlog_offset})"
        )


PURE_BODY: Final = vars(MessageExt)["body"].fget
PURE_PROPERTIES: Final = vars(MessageExt)["properties"].fget
"""The references of what is compiled: functions of a message."""

# Fields, ``body`` and ``properties`` are read by compiled code from now on, where there is some.
native.form("bind", native.nothing)(MessageExt)
