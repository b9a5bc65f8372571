"""Reading for ``message import``: the forms that ``message export`` writes.

A message keeps its body, keys, tag, flag, user properties and queue number. Ids, times and
everything that a broker adds are new.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.validation import (
    BODY_LENGTH_ZERO,
    check_body_size,
    check_properties,
)
from rmqctl.errors import UsageProblem
from rmqctl.produce.parsers import Outgoing, from_fields, object_of
from rmqctl.produce.sender import InvalidRecordError
from rmqctl.produce.sources import Portion, ReadBytes, opened
from storage.format.crc import crc32
from storage.format.java_numbers import parse_digits
from storage.format.message import PROPERTY_KEYS, PROPERTY_TAGS, RESERVED_PROPERTIES, split_keys
from storage.format.record import MIN_RECORD_SIZE, RecordError, decode_record

if TYPE_CHECKING:
    from rmqctl.produce.given_rows import GivenRows
    from storage.format.message import MessageExt

    from .target_queues import TargetQueues

LONGEST_LINE: Final = 6 * (4 << 20) + (1 << 20)
"""Most bytes of a line: JSON may take six bytes for one of a body."""
_TOGETHER: Final = 1000
_BYTES_TOGETHER: Final = 16 << 20
_Item = TypeVar("_Item")
_LARGEST_RECORD: Final = 1 << 30


def parse_line(record: bytes, *, ignore_unknown: bool = False) -> Outgoing:
    """The message of a line of JSON."""
    return parse_fields(object_of(record, ignore_unknown=ignore_unknown))


def parse_fields(fields: dict[str, Any]) -> Outgoing:
    """The message of an object's members, or of a CSV record's cells."""
    return whole(fields, from_fields(fields))


def whole(fields: Mapping[str, Any], message: Outgoing) -> Outgoing:
    """Add topic, queue, and the keys exactly as stored: an array loses empty ones."""
    topic = fields.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise ValueError(f"its topic is {topic!r}, not a text")
    queue_id = _queue_id(fields.get("queue_id"))
    stored = (fields.get("properties") or {}).get(PROPERTY_KEYS)
    keys = message.keys
    if isinstance(stored, str) and split_keys(stored) == split_keys(keys):
        keys = stored
    return message._replace(topic=topic or None, queue_id=queue_id, keys=keys)


def _queue_id(value: object) -> int | None:
    """A queue number; None for none. ValueError for another value: its queue would be any."""
    if value is None or value == "":
        return None
    number = parse_digits(value) if isinstance(value, str) else value
    if type(number) is not int or number < 0:
        raise ValueError(f"its queue_id is {value!r}, not a queue number")
    return number


def parquet_portions(
    path: str, read: ReadBytes, *, ignore_unknown: bool = False
) -> Iterator[Portion]:
    """The rows of a Parquet file."""
    from .parquet import read_parquet, row_fields

    def message_of(cells: dict[str, Any]) -> Outgoing:
        row = row_fields(cells, ignore_unknown=ignore_unknown)
        body = row.pop("body")
        return whole(row, from_fields({**row, "body": ""}))._replace(body=body)

    yield from outgoing_portions(read_parquet(path, read), message_of)


def raw_portions(path: str, read: ReadBytes) -> Iterator[Portion]:
    """Consecutive records."""
    yield from outgoing_portions(raw_messages(path, read), _outgoing)


def raw_messages(path: str, read: ReadBytes | None = None) -> "Iterator[MessageExt]":
    """The records of a file; ValueError for anything else, and for damage: it gives the byte of
    the file where the record begins. ``read`` counts their bytes."""
    at = 0
    with opened(path) as file:
        while head := file.read(4):
            here = f"at byte {at} of the file"
            size = int.from_bytes(head, "big", signed=True)
            if len(head) == 4 and not MIN_RECORD_SIZE <= size <= _LARGEST_RECORD:
                raise ValueError(f"is no record of a commit log, {here}")
            data = head + file.read(size - 4) if len(head) == 4 else head
            if len(data) < max(size, 4):
                raise ValueError(f"is cut off, {here}: it has {len(data)} bytes")
            try:
                message = decode_record(data)
            except RecordError as error:
                raise ValueError(f"is no record of a commit log, {here}: {error.reason}") from None
            if crc32(message.stored_body) != message.body_crc:
                raise ValueError(f"is damaged, {here}: the CRC of its body does not match")
            at += size
            if read is not None:
                read.count = at
            yield message


def _outgoing(message: "MessageExt") -> Outgoing:
    properties = message.properties
    body = message.body  # BodyError is a ValueError
    user = {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}
    return Outgoing(
        body,
        properties.get(PROPERTY_KEYS),
        properties.get(PROPERTY_TAGS),
        user or None,
        message.flag or None,
        message.topic,
        message.queue_id,
        store_timestamp=message.store_timestamp,
    )


def outgoing_portions(
    items: Iterator[_Item], message_of: Callable[[_Item], Outgoing]
) -> Iterator[Portion]:
    """Yield portions of messages. An invalid item ends its portion.

    An unreadable item ends the input, as the start of the next one is unknown.
    """
    part: list[Outgoing] = []
    lines: list[int] = []
    size = 0
    for number in count(1):
        invalid = None
        try:
            item = next(items)
        except StopIteration:
            break
        except ValueError as error:
            invalid = InvalidRecordError(number, f"{error}; what follows it is not read")
            yield Portion(None, part, lines, invalid)
            return
        try:
            message = message_of(item)
            part.append(message)
            lines.append(number)
            size += len(message.body)
        except ValueError as error:
            invalid = InvalidRecordError(number, str(error))
        if invalid is not None or len(part) == _TOGETHER or size > _BYTES_TOGETHER:
            yield Portion(None, part, lines, invalid)
            part, lines, size = [], [], 0
    yield Portion(None, part, lines)


class TopicMap:
    """The topic that messages of each topic are stored in: ``--map-topic`` and ``--topic``."""

    def __init__(self, mapped: Mapping[str, str], everything_to: str | None) -> None:
        self.mapped: Final = mapped
        self._everything_to = everything_to
        self._unused = dict.fromkeys(mapped)

    def target(self, topic: str | None) -> str | None:
        """The target of a message; None if neither the message nor an option names one."""
        if topic is not None and topic in self.mapped:
            self._unused.pop(topic, None)
            return self.mapped[topic]
        return self._everything_to or topic

    @property
    def unused(self) -> list[str]:
        """The topics of ``--map-topic`` that no message was in so far."""
        return list(self._unused)


class ImportPosition:
    """The targets of messages: their topic, and the queue of the same number.

    The queues of a new topic are created, see :class:`TargetQueues`. ``allow_empty``: messages
    with an empty body have a place; ``largest``: most bytes of a body.
    """

    def __init__(
        self, topics: TopicMap, queues: "TargetQueues", largest: int, *, allow_empty: bool
    ) -> None:
        self._topics = topics
        self._queues = queues
        self._largest = largest
        self._allow_empty = allow_empty

    def place(self, portion: Portion) -> Iterator[Portion]:
        """The portion with topic and queue of each message; one that has no place ends a part."""
        placed: GivenRows | None = None
        if portion.rows is not None:
            placed = self._place_rows(portion.rows)
        if placed is not None:
            yield portion._replace(rows=placed)
            return
        # objects, so that the message is named that has no place
        messages = portion.messages if portion.rows is None else portion.rows.messages()
        ready: list[Outgoing] = []
        begin = 0
        for at, message in enumerate(messages):
            try:
                ready.append(self._place(message))
            except ValueError as error:
                invalid = InvalidRecordError(portion.lines[at], str(error))
                yield Portion(None, ready, portion.lines[begin:at], invalid)
                ready, begin = [], at + 1
        yield Portion(None, ready, portion.lines[begin:], portion.invalid)

    def _place(self, message: Outgoing) -> Outgoing:
        topic, queue_id = self._topics.target(message.topic), message.queue_id
        if topic is None:
            raise ValueError("names no topic; --topic sets one")
        self._check(message)
        if queue_id is not None:
            queue_id = self._queues.queue(topic, queue_id)
            self._queues.make([topic])
        return message._replace(topic=topic, queue_id=queue_id)

    def _check(self, message: Outgoing) -> None:
        """ValueError for a message that will not be sent: it makes no topic."""
        if not (message.body or self._allow_empty):
            raise ValueError(f"{BODY_LENGTH_ZERO}; --allow-empty sends it anyway")
        check_body_size(message.body, self._largest)
        given = {PROPERTY_KEYS: message.keys or "", PROPERTY_TAGS: message.tags or ""}
        check_properties({**(message.properties or {}), **given})

    def _place_rows(self, rows: "GivenRows") -> "GivenRows | None":
        """Rows with the place of each, None if one has none; each place is found once, in the order
        in which they come."""
        sizes = [len(body) for body in rows.bodies]
        if max(sizes, default=0) > self._largest or not (self._allow_empty or all(sizes)):
            return None
        places: dict[tuple[str | None, int | None], tuple[str, int | None]] = {}
        for topic, queue_id in dict.fromkeys(zip(rows.topics, rows.queue_ids, strict=True)):
            target = self._topics.target(topic)
            if target is None:
                return None
            try:
                own = None if queue_id is None else self._queues.queue(target, queue_id)
            except ValueError:
                return None
            places[topic, queue_id] = target, own
        self._queues.make(target for target, _ in places.values())
        placed = [places[place] for place in zip(rows.topics, rows.queue_ids, strict=True)]
        return rows._replace(
            topics=[topic for topic, _ in placed], queue_ids=[own for _, own in placed]
        )


def parse_map(text: str) -> tuple[str, str]:
    """``A=B``; ValueError for anything else."""
    source, equals, target = text.partition("=")
    if not equals or not source or not target:
        raise ValueError(f"{text!r} is not a mapping (such as orders=orders-copy)")
    return source, target


def check_file(path: str) -> None:
    """UsageProblem for a missing file or a folder."""
    if not Path(path).exists():
        raise UsageProblem(f"no such file: {path}")
    if Path(path).is_dir():
        raise UsageProblem(f"{path} is a folder, not a file")
