"""Storing many messages that differ in body and keys only: lines of a file, numbers of a loop.

Stored as one ``send`` each would store them, but without a Python object a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.api.send import ColumnSendResult, SendOptions
from broker.errors import MessageIllegalError
from broker.validation import check_body_size, check_properties
from storage.errors import InvalidMessageError
from storage.format.encode import MessageInner
from storage.format.encode_column import prepare_column
from storage.format.message import PROPERTY_KEYS, PROPERTY_TAGS, SCHEDULE_TOPIC, split_keys
from storage.format.prepared_table import column_pays

from .send import Sender, prepared, put_outcome

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig
    from storage.format.prepared import PreparedRecords

    from .message_builder import Origin


class _Column(NamedTuple):
    """A column as it is stored; ``properties`` are encoded and shared."""

    topic: str
    queue_ids: int | Sequence[int]
    bodies: Sequence[bytes]
    unique_ids: Sequence[bytes]
    keys: Sequence[str] | None
    properties: bytes
    tags: str | None
    flag: int
    delay_level: int
    delay_ms: int


class ColumnSender(Sender):
    """Stores columns, too."""

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
        _check_lengths(bodies, queue_ids, keys)
        if (
            sum(map(len, bodies)) > self._max_message_size  # takes half the time of the next check
            and max(map(len, bodies)) > self._max_message_size
        ):
            check_body_size(max(bodies, key=len), self._max_message_size)  # raises
        config = self._topic(topic, options)
        shared, schedule = self._builder.shared_properties(properties)
        shared_keys = shared.pop(PROPERTY_KEYS, None)
        if shared_keys is not None:
            if keys is not None:
                raise MessageIllegalError("a column has keys of its own or shared ones, not both")
            keys = [shared_keys] * len(bodies)
        if schedule.level and not isinstance(queue_ids, int):
            queue_ids = self._queue(config, None)  # REAL_QID is one of the shared properties
        targets = self._queues(config, queue_ids, len(bodies))
        stored_topic, stored_queues = topic, targets
        if schedule.level and isinstance(targets, int):
            self._builder.put_schedule(shared, topic, targets, schedule)
            stored_topic, stored_queues = SCHEDULE_TOPIC, schedule.level - 1
        if keys is not None:
            _check_keys(keys)
        now = self._now()
        column = _Column(
            stored_topic,
            stored_queues,
            bodies,
            self._unique_ids.take(len(bodies), now),
            keys,
            self._builder.encode(shared),
            shared.get(PROPERTY_TAGS),
            flag,
            schedule.level,
            schedule.delay_ms,
        )
        result = self._store_batch(_prepared_column(column, self._origin(options, config)))
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


def _prepared_column(column: _Column, origin: Origin) -> PreparedRecords:
    if not column_pays(len(column.bodies)):
        return prepared(_inners(column, origin))
    try:
        return prepare_column(
            column.topic,
            column.queue_ids,
            column.bodies,
            born_timestamp=origin.born_timestamp,
            born_host=origin.born_host,
            store_host=origin.store_host,
            properties=column.properties,
            tags=column.tags,
            unique_ids=column.unique_ids,
            keys=column.keys,
            flag=column.flag,
            sys_flag=origin.sys_flag,
            delay_ms=column.delay_ms,
        )
    except InvalidMessageError as error:
        raise MessageIllegalError(str(error)) from error


def _inners(column: _Column, origin: Origin) -> list[MessageInner]:
    """Make the same records without NumPy, whose import takes longer than encoding a few."""
    queue_ids = column.queue_ids
    if isinstance(queue_ids, int):
        queue_ids = [queue_ids] * len(column.bodies)
    inners = []
    for i, (body, queue_id, unique_id) in enumerate(
        zip(column.bodies, queue_ids, column.unique_ids, strict=True)
    ):
        keys = column.keys[i] if column.keys is not None else ""
        properties = column.properties + b"\x02UNIQ_KEY\x01" + unique_id
        if keys:
            properties += b"\x02KEYS\x01" + keys.encode()
        inners.append(
            MessageInner(
                column.topic,
                queue_id,
                body,
                properties,
                origin.born_timestamp,
                origin.born_host,
                origin.store_host,
                column.flag,
                origin.sys_flag,
                origin.reconsume_times,
                0,
                column.tags,
                (unique_id.decode(), *split_keys(keys)),
                column.delay_level,
                column.delay_ms,
            )
        )
    return inners


def _check_lengths(
    bodies: Sequence[bytes], queue_ids: int | Sequence[int] | None, keys: Sequence[str] | None
) -> None:
    if not bodies:
        raise MessageIllegalError("the column has no message")
    for what, column in (("queue ids", queue_ids), ("keys", keys)):
        if column is not None and not isinstance(column, int) and len(column) != len(bodies):
            raise ValueError(f"{len(bodies)} bodies have {len(column)} {what}")


def _check_keys(keys: Sequence[str]) -> None:
    joined = "".join(keys)
    if "\x01" in joined or "\x02" in joined:
        for key in keys:
            check_properties({PROPERTY_KEYS: key})
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise MessageIllegalError("a key holds characters that are no Unicode") from error
