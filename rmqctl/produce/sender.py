"""Sending records in columns; an invalid record is found and named."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.api.send import DEFAULT_TOPIC_QUEUE_NUMS, RowColumns, SendStatus
from broker.errors import MessageIllegalError, NoPermissionError
from broker.validation import BODY_LENGTH_ZERO
from storage.format.message import PROPERTY_DELAY_TIME_LEVEL, PROPERTY_KEYS, PROPERTY_TAGS

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.send import ColumnSendResult

    from .given_rows import GivenRows
    from .parsers import Outgoing


_Alike: TypeAlias = "tuple[str, str | None, tuple[tuple[str, str], ...], int, bool]"
"""Topic, tag, properties, flag, and whether the queue is chosen."""
_Run: TypeAlias = "tuple[_Alike, list[tuple[Outgoing, int]]]"
_MANY: Final = 16
"""So many messages that are not alike are sent as columns."""


class InvalidRecordError(Exception):
    """One record cannot be sent; ``line`` counts from 1 over the whole input."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


class Defaults(NamedTuple):
    """Values of the options for every message; values of a record take precedence."""

    topic: str
    keys: str | None = None
    tags: str | None = None
    properties: dict[str, str] | None = None
    delay_time_level: int = 0
    queue_id: int | None = None
    ordering_key: str | None = None
    """Messages with the same ordering key go to the same queue; ``%k`` is the message's keys."""


class Sender:
    """Sends records in batches and counts what was acknowledged."""

    def __init__(
        self,
        broker: "Broker",
        defaults: Defaults,
        acknowledged: Callable[["ColumnSendResult"], None],
        *,
        allow_empty: bool = False,
    ) -> None:
        """``allow_empty``: messages with an empty body are sent, as the broker accepts them."""
        self._allow_empty = allow_empty
        self._broker = broker
        self._defaults = defaults
        self._acknowledged = acknowledged
        self.attempted = 0
        """Messages handed to the broker; those that it refused are not counted."""
        self.count = 0
        """Number of stored messages: the broker has acknowledged them."""
        self.bytes = 0
        """Bytes of their bodies."""
        self.not_flushed = 0
        """Stored messages whose flush was not confirmed (any status but SEND_OK)."""

    @property
    def unknown(self) -> int:
        """Messages handed to the broker and not acknowledged: after an interrupted send, they may
        be stored or not."""
        return self.attempted - self.count

    def send_bodies(self, bodies: Sequence[bytes], first_line: int) -> None:
        """Send bodies of messages that are otherwise equal. Raises InvalidRecordError.

        Messages before the refused record are stored.
        """
        defaults = self._defaults
        shared = self._shared(defaults.tags, defaults.properties)
        if defaults.keys:
            shared[PROPERTY_KEYS] = defaults.keys
        queue_id = self._queue_of(defaults.topic, defaults.keys, defaults.queue_id)
        self._send(defaults.topic, bodies, queue_id, shared, None, 0, range(first_line, 1 << 62))

    def send(self, messages: "Sequence[Outgoing]", lines: Sequence[int]) -> None:
        """Send messages in order; ``lines`` are their line numbers in the input. Raises
        InvalidRecordError."""
        runs = self._runs(messages, lines)
        if len(runs) > 1 and len(messages) >= _MANY:
            from .given_rows import rows_of

            rows = rows_of(messages)
            if rows is not None and self._send_columns(rows):
                return
        self._send_runs(runs)

    def _runs(self, messages: "Sequence[Outgoing]", lines: Sequence[int]) -> "list[_Run]":
        """Neighbours that differ only in body, keys and queue."""
        numbered = zip(messages, lines, strict=True)
        return [(alike, list(group)) for alike, group in groupby(numbered, self._alike)]

    def _send_runs(self, runs: "list[_Run]") -> None:
        for (topic, tags, properties, flag, placed), run in runs:
            defaults = self._defaults
            shared = self._shared(tags, dict(properties))
            keys = [message.keys or defaults.keys or "" for message, _ in run]
            queues: list[int] | None = None
            if placed:
                queues = [
                    self._queue_of(topic, key, message.queue_id) or 0
                    for (message, _), key in zip(run, keys, strict=True)
                ]
            self._send(
                topic,
                [message.body for message, _ in run],
                queues,
                shared,
                keys if any(keys) else None,
                flag,
                [line for _, line in run],
            )

    def send_rows(self, rows: "GivenRows", lines: Sequence[int]) -> None:
        """The same for columns. Raises InvalidRecordError."""
        if not self._send_columns(rows):
            self._send_runs(self._runs(rows.messages(), lines))

    def _send_columns(self, rows: "GivenRows") -> bool:
        """Whether all rows are stored; else none is, and they have to be sent as objects: some are
        refused, or the options say more than columns hold."""
        columns = self._columns_of(rows)
        if columns is None:
            return False
        self.attempted += len(rows.bodies)
        try:
            result = self._broker.send_rows(columns)
        except (MessageIllegalError, NoPermissionError):
            self.attempted = self.count
            return False
        self._note(result, rows.bodies)
        return True

    def _columns_of(self, rows: "GivenRows") -> RowColumns | None:
        """Rows with what the options add; None for those that have to be sent as objects."""
        defaults = self._defaults
        if defaults.properties or defaults.delay_time_level or defaults.ordering_key is not None:
            return None
        if not self._allow_empty and not all(rows.bodies):
            return None
        topics: str | list[str] = defaults.topic
        if rows.topics:
            named = [topic or defaults.topic for topic in rows.topics]
            topics = named if named.count(named[0]) < len(named) else named[0]
        queue_ids: int | list[int] | None = defaults.queue_id
        if rows.queue_ids and queue_ids is None:
            placed = [queue_id for queue_id in rows.queue_ids if queue_id is not None]
            if placed and len(placed) < len(rows.bodies):
                return None
            queue_ids = placed or None
        if queue_ids is None and not isinstance(topics, str):
            return None
        keys, tags = rows.keys, rows.tags
        if defaults.keys:
            keys = [own or defaults.keys for own in keys]
        if defaults.tags:
            tags = [own or defaults.tags for own in tags]
        return RowColumns(topics, rows.bodies, queue_ids, rows.properties, tags, keys, rows.flags)

    def _alike(self, numbered: "tuple[Outgoing, int]") -> "_Alike":
        message, defaults = numbered[0], self._defaults
        properties = {**(defaults.properties or {}), **(message.properties or {})}
        queue_id = defaults.queue_id if message.queue_id is None else message.queue_id
        return (
            message.topic or defaults.topic,
            message.tags or defaults.tags,
            tuple(properties.items()),
            message.flag or 0,
            queue_id is not None or defaults.ordering_key is not None,
        )

    def _shared(self, tags: str | None, properties: dict[str, str] | None) -> dict[str, str]:
        shared = dict(properties or {})
        if tags:
            shared[PROPERTY_TAGS] = tags
        if self._defaults.delay_time_level:
            shared[PROPERTY_DELAY_TIME_LEVEL] = str(self._defaults.delay_time_level)
        return shared

    def _queue_of(self, topic: str, keys: str | None, queue_id: int | None) -> int | None:
        """The queue of the options, or that of the ordering key; None leaves it to the broker.

        An ordering key chooses as RocketMQ's SelectMessageQueueByHash does.
        """
        defaults = self._defaults
        if queue_id is not None:
            return queue_id
        if defaults.queue_id is not None:
            return defaults.queue_id
        if defaults.ordering_key is None:
            return None
        from storage.format.java_hash import java_hash

        config = self._broker.topic(topic)
        known = config is not None and not config.derived
        queues = config.write_queue_nums if config and known else DEFAULT_TOPIC_QUEUE_NUMS
        key = (keys or "") if defaults.ordering_key == "%k" else defaults.ordering_key
        number = java_hash(key)
        # Java's remainder has the sign of the number; abs is applied to it.
        return abs(number) % max(queues, 1)

    def _send(
        self,
        topic: str,
        bodies: Sequence[bytes],
        queues: int | list[int] | None,
        shared: dict[str, str],
        keys: list[str] | None,
        flag: int,
        lines: Sequence[int],
    ) -> None:
        try:
            self._send_column(topic, bodies, queues, shared, keys, flag)
        except MessageIllegalError as error:
            self.attempted = self.count  # no message of the column is stored
            if len(bodies) == 1:
                raise InvalidRecordError(lines[0], str(error)) from error
            # Send one by one, up to the refused record.
            for i, body in enumerate(bodies):
                queue = queues[i : i + 1] if isinstance(queues, list) else queues
                key = keys[i : i + 1] if keys else None
                self._send(topic, [body], queue, shared, key, flag, [lines[i]])

    def _send_column(
        self,
        topic: str,
        bodies: Sequence[bytes],
        queues: int | list[int] | None,
        shared: dict[str, str],
        keys: list[str] | None,
        flag: int,
    ) -> None:
        if not self._allow_empty and not all(bodies):
            raise MessageIllegalError(f"{BODY_LENGTH_ZERO}; --allow-empty sends it anyway")
        self.attempted += len(bodies)
        result = self._broker.send_column(
            topic, bodies, queues, properties=shared, keys=keys, flag=flag
        )
        self._note(result, bodies)

    def _note(self, result: "ColumnSendResult", bodies: Sequence[bytes]) -> None:
        self.count += len(bodies)
        self.bytes += sum(map(len, bodies))
        if result.send_status is not SendStatus.SEND_OK:
            self.not_flushed += len(bodies)
        self._acknowledged(result)
