"""Rows of input as columns: messages of JSON lines or CSV without an object for each.

Compiled code takes the rows that are as ``consume`` and ``message export`` write them. It leaves
out every row that is unusual in any way, which the parser of one row reads or refuses then
(``parsers.py``): a name that is no field, a name twice, half of a surrogate pair, a number with a
fraction, a body that is a JSON value. Both give the same messages.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from rmqctl import native
from storage.errors import InvalidMessageError
from storage.format.message import RESERVED_PROPERTIES
from storage.format.properties import encode_properties, parse_properties

from .field_names import ALIASES, FIELDS
from .parsers import Outgoing

MOST_COLUMNS: Final = 64
"""Columns of CSV that compiled code takes."""


class Part(IntEnum):
    """What a column is of a message."""

    IGNORED = 0
    BODY = 1
    BODY_BASE64 = 2
    KEYS = 3
    TAGS = 4
    FLAG = 5
    PROPERTIES = 6
    TOPIC = 7
    QUEUE_ID = 8
    PROPERTY = 9
    """Of CSV: a property with the name of the column."""
    KEY = 10
    """Of CSV: one key; a row whose key has blanks is left out."""


class GivenRows(NamedTuple):
    """Messages to send, item i of each list for message i."""

    bodies: list[bytes]
    keys: list[str]
    """Separated by blanks; empty for none."""
    tags: list[str | None]
    properties: list[bytes]
    """Of users, encoded."""
    flags: list[int]
    topics: list[str | None]
    """Empty where messages go to one topic."""
    queue_ids: list[int | None]

    def part(self, begin: int, end: int) -> "GivenRows":
        """The messages [begin, end)."""
        if begin == 0 and end >= len(self.bodies):
            return self
        return GivenRows(*[column[begin:end] for column in self])  # type: ignore[arg-type]

    def messages(self) -> "list[Outgoing]":
        """The same, an object each."""
        count = len(self.bodies)
        rows = zip(
            self.bodies,
            self.keys,
            self.tags,
            self.properties,
            self.flags,
            self.topics or [None] * count,
            self.queue_ids or [None] * count,
            strict=True,
        )
        return [
            Outgoing(
                body,
                keys or None,
                tags,
                parse_properties(properties) if properties else None,
                flag or None,
                topic,
                queue_id,
            )
            for body, keys, tags, properties, flag, topic, queue_id in rows
        ]


def rows_of(messages: "Sequence[Outgoing]") -> GivenRows | None:
    """Messages as columns; None without compiled code, and for properties that are not stored."""
    if native.compiled is None:
        return None
    try:
        encoded = [encode_properties(message.properties or {}) for message in messages]
    except (InvalidMessageError, UnicodeEncodeError):
        return None
    topics, queue_ids = [m.topic for m in messages], [m.queue_id for m in messages]
    return GivenRows(
        [message.body for message in messages],
        [message.keys or "" for message in messages],
        [message.tags or None for message in messages],
        encoded,
        [message.flag or 0 for message in messages],
        topics if any(topics) else [],
        queue_ids if any(queue_id is not None for queue_id in queue_ids) else [],
    )


class RowReader:
    """Reads rows of one form."""

    def __init__(
        self, columns: Sequence[tuple[str, Part]], *, is_csv: bool, has_places: bool
    ) -> None:
        """``columns`` are names and what they mean; of CSV in their order.

        ``has_places``: topics and queues are read.
        """
        self._columns = tuple(
            (name.encode("utf-8", "surrogateescape"), int(part)) for name, part in columns
        )
        self._reserved = tuple(name.encode() for name in sorted(RESERVED_PROPERTIES))
        self._is_csv = is_csv
        self._has_places = has_places

    def read(self, records: list[bytes]) -> GivenRows:
        """The rows of records; a row with None as its body is left to the parser of one row."""
        return GivenRows(
            *given_rows(records, self._columns, self._reserved, self._is_csv, self._has_places)
        )


def json_reader(*, has_places: bool) -> RowReader | None:
    """The reader of JSON lines; None without compiled code."""
    if native.compiled is None:
        return None
    from rmqctl.output.message_rows import MessageRow

    names = [*MessageRow._fields, *ALIASES]  # in the order in which exports have them
    columns = [(name, part_of(ALIASES.get(name, name))) for name in names]
    return RowReader(columns, is_csv=False, has_places=has_places)


def csv_reader(columns: Sequence[tuple[str, Part]], *, has_places: bool) -> RowReader | None:
    """The reader of CSV with these columns; None without compiled code, and for very many."""
    if native.compiled is None or len(columns) > MOST_COLUMNS:
        return None
    return RowReader(columns, is_csv=True, has_places=has_places)


def part_of(field: str) -> Part:
    """What a field of a row is."""
    return Part[field.upper()] if field in FIELDS else Part.IGNORED


def runs_of(rows: GivenRows) -> Iterator[tuple[int, int, bool]]:
    """Where neighbouring rows begin and end that were taken, or left out (False)."""
    bodies: list[Any] = rows.bodies
    begin, count = 0, len(bodies)
    while begin < count:
        try:
            end = bodies.index(None, begin)
        except ValueError:
            end = count
        if begin < end:
            yield begin, end, True
        begin = end
        while end < count and bodies[end] is None:
            end += 1
        if begin < end:
            yield begin, end, False
        begin = end


def _given_rows(
    records: list[bytes],
    columns: tuple[tuple[bytes, int], ...],
    reserved: tuple[bytes, ...],
    is_csv: bool,
    has_places: bool,
) -> tuple[list[Any], ...]:
    """The form that takes nothing: each row is read by the parser of one row."""
    none: list[Any] = [None] * len(records)
    places = [*none] if has_places else []
    return *([*none] for _ in range(5)), places, [*places]


given_rows: Final = native.form("given_rows", _given_rows)
