"""Rows as messages: which columns there may be, and what a broker would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.errors import SinkRowError, SinkSchemaError
from broker.api.send import SendOptions
from broker.config import unique_ids_of
from broker.java_store import config_of
from broker.send.message_builder import MessageBuilder, Origin
from broker.send.send import group_of_retry
from broker.tables.groups import GroupManager
from broker.tables.topics import TopicManager
from broker.validation import check_delay_level, check_message
from storage.clock import now_ms
from storage.errors import RocketMQError
from storage.format.delay import parse_delay_levels
from storage.format.host import pack_host
from storage.format.java_hash import java_hash
from storage.format.message import (
    KEY_SEPARATOR,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RESERVED_PROPERTIES,
    RETRY_GROUP_TOPIC_PREFIX,
    Message,
)
from storage.readonly import StoreView

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from .options import SinkOptions

_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "tags": ("string",),
    "keys": ("array<string>", "string"),
    "properties": ("map<string,string>",),
    "queue_id": _INTEGERS,
    "ordering_key": ("string",),
    "delay_level": _INTEGERS,
}
_OPTIONS: Final = SendOptions()
"""Of producers: how a topic is made that does not exist yet."""


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Refuse columns that the sink does not know. Raises SinkSchemaError."""
    names = [field.name for field in schema]
    for field in schema:
        allowed = _TYPES.get(field.name)
        if allowed is None:
            near = get_close_matches(field.name, _TYPES, 1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(_TYPES)}"
            raise SinkSchemaError(f"the sink has no column {field.name!r} ({hint})")
        kind = field.dataType.simpleString()
        if kind not in allowed:
            raise SinkSchemaError(
                f"column {field.name} is {kind}; it is to be {' or '.join(allowed)}"
            )
    if "body" not in names:
        raise SinkSchemaError("the rows have no column body, which every message needs")
    if "topic" not in names and options.topic is None:
        raise SinkSchemaError("no topic: add a column topic, or the option topic")
    if "queue_id" in names and "ordering_key" in names:
        raise SinkSchemaError(
            "the rows have queue_id and ordering_key; each of them chooses the queue"
        )


class Outgoing(NamedTuple):
    """A message, its queue, and how many bytes its body and properties have."""

    message: Message
    queue_id: int
    size: int


class RowReader:
    """Makes messages of a task's rows, each with an id (UNIQ_KEY) and a queue of its own.

    Every message is checked by the rules of clients and of the broker, so that nothing is refused
    when it is stored. Reading the store's settings and topics changes nothing there.
    """

    def __init__(self, options: SinkOptions, partition: int) -> None:
        """Raises what StoreView.open raises."""
        self._topic = options.topic
        self._partition = partition
        with StoreView.open(options.path) as view:
            config = config_of(view.root, reading=True)
            queues = view.queues()
            self._topics = TopicManager(
                view.root, config, write_lock=None, queues=lambda: queues, now=now_ms
            )
            self._groups = GroupManager(view.root, config, write_lock=None, now=now_ms)
            self._most = view.config.max_message_size
            delays = parse_delay_levels(view.config.message_delay_level)
            size = view.config.mapped_file_size_commit_log
        self._builder = MessageBuilder(config, delays, self._most, size)
        self._ids = unique_ids_of(config.born_host)
        host = pack_host(config.born_host)
        self._origin = Origin(now_ms(), host, host)
        self._write_queues: dict[str, int] = {}
        self._turns: dict[str, Iterator[int]] = {}
        self._row = 0

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """The messages of a batch. Raises SinkRowError for the first row that is none."""
        names = batch.schema.names
        columns: list[Sequence[Any]] = [column.to_pylist() for column in batch.columns]
        for values in zip(*columns, strict=True):
            try:
                yield self._message(dict(zip(names, values, strict=True)))
            except (RocketMQError, ValueError) as error:
                raise SinkRowError(
                    f"row {self._row} of partition {self._partition}: {error}; nothing was written"
                ) from error
            self._row += 1

    def _message(self, row: Mapping[str, Any]) -> Outgoing:
        topic = self._topic if row.get("topic") is None else row["topic"]
        body = row["body"]
        if topic is None:
            raise ValueError("its topic is null, and there is no option topic")
        if not topic:
            raise ValueError("its topic is empty; only null stands for the option topic")
        if body is None:
            raise ValueError(f"its body is null (topic {topic})")
        if isinstance(body, str):
            body = body.encode()
        message = Message(topic, bytes(body), tags=row.get("tags"), properties=_own(row))
        keys = row.get("keys")
        if keys:
            message.keys = keys if isinstance(keys, str) else _separate(keys)
        level = row.get("delay_level") or 0
        check_delay_level(level)
        message.delay_time_level = level
        check_message(message, self._most)
        queue_id = self._queue(topic, row)
        unique_id = self._ids.next(now_ms())
        message.properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = unique_id
        inner, _ = self._builder.build(message, topic, queue_id, unique_id, self._origin)
        return Outgoing(message, queue_id, len(body) + len(inner.properties))

    def _queue(self, topic: str, row: Mapping[str, Any]) -> int:
        queues = self._queues_of(topic)
        queue_id = row.get("queue_id")
        if queue_id is not None:
            if not 0 <= queue_id < queues:
                raise ValueError(
                    f"topic {topic} has no queue {queue_id}: it has {queues}, from 0 on"
                )
            return int(queue_id)
        ordering = row.get("ordering_key")
        if ordering is not None:
            return abs(java_hash(ordering)) % queues  # SelectMessageQueueByHash
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = count(self._partition)
        return next(turn) % queues

    def _queues_of(self, topic: str) -> int:
        """The write queues of a topic, also of one that the first message will make."""
        known = self._write_queues.get(topic)
        if known is not None:
            return known
        found = self._topics.for_sending(
            topic, _OPTIONS.default_topic, _OPTIONS.default_topic_queue_nums
        )
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            self._groups.for_use(group_of_retry(topic))
        if found.write_queue_nums < 1:
            raise ValueError(f"topic {topic} takes no messages: it has no write queue")
        self._write_queues[topic] = found.write_queue_nums
        return found.write_queue_nums


def _separate(keys: Sequence[str | None]) -> list[str]:
    for key in keys:
        if key and KEY_SEPARATOR in key:
            raise ValueError(f"key {key[:40]!r} has a blank, which separates keys")
    return [key for key in keys if key]


def _own(row: Mapping[str, Any]) -> dict[str, str]:
    """The user's properties: those of RocketMQ, which a read message has, are made anew."""
    pairs = row.get("properties") or ()
    found = {}
    for name, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        if name in RESERVED_PROPERTIES:
            continue
        if not name.strip():
            raise ValueError("a property has no name")
        if value is None or not value.strip():
            raise ValueError(f"property {name[:40]!r} has no value")
        found[name] = value
    return found
