"""Storing what producers send: a message, a batch, or a column (SendMessageProcessor of 4.9).

A column is many messages that differ in body and keys only: lines of a file, numbers of a loop.
They are stored as one ``send`` each would store them, but without a Python object a message.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.api.send import ColumnSendResult, SendOptions, SendResult, SendStatus
from broker.errors import (
    BrokerSystemError,
    MessageIllegalError,
    NoPermissionError,
    ResponseCode,
    error_of,
)
from broker.tables.shared_table import READ_ONLY
from broker.tables.topics import NewTopic
from broker.validation import WRONG_TYPES, check_body_size, check_types
from storage.append.lmq import SEPARATOR as LMQ_SEPARATOR, LmqPut, is_possible_queue
from storage.append.send_template import SendTemplate
from storage.configs.topics import TopicConfig
from storage.errors import InvalidMessageError
from storage.format.encode import MessageInner, prepare
from storage.format.host import pack_host
from storage.format.message import (
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    Message,
    MessageQueue,
    dlq_topic,
)
from storage.format.message_id import offset_msg_ids
from storage.format.names import exact_str
from storage.format.plain_message import has_id, have_topic
from storage.format.prepared_table import PreparedTable
from storage.format.sys_flag import MessageSysFlag
from storage.results import PutMessageResult, PutMessageStatus

from .column import Column, check_keys, check_lengths, prepared_column
from .message_builder import MessageBuilder, Origin
from .template import send_template

if TYPE_CHECKING:
    from broker.api.send import RowColumns
    from broker.config import BrokerConfig
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.format.message_id import UniqueIds
    from storage.format.prepared import PreparedRecords

DLQ_NUMS_PER_GROUP: Final = 1
"""Queues of a group's dead letters (AbstractSendMessageProcessor)."""

_MULTI_TAG: Final = "MULTI_TAG"
BATCH_ITEM_HEAD: Final = 22
"""Bytes that a batch's encoding adds to each item (MessageDecoder.encodeMessage)."""

_new_tuple: Final = tuple.__new__  # does the same as a NamedTuple's own, in half the time
_SEND_OK: Final = SendStatus.SEND_OK
_PUT_OK: Final = PutMessageStatus.PUT_OK
_OPTIONS: Final = SendTemplate._fields.index("options")
_ORIGIN: Final = SendTemplate._fields.index("origin")

_REFUSED: Final = {
    PutMessageStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
    PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    PutMessageStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
}


class Sender:
    """Stores messages, batches and columns; safe for threads.

    ``put``, ``put_message`` and ``put_sent`` are MessageStore's, None where the store is open for
    reading only; ``multi_dispatch``: single messages fill light queues (enableMultiDispatch).
    ``stored_retry`` is called after each message for a retry topic: progress past the message that
    it is a copy of may follow.
    """

    def __init__(
        self,
        config: BrokerConfig,
        topics: TopicManager,
        groups: GroupManager,
        builder: MessageBuilder,
        *,
        put: Callable[..., PutMessageResult] | None,
        put_message: Callable[[MessageInner], PutMessageResult] | None,
        unique_ids: UniqueIds,
        now: Callable[[], int],
        max_message_size: int,
        put_sent: Callable[[Message, int, SendTemplate], SendResult | None] | None = None,
        put_sent_batch: Callable[[Sequence[Message], int, SendTemplate], Any] | None = None,
        multi_dispatch: bool = False,
        stored_retry: Callable[[], None] = lambda: None,
    ) -> None:
        self._multi_dispatch = multi_dispatch
        self._stored_retry = stored_retry
        self._broker_name = config.broker_name
        self._topics = topics
        self._groups = groups
        self._builder = builder
        self._put = put
        self._put_message = put_message
        self._put_sent = None if multi_dispatch else put_sent
        self._put_sent_batch = None if multi_dispatch else put_sent_batch
        self._ways: dict[str, SendTemplate] = {}
        self._unique_ids = unique_ids
        self._now = now
        self._max_message_size = max_message_size
        self._store_host = pack_host(config.store_host)
        self._born_host = pack_host(config.born_host)
        self._turns: dict[str, Iterator[int]] = {}
        self._known_origin: tuple[SendOptions, TopicConfig | None, Origin] = (
            SendOptions(),
            None,
            Origin(0, b"", b""),
        )

    def send(self, message: Message, queue_id: int | None, options: SendOptions) -> SendResult:
        """Store one message; see Broker.send."""
        topic = message.topic
        if queue_id is not None and self._put_sent is not None:
            way = self._ways.get(topic)
            if way is not None and way[_OPTIONS] is options:
                sent = self._put_sent(message, queue_id, way)
                if sent is not None:
                    return sent
        topic = exact_str(topic)
        config = asked = self._topic(topic, options)
        queue_id = self._queue(config, queue_id)
        target, target_queue = topic, queue_id
        is_retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        if is_retry and self._is_dead(topic, options):
            config = self._topics.for_own_use(dlq_topic(group_of_retry(topic)), DLQ_NUMS_PER_GROUP)
            target, target_queue = config.topic_name, 0
        unique_id = "" if has_id(message) else self._unique_ids.next(self._now())
        known = self._known_origin[-1]
        origin = self._origin(options, config)
        if origin is known and self._put_sent is not None and not is_retry:
            self._remember(config, options, origin)
        try:
            inner, msg_id = self._builder.build(message, target, target_queue, unique_id, origin)
            if isinstance(asked, NewTopic):
                check_types((message,))
                prepared((inner,))  # raises what the store would
                self._make(asked, queue_id, options)
            result = self._store_one(message, inner)
        except WRONG_TYPES:
            check_types((message,))
            raise
        sent = self._sent(result, topic, queue_id, msg_id)
        if is_retry:
            self._stored_retry()
        return sent

    def send_batch(
        self, messages: Sequence[Message], queue_id: int | None, options: SendOptions
    ) -> SendResult:
        """Store a batch; see Broker.send_batch."""
        topic = self._batch_topic(messages)
        way = encoded = None
        if queue_id is not None and self._put_sent_batch is not None:
            way = self._ways.get(topic)
            if way is not None and way[_OPTIONS] is options:
                encoded = self._put_sent_batch(messages, queue_id, way)
                if type(encoded) is SendResult:
                    return encoded
        config = self._topic(topic, options)
        queue_id = self._queue(config, queue_id)
        known = self._known_origin[-1]
        origin = self._origin(options, config)
        if encoded is None and origin is known and self._put_sent_batch is not None:
            self._remember(config, options, origin)
        try:
            if encoded is not None and way is not None and way[_ORIGIN] is origin:
                records: PreparedRecords = PreparedTable(*encoded[:-1])
                msg_ids = encoded[-1]
            else:
                records, msg_ids = self._prepare(messages, queue_id, origin)
        except WRONG_TYPES:
            check_types(messages)
            raise
        self._make(config, queue_id, options)
        return self._sent(self._store_batch(records, whole=True), topic, queue_id, msg_ids)

    def _remember(self, topic: TopicConfig, options: SendOptions, origin: Origin) -> None:
        """Prepare the fast path for the next messages of this topic, if the client sends the same
        options."""
        changes = self._topics.changes()
        if self._topic(topic.topic_name, options) is topic:  # after the number was read
            self._ways[topic.topic_name] = send_template(
                topic,
                options,
                origin,
                broker_name=self._broker_name,
                added=self._builder.added,
                added_to_items=self._builder.added_to_items,
                largest=self._max_message_size,
                changes=changes,
                now_ms=self._now(),
            )

    def _sent(
        self, result: PutMessageResult, topic: str, queue_id: int, msg_ids: str
    ) -> SendResult:
        """Make the result of a message or a batch; raises the error of a put that stored
        nothing."""
        status, offsets, queue_offsets, store_timestamp, _ = result
        return _new_tuple(
            SendResult,
            (
                _SEND_OK if status is _PUT_OK else put_outcome(result),
                _new_tuple(MessageQueue, (topic, self._broker_name, queue_id)),
                int(queue_offsets[0]),  # NumPy's, in a large batch
                msg_ids,
                offset_msg_ids(self._store_host, offsets),
                store_timestamp,
            ),
        )

    def _prepare(
        self, messages: Sequence[Message], queue_id: int, origin: Origin
    ) -> tuple[PreparedRecords, str]:
        """Encode a batch; gives its msg_ids, too. Raises MessageIllegalError."""
        unique_ids = None
        if not has_id(messages[0]):
            unique_ids = self._unique_ids.take(len(messages), self._now()).texts()
        plain = self._builder.prepare_plain(messages, queue_id, unique_ids, origin)
        if plain is not None:
            return plain
        if unique_ids is None:
            unique_ids = self._unique_ids.take(len(messages), self._now()).texts()
        inners, msg_ids = self._builder.build_items(messages, queue_id, unique_ids, origin)
        size = sum([BATCH_ITEM_HEAD + len(item.body) + len(item.properties) for item in inners])
        if size > self._max_message_size:
            raise MessageIllegalError(
                f"the batch has {size} bytes, allowed are {self._max_message_size}; split it"
            )
        return prepared(inners), ",".join(msg_ids)

    def _topic(self, topic: str, options: SendOptions) -> TopicConfig:
        """Find the topic, see ``_make``; raises what ``TopicManager.to_send_to`` raises."""
        if self._put is None:
            raise NoPermissionError(READ_ONLY)
        return self._topics.to_send_to(
            topic, options.default_topic, options.default_topic_queue_nums
        )

    def _make(
        self, topic: TopicConfig, queue_ids: int | Sequence[int], options: SendOptions
    ) -> None:
        """Create a new topic right before its first message is stored: a refused one makes none.

        The queues are checked again, as another process may have been faster.
        """
        if isinstance(topic, NewTopic):
            made = self._topics.for_sending(
                topic.topic_name, options.default_topic, options.default_topic_queue_nums
            )
            self._queues(made, queue_ids, 0)

    def _is_dead(self, topic: str, options: SendOptions) -> bool:
        """Return whether a retry has had its last attempt (SendMessageProcessor.handleRetryAndDLQ).

        It becomes a dead letter. DELAY in its properties still counts, so it goes through the delay
        queue first; RocketMQ 5 changes that.
        """
        group = self._groups.for_use(group_of_retry(topic))
        most = options.max_reconsume_times
        return options.reconsume_times >= (group.retry_max_times if most is None else most)

    def _queue(self, topic: TopicConfig, queue_id: int | None) -> int:
        """Check a requested queue, or take the next write queue in turn."""
        if queue_id is None:
            count = topic.write_queue_nums
            if count < 1:
                raise NoPermissionError(f"topic {topic.topic_name} has no queue to write to")
            return next(self._turn(topic.topic_name)) % count
        if not 0 <= queue_id < max(topic.write_queue_nums, topic.read_queue_nums):
            raise BrokerSystemError(
                f"topic {topic.topic_name} has no queue {queue_id}: "
                f"it has {topic.write_queue_nums} write queues, numbered from 0"
            )
        return queue_id

    def _turn(self, topic: str) -> Iterator[int]:
        # Like a Java producer each process begins at a random queue; else all use 0.
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns.setdefault(
                topic, itertools.count(int.from_bytes(os.urandom(2), "big"))
            )
        return turn

    def _origin(self, options: SendOptions, topic: TopicConfig) -> Origin:
        """Make the origin of messages; cached, because a client repeats its options."""
        known_options, known_topic, known = self._known_origin
        if known_options is options and known_topic is topic:
            return known
        born = options.born_timestamp
        host = options.born_host
        flags = options.sys_flag
        if topic.topic_filter_type == _MULTI_TAG:
            flags |= MessageSysFlag.MULTI_TAGS_FLAG
        origin = _new_tuple(
            Origin,
            (
                self._now() if born is None else born,
                self._born_host if host is None else pack_host(host),
                self._store_host,
                flags,
                options.reconsume_times,
            ),
        )
        if born is not None:
            self._known_origin = options, topic, origin
        return origin

    def _store_one(self, message: Message, inner: MessageInner) -> PutMessageResult:
        """Put a message. If light queues wait for it, it names them."""
        if self._put is None or self._put_message is None:
            raise NoPermissionError(READ_ONLY)
        if self._multi_dispatch:
            names = message.get_property(PROPERTY_INNER_MULTI_DISPATCH)
            if names:
                return self._put(light_put(inner, names))
        try:
            return self._put_message(inner)
        except InvalidMessageError as error:
            raise MessageIllegalError(str(error)) from error

    def _store_batch(self, records: PreparedRecords, *, whole: bool = False) -> PutMessageResult:
        if self._put is None:
            raise NoPermissionError(READ_ONLY)
        return self._put(records, whole=whole)

    def _batch_topic(self, messages: Sequence[Message]) -> str:
        """Give the one topic of a batch (MessageBatch.generateFromList)."""
        if not messages:
            raise MessageIllegalError("the batch has no message")
        topic = messages[0].topic
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise MessageIllegalError(f"topic {topic} takes no batch; send its messages one by one")
        for message in () if have_topic(messages, topic) else messages:
            if message.topic != topic:
                raise MessageIllegalError(
                    f"the messages of a batch have one topic, not {topic} and {message.topic}"
                )
        return exact_str(topic)

    def send_column(
        self,
        topic: str,
        bodies: Sequence[bytes],
        queue_ids: int | Sequence[int] | None,
        *,
        properties: Mapping[str, str] | None,
        keys: Sequence[str] | None,
        flag: int,
        options: SendOptions,
    ) -> ColumnSendResult:
        """Store a column; see Broker.send_column."""
        topic = exact_str(topic)
        check_lengths(bodies, queue_ids, keys)
        if (
            sum(map(len, bodies)) > self._max_message_size  # takes half the time of the next check
            and max(map(len, bodies)) > self._max_message_size
        ):
            check_body_size(max(bodies, key=len), self._max_message_size)  # raises
        shared, schedule = self._builder.shared_properties(properties)
        shared_keys = shared.pop(PROPERTY_KEYS, None)
        if shared_keys is not None:
            if keys is not None:
                raise MessageIllegalError("a column has keys of its own or shared ones, not both")
            keys = [shared_keys] * len(bodies)
        if keys is not None:
            check_keys(keys)
        config = self._topic(topic, options)
        targets = self._queues(config, queue_ids, len(bodies))
        stored_topic, stored_queues = topic, targets
        encoded: bytes | list[bytes]
        if schedule.level:
            stored_topic, stored_queues = SCHEDULE_TOPIC, schedule.level - 1
            encoded = self._builder.waiting_properties(shared, topic, targets, schedule)
        else:
            encoded = self._builder.encode(shared)
        now = self._now()
        column = Column(
            stored_topic,
            stored_queues,
            bodies,
            self._unique_ids.take(len(bodies), now),
            keys,
            encoded,
            shared.get(PROPERTY_TAGS),
            flag,
            schedule.level,
            schedule.delay_ms,
        )
        records = prepared_column(column, self._origin(options, config))
        if schedule.level:
            self._builder.check_later_size(records.largest(), stored_topic, topic)
        self._make(config, targets, options)
        result = self._store_batch(records)
        status = put_outcome(result)
        return ColumnSendResult(
            status,
            topic,
            targets,
            result.queue_offsets,
            column.unique_ids,
            result.commitlog_offsets,
            self._store_host,
            result.store_timestamp,
        )

    def send_rows(self, rows: RowColumns, options: SendOptions) -> ColumnSendResult:
        """Store rows; see Broker.send_rows."""
        from .rows import check_rows, row_inners, table_of  # one message needs none

        check_rows(rows)
        check_keys(rows.keys)
        check_body_size(max(rows.bodies, key=len), self._max_message_size)
        topics = rows.topics
        if isinstance(topics, str):
            topics = exact_str(topics)
        elif {*map(type, topics)} != {str}:
            topics = [*map(exact_str, topics)]
        rows = rows._replace(topics=topics)
        names = (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))
        configs = {name: self._topic(name, options) for name in names}
        origins = [self._origin(options, config) for config in configs.values()]
        if len({origin.sys_flag for origin in origins}) > 1:
            raise MessageIllegalError("the topics of the rows have several kinds of tags")
        queue_ids = rows.queue_ids
        if len(names) == 1:
            queue_ids = self._queues(configs[names[0]], queue_ids, len(rows.bodies))
        elif queue_ids is None or isinstance(queue_ids, int):
            raise MessageIllegalError("rows of several topics name a queue each")
        else:
            for name, queue_id in dict.fromkeys(zip(topics, queue_ids, strict=True)):
                self._queue(configs[name], queue_id)
        if isinstance(queue_ids, int):
            queue_ids = [queue_ids] * len(rows.bodies)
        unique_ids = self._unique_ids.take(len(rows.bodies), self._now())
        given = rows, queue_ids, unique_ids, origins[0], self._builder.added
        records = table_of(*given) or prepared(row_inners(*given))
        for name, config in configs.items():
            if isinstance(config, NewTopic):
                of_name = topics if len(names) > 1 else itertools.repeat(name)
                own = [queue for of, queue in zip(of_name, queue_ids, strict=False) if of == name]
                self._make(config, own, options)
        result = self._store_batch(records)
        return ColumnSendResult(
            put_outcome(result),
            topics,
            queue_ids,
            result.queue_offsets,
            unique_ids,
            result.commitlog_offsets,
            self._store_host,
            result.store_timestamp,
        )

    def _queues(
        self, config: TopicConfig, queue_ids: int | Sequence[int] | None, count: int
    ) -> int | Sequence[int]:
        """Check the requested queues, or go through the write queues in turn."""
        if isinstance(queue_ids, int):
            return self._queue(config, queue_ids)
        if queue_ids is not None:
            for queue_id in dict.fromkeys(queue_ids):
                self._queue(config, queue_id)
            return queue_ids
        first = self._queue(config, None)
        write_queues = config.write_queue_nums
        if write_queues == 1:
            return first
        # The turns of all messages are taken at once, so that the next column goes on from here.
        turn = self._turn(config.topic_name)
        for _ in range((count - 1) % write_queues):
            next(turn)
        turn_round = [(first + i) % write_queues for i in range(write_queues)]
        return (turn_round * (count // write_queues + 1))[:count]


def group_of_retry(topic: str) -> str:
    """Name the consumer group of a retry topic."""
    return topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)


def light_put(message: MessageInner, names: str) -> LmqPut:
    """A message for its own queue and for those that INNER_MULTI_DISPATCH names.

    Raises MessageIllegalError for a name that no queue can have, and for a queue named twice.
    """
    put = LmqPut(message, tuple(names.split(LMQ_SEPARATOR)))
    for name in put.names:
        if not is_possible_queue(name):
            raise MessageIllegalError(
                f"{PROPERTY_INNER_MULTI_DISPATCH} names {name!r}, which can be no queue"
            )
    if len({*put.queues}) < len(put.queues):
        raise MessageIllegalError(
            f"{PROPERTY_INNER_MULTI_DISPATCH} names a queue twice that gets the message: {names!r}"
        )
    return put


def put_outcome(result: PutMessageResult) -> SendStatus:
    """Map a put's result to the sender's status; raises the error of the response code if it
    failed."""
    if result.status is PutMessageStatus.PUT_OK:
        return SendStatus.SEND_OK
    if result.status.stored:
        return SendStatus(result.status.value)
    code = _REFUSED.get(result.status, ResponseCode.SYSTEM_ERROR)
    raise error_of(code, result.reason or f"the store answered {result.status}")


def prepared(messages: Sequence[MessageInner]) -> PreparedRecords:
    """Encode messages. Raises MessageIllegalError."""
    try:
        return prepare(messages)
    except InvalidMessageError as error:
        raise MessageIllegalError(str(error)) from error
