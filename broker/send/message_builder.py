"""From what a producer sends to what the store keeps: the property rules of a 4.9 broker.

Plain send     UNIQ_KEY if there is none, CLUSTER; WAIT is dropped (SendMessageProcessor, 4.9.1+)
Batch          the same, but WAIT stays, as the client's bytes of each item are kept
Delay level    stored in SCHEDULE_TOPIC_XXXX, queue level - 1, with REAL_TOPIC and REAL_QID; WAIT
               stays; a level beyond the table becomes the last one (CommitLog.asyncPutMessage)
Half message   TRAN_MSG=true: stored in RMQ_SYS_TRANS_HALF_TOPIC, queue 0, with REAL_TOPIC and
               REAL_QID, without transaction bits; WAIT stays (TransactionalMessageBridge)

Java writes properties in the order of its hash map, which has no meaning: here the producer's come
first, in their order. Where the broker stores a message again, under another topic, the bytes of
its properties stay as they are unless a property changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.errors import MessageIllegalError, NoPermissionError
from broker.validation import check_body_size, check_properties, check_properties_size
from storage.errors import InvalidMessageError
from storage.format.delay import capped_level, delay_ms
from storage.format.encode import MessageInner, record_size
from storage.format.layout import BLANK_SIZE
from storage.format.message import (
    PROPERTY_CLUSTER,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    PROPERTY_KEYS,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    split_keys,
)
from storage.format.names import exact_str
from storage.format.plain_message import inner_message, prepare_sent
from storage.format.properties import encode_properties
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from storage.format.message import Message, MessageExt
    from storage.format.prepared import PreparedRecords

_new_tuple: Final = tuple.__new__  # does the same as a NamedTuple's own, in half the time
DEFAULT_LOG_FILE_SIZE: Final = 1 << 30
"""Bytes of a commit log file of a store that names no other size (mappedFileSizeCommitLog)."""
_WAIT = "true"
_UNTIL_COMMIT: Final = 300
"""More bytes than checks add to a half message (their number, its first queue offset), and its op
message has, which is stored in the same file as the committed message."""
_LIGHT_OFFSETS = PROPERTY_INNER_MULTI_QUEUE_OFFSET.encode()
_TRANSACTION_BITS = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


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
        self,
        config: BrokerConfig,
        delays_ms: Sequence[int],
        max_message_size: int,
        log_file_size: int = DEFAULT_LOG_FILE_SIZE,
    ) -> None:
        self._cluster = config.broker_cluster_name
        self._keep_reasons = config.keep_failure_reasons
        self._reject_transactions = config.reject_transaction_message
        self._delays_ms = delays_ms
        self._max_message_size = max_message_size
        self._log_file_size = log_file_size
        cluster = {PROPERTY_CLUSTER: self._cluster}
        self.added: Final = self.encode(cluster)
        """Properties that plain messages get, encoded."""
        self.added_to_items: Final = self.encode({PROPERTY_WAIT_STORE_MSG_OK: _WAIT, **cluster})

    def build(
        self, message: Message, topic: str, queue_id: int, unique_id: str, origin: Origin
    ) -> tuple[MessageInner, str]:
        """Make one message of a plain send, perhaps delayed; gives it and its msg_id.

        ``unique_id`` is used if the message has none. Raises MessageIllegalError.
        """
        plain = inner_message(
            topic, queue_id, self.added, self._max_message_size, origin, message, unique_id
        )
        if plain is not None:
            return plain
        return self.build_any(message, topic, queue_id, unique_id, origin)

    def build_any(
        self, message: Message, topic: str, queue_id: int, unique_id: str, origin: Origin
    ) -> tuple[MessageInner, str]:
        """Do what ``build`` does in the general way."""
        check_body_size(message.body, self._max_message_size)
        properties = dict(message.properties)
        if not self._keep_reasons and message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            from broker.api.failure_reason import FAILURE_PROPERTIES  # most senders need none

            for name in FAILURE_PROPERTIES:
                properties.pop(name, None)
        schedule = self.schedule(properties)
        # Java's constructor of Message sets WAIT; clients replace it for a retry topic.
        wait = properties.pop(PROPERTY_WAIT_STORE_MSG_OK, None)
        if wait is None and not message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            wait = _WAIT
        unique_id = properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_id)
        properties[PROPERTY_CLUSTER] = self._cluster
        target, later = topic, 0
        # A retry of clients before 4.6.1 still has TRAN_MSG (SendMessageProcessor.sendMessage; the
        # asynchronous path of 4.9 does not handle it, and loses the message).
        retried = origin.reconsume_times > 0 and schedule.level > 0
        if is_half(properties) and not retried:
            self._check_half(schedule)
            _put_real(properties, topic, queue_id, wait)
            topic, queue_id, later = TRANS_HALF_TOPIC, 0, _UNTIL_COMMIT
            origin = origin._replace(sys_flag=origin.sys_flag & ~_TRANSACTION_BITS)
        elif schedule.level:
            self.put_schedule(properties, topic, queue_id, schedule, wait)
            topic, queue_id = SCHEDULE_TOPIC, schedule.level - 1
        inner = self._inner(message, topic, queue_id, properties, origin, schedule)
        if topic is not target:
            self.check_later_size(record_size(inner) + later, topic, target)
        return inner, unique_id

    def prepare_plain(
        self,
        messages: Sequence[Message],
        queue_id: int,
        unique_ids: Sequence[str] | None,
        origin: Origin,
    ) -> tuple[PreparedRecords, str] | None:
        """Encode the messages of a batch if all are plain; with it their msg_ids with commas.

        ``unique_ids[i]`` is for message i if it has none, None: all have theirs. Returns None if
        one is not plain, or together they are too large: then use ``build_items``.
        """
        topic, most = messages[0].topic, self._max_message_size
        added = self.added_to_items
        return prepare_sent(topic, queue_id, added, most, origin, messages, unique_ids)

    def build_items(
        self, messages: Sequence[Message], queue_id: int, unique_ids: Sequence[str], origin: Origin
    ) -> tuple[list[MessageInner], list[str]]:
        """Make the messages of a batch; gives them and their msg_ids. Raises MessageIllegalError.

        ``unique_ids[i]`` is for message i if it has none.
        """
        inners: list[MessageInner] = []
        msg_ids: list[str] = []
        for message, unique_id in zip(messages, unique_ids, strict=True):
            check_body_size(message.body, self._max_message_size)
            properties = dict(message.properties)
            if PROPERTY_DELAY_TIME_LEVEL in properties and self.schedule(properties).level:
                raise MessageIllegalError("a batch cannot be delayed; send its messages one by one")
            if PROPERTY_TRANSACTION_PREPARED in properties and is_half(properties):
                raise MessageIllegalError("a batch holds no half messages; send them one by one")
            msg_id = properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_id)
            if PROPERTY_WAIT_STORE_MSG_OK not in properties:
                properties[PROPERTY_WAIT_STORE_MSG_OK] = _WAIT
            properties[PROPERTY_CLUSTER] = self._cluster
            topic = exact_str(message.topic)
            inners.append(self._inner(message, topic, queue_id, properties, origin, NOT_DELAYED))
            msg_ids.append(msg_id)
        return inners, msg_ids

    def shared_properties(
        self, properties: Mapping[str, str] | None
    ) -> tuple[dict[str, str], Schedule]:
        """Make the properties that the messages of a column share, without ids and schedule.

        Raises MessageIllegalError.
        """
        shared = dict(properties or {})
        if shared.pop(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, None) is not None:
            raise MessageIllegalError("messages of a column cannot share one UNIQ_KEY")
        if is_half(shared):
            raise MessageIllegalError("a column holds no half messages; send them one by one")
        schedule = self.schedule(shared)
        shared.pop(PROPERTY_WAIT_STORE_MSG_OK, None)
        shared[PROPERTY_CLUSTER] = self._cluster
        return shared, schedule

    def again(
        self,
        message: MessageExt,
        topic: str,
        queue_id: int,
        properties: dict[str, str],
        *,
        sys_flag: int | None = None,
        reconsume_times: int | None = None,
        prepared_transaction_offset: int = 0,
    ) -> MessageInner:
        """Make a record of a stored message under another topic, delayed by its DELAY.

        ``properties`` become the message's and may be changed. Raises MessageIllegalError.
        """
        properties.pop(PROPERTY_INNER_MULTI_QUEUE_OFFSET, None)
        schedule = self.schedule(properties)
        target = topic
        if schedule.level:
            self.put_schedule(properties, topic, queue_id, schedule, None)
            topic, queue_id = SCHEDULE_TOPIC, schedule.level - 1
        inner = stored_again(
            message,
            topic,
            queue_id,
            encode_stored(properties),
            sys_flag=sys_flag,
            reconsume_times=reconsume_times,
            prepared_transaction_offset=prepared_transaction_offset,
            schedule=schedule,
        )
        if schedule.level:
            self.check_later_size(record_size(inner), topic, target)
        return inner

    def check_later_size(self, size: int, topic: str, target: str) -> None:
        """Refuse a record of ``size`` bytes that would fit into no log file under its real topic.

        It waits under ``topic``, and is stored again under ``target``, whose name may be longer:
        from there no delivery and no commit could take it. Both are one for a record that does not
        wait. Raises MessageIllegalError.
        """
        size += len(target.encode()) - len(topic.encode())
        if size + BLANK_SIZE > self._log_file_size:
            raise MessageIllegalError(
                f"{size} bytes do not fit into a commit log file of {self._log_file_size} bytes, "
                f"as the message is to be stored in topic {target}"
            )

    def schedule(self, properties: Mapping[str, str]) -> Schedule:
        """Read the delay in properties. Raises MessageIllegalError for no number."""
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
        wait: str | None = _WAIT,
    ) -> None:
        """Note where a delayed message goes when its time has come; ``wait`` None adds no WAIT."""
        properties[PROPERTY_DELAY_TIME_LEVEL] = str(schedule.level)
        _put_real(properties, topic, queue_id, wait)

    def waiting_properties(
        self,
        shared: dict[str, str],
        topic: str,
        queue_ids: int | Sequence[int],
        schedule: Schedule,
    ) -> bytes | list[bytes]:
        """Encode the properties of a delayed column, which name topic and queue: one for all
        messages of a queue, or those of each message. ``shared`` may be changed."""
        queues = (queue_ids,) if isinstance(queue_ids, int) else dict.fromkeys(queue_ids)
        made: dict[int, bytes] = {}
        for queue_id in queues:
            self.put_schedule(shared, topic, queue_id, schedule)
            made[queue_id] = self.encode(shared)
        if isinstance(queue_ids, int) or len(made) == 1:
            return made.popitem()[1]
        return [made[queue_id] for queue_id in queue_ids]

    def encode(self, properties: Mapping[str, str]) -> bytes:
        """Encode properties; MessageIllegalError for U+0001, U+0002 and above 32,767 bytes."""
        encoded = _encoded(properties)
        # A name ends at its U+0001; a further one is part of a value, which the format could hold.
        if encoded.count(b"\x01") != encoded.count(b"\x02") + 1:
            check_properties(properties)
        check_properties_size(encoded)
        return encoded

    def _check_half(self, schedule: Schedule) -> None:
        if self._reject_transactions:
            raise NoPermissionError("this broker takes no transaction messages")
        if schedule.level:
            # RocketMQ's client drops the level; its broker would lose the message.
            raise MessageIllegalError("a transaction message cannot be delayed; drop its level")

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
        # What comes to a retry topic was stored before, perhaps by a Java broker.
        is_retry = message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        return MessageInner(
            topic,
            queue_id,
            message.body,
            encode_stored(properties) if is_retry else self.encode(properties),
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


def encode_stored(properties: Mapping[str, str]) -> bytes:
    """Encode properties of a message that is stored already, for its next record.

    A value may hold U+0001: RocketMQ's brokers store it, and readers since 4.9.1 find it again.
    MessageIllegalError above 32,767 bytes.
    """
    encoded = _encoded(properties)
    check_properties_size(encoded)
    return encoded


def _encoded(properties: Mapping[str, str]) -> bytes:
    try:
        return encode_properties(properties)
    except InvalidMessageError as error:
        raise MessageIllegalError(str(error)) from error
    except UnicodeEncodeError as error:
        raise MessageIllegalError("a property holds characters that are no Unicode") from error


def is_half(properties: Mapping[str, str]) -> bool:
    """Return whether properties are those of a half message (Boolean.parseBoolean of TRAN_MSG)."""
    return properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"


def stored_again(
    message: MessageExt,
    topic: str,
    queue_id: int,
    properties: bytes | None = None,
    *,
    flag: int | None = None,
    sys_flag: int | None = None,
    reconsume_times: int | None = None,
    prepared_transaction_offset: int = 0,
    schedule: Schedule = NOT_DELAYED,
) -> MessageInner:
    """Make a record of a stored message under another topic; None keeps what the message has.

    The body stays compressed; birth, tag, keys and the first broker's address stay, too. The old
    record's prepared offset does not (MessageExtBrokerInner of 4.9), nor do its offsets in light
    queues: those units name the old record, and recovery would assign them to this one.
    """
    before = message.properties  # read several times: the object's own access takes longer
    if properties is None:
        properties = message.property_bytes.removesuffix(b"\x02")
        if _LIGHT_OFFSETS in properties:
            kept = dict(before)
            kept.pop(PROPERTY_INNER_MULTI_QUEUE_OFFSET, None)
            properties = encode_properties(kept)
    unique_id = before.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    keys = split_keys(before.get(PROPERTY_KEYS))
    return _new_tuple(
        MessageInner,
        (
            topic,
            queue_id,
            message.stored_body,
            properties,
            message.born_timestamp,
            message.born_host_bytes,
            message.store_host_bytes,
            message.flag if flag is None else flag,
            message.sys_flag if sys_flag is None else sys_flag,
            message.reconsume_times if reconsume_times is None else reconsume_times,
            prepared_transaction_offset,
            before.get(PROPERTY_TAGS),
            (unique_id, *keys) if unique_id else keys,
            schedule.level,
            schedule.delay_ms,
        ),
    )


def _put_real(properties: dict[str, str], topic: str, queue_id: int, wait: str | None) -> None:
    if wait is not None:
        properties[PROPERTY_WAIT_STORE_MSG_OK] = wait
    properties[PROPERTY_REAL_TOPIC] = topic
    properties[PROPERTY_REAL_QUEUE_ID] = str(queue_id)
