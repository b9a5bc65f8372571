"""Rows of messages from the columns of a table, without an object for each message.

A layout says which fields of a table make a row, and what stands between their values; it comes
from the columns of a format, or from a template. Compiled code makes the text of all rows of a
table at once, the same bytes as the encoders make of a MessageRow each.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from enum import IntEnum
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from rmqctl import native
from rmqctl.output.row_block import RowBlock
from rmqctl.output.stdout import encoded
from rmqctl.output.values import as_json, escape_tabs, exact
from rmqctl.output.view import Format, View
from storage.parse.times import format_time, to_datetime

if TYPE_CHECKING:
    from rmqctl.output.shaping import Condition
    from rmqctl.parse.templates import Field
    from storage.read.message_table import MessageTable

_QUARTER_MS: Final = 15 * 60 * 1000
"""Zones change their offset at such times, or the offsets at its ends differ."""
_EARLIEST_MS: Final = 0
_LATEST_MS: Final = 7_258_118_400_000
"""1970 and 2200: the times that compiled code writes as dates."""


class Style(IntEnum):
    """How a value is written, by the rules of the encoder of a format."""

    JSON = 0
    CSV = 1
    LINES = 2
    """plain and tsv"""
    RAW = 3
    """Templates: texts as their bytes, null as none."""
    YAML = 4


class Value(IntEnum):
    """How a value lies in the buffers of its field, and what is made of it."""

    INT = 0
    LONG = 1
    TIME = 2
    """A LONG in ms that becomes a date."""
    NAME = 3
    TAG = 4
    """As NAME; an empty one is null."""
    LENGTH = 5
    """The number of bytes of a text."""
    BODY = 6
    """A text, null if it is not UTF-8."""
    BODY_BASE64 = 7
    """Null if the text is UTF-8."""
    LIST = 8
    PAIRS = 9


class _Source(NamedTuple):
    """The value of a column."""

    value: Value
    field: str
    """Of storage.read.message_table.FIELDS."""


_BODY: Final = "stored_body"
SOURCES: Final = {
    "topic": _Source(Value.NAME, "record_topic"),
    "queue_id": _Source(Value.INT, "record_queue_id"),
    "queue_offset": _Source(Value.LONG, "record_queue_offset"),
    "tags": _Source(Value.TAG, "tags"),
    "keys": _Source(Value.LIST, "keys"),
    "body": _Source(Value.BODY, _BODY),
    "body_base64": _Source(Value.BODY_BASE64, _BODY),
    "msg_id": _Source(Value.NAME, "msg_id"),
    "store_timestamp": _Source(Value.TIME, "store_timestamp"),
    "born_timestamp": _Source(Value.TIME, "born_timestamp"),
    "reconsume_times": _Source(Value.INT, "reconsume_times"),
    "properties": _Source(Value.PAIRS, "properties"),
    "offset_msg_id": _Source(Value.NAME, "offset_msg_id"),
    "commitlog_offset": _Source(Value.LONG, "commitlog_offset"),
    "store_size": _Source(Value.INT, "store_size"),
    "body_size": _Source(Value.LENGTH, _BODY),
    "body_crc": _Source(Value.INT, "body_crc"),
    "flag": _Source(Value.INT, "flag"),
    "sys_flag": _Source(Value.INT, "sys_flag"),
    "born_host": _Source(Value.NAME, "born_host"),
    "store_host": _Source(Value.NAME, "store_host"),
    "prepared_transaction_offset": _Source(Value.LONG, "prepared_transaction_offset"),
}
"""The columns of a MessageRow."""
_OF_TEMPLATES: Final = {
    "t": SOURCES["topic"],
    "q": SOURCES["queue_id"],
    "o": SOURCES["queue_offset"],
    "P": SOURCES["commitlog_offset"],
    "k": SOURCES["keys"],
    "g": SOURCES["tags"],
    "s": SOURCES["body"],
    "S": SOURCES["body_size"],
    "T": _Source(Value.LONG, "store_timestamp"),
    "B": _Source(Value.LONG, "born_timestamp"),
    "d": SOURCES["store_timestamp"],
    "m": SOURCES["msg_id"],
    "M": SOURCES["offset_msg_id"],
    "r": SOURCES["reconsume_times"],
    "b": SOURCES["born_host"],
}
"""The fields of a template, by the letters of rmqctl.parse.templates."""
_BUFFERS: Final = {
    Value.INT: ("",),
    Value.LONG: ("",),
    Value.TIME: ("",),
    Value.LIST: ("_ends", "_text_ends", "_text"),
    Value.PAIRS: ("_ends", "_name_ends", "_name", "_value_ends", "_value"),
}
_OF_TEXT: Final = ("_ends", "")


_Column: TypeAlias = "tuple[bytes, int, int, Sequence[Any]]"
"""What is before a value, its Value, the offset of dates, the buffers of its field."""


class Part(NamedTuple):
    """One value of a row, and what is written before it."""

    before: bytes
    value: Value
    field: str


class Layout:
    """How rows are made of a table."""

    def __init__(
        self,
        parts: Iterable[Part],
        end: bytes,
        style: Style,
        zone: tzinfo | None = None,
        unsure: Callable[[Sequence[Any]], str] | None = None,
        condition: "Condition | None" = None,
    ) -> None:
        """``end`` is written after the last value, and ends the line; dates are of ``zone``, None
        is the local one.

        ``unsure`` gives the text of rows that compiled code leaves out, from their values. Rows for
        which a ``condition`` on columns of a MessageRow does not hold have no text.
        """
        self._unsure = unsure
        self._condition = condition
        self._parts = tuple(parts)
        self._end = end
        self._style = style
        self._zone = zone
        read = () if condition is None else (SOURCES[name].field for name in condition.names)
        self.fields: Final = frozenset({*(part.field for part in self._parts), *read})
        """The fields that a table needs."""

    @property
    def has_bodies(self) -> bool:
        """Whether it needs the bodies of messages."""
        return _BODY in self.fields

    def rows(self, table: "MessageTable", chosen: Any = None) -> RowBlock:
        """The rows of a table with its fields, none of whose bodies is compressed.

        ``chosen`` is a byte a row, 0 for those that are left out; None for none.
        """
        kept = chosen
        if self._condition is not None:
            chosen = _where(self._condition, table, chosen)
        offset = self._offset(table)
        columns = tuple(
            (
                part.before,
                part.value,
                offset or 0,
                _buffers(table, part.value, part.field),
            )
            for part in self._parts
        )
        if offset is None:
            text, ends, left = _encoded_rows(
                columns, table.rows, self._style, self._end, chosen, self._zone
            )
        else:
            text, ends, left = encoded_rows(columns, table.rows, self._style, self._end, chosen)
        block = RowBlock(text, ends, kept)
        if not left or self._unsure is None:
            return block
        return block.replaced(self._completed(set(left), columns, self._unsure))

    def _completed(
        self, left: set[int], columns: Sequence[_Column], unsure: Callable[[Sequence[Any]], str]
    ) -> dict[int, bytes]:
        """The rows that compiled code has left to the reference."""
        values = [_values(Value(value), buffers) for _, value, _, buffers in columns]
        kinds = [Value(value) for _, value, _, _ in columns]
        rows = {}
        for row, found in enumerate(zip(*values, strict=True)):
            if row in left:
                shown = [_shown(*each, self._zone) for each in zip(kinds, found, strict=True)]
                rows[row] = encoded(unsure(shown))
        return rows

    def _offset(self, table: "MessageTable") -> int | None:
        """The seconds east of UTC of all dates of a table; None if they have more than one."""
        quarters: set[int] = set()
        for field in {part.field for part in self._parts if part.value is Value.TIME}:
            times = memoryview(table.buffer(field)).cast("q")
            if not times:
                continue
            first, last = min(times), max(times)
            if first < _EARLIEST_MS or last >= _LATEST_MS:
                return None
            if last // _QUARTER_MS - first // _QUARTER_MS <= 1:
                quarters |= {first // _QUARTER_MS, last // _QUARTER_MS}
            else:
                quarters.update(time // _QUARTER_MS for time in times)
        offsets = {
            self._offset_at(time)
            for quarter in quarters
            for time in (quarter * _QUARTER_MS, (quarter + 1) * _QUARTER_MS - 1)
        }
        if len(offsets) > 1:
            return None
        offset = offsets.pop() if offsets else 0
        return offset if offset is not None and not offset % 60 else None

    def _offset_at(self, time: int) -> int | None:
        offset = to_datetime(time, self._zone).utcoffset()
        return None if offset is None else int(offset.total_seconds())


def layout_of(
    names: Sequence[str], view: View, condition: "Condition | None" = None
) -> Layout | None:
    """The layout of rows with some columns of a MessageRow in the format of a view; rows for which
    a condition on such columns does not hold have no text.

    Each row ends with the end of a line; in an array of JSON it begins with a comma and one. None
    where the rows are made of MessageRows: without compiled code, in formats for people, and
    on a terminal, on which control characters are escaped.
    """
    if native.compiled is None or not names:
        return None
    if condition is not None and not SOURCES.keys() >= {*condition.names}:
        return None
    match view.format:
        case Format.JSON | Format.JSONL:
            befores = [f"{',' if at else '{'}{as_json(name)}:" for at, name in enumerate(names)]
            if view.format is Format.JSONL:
                return _layout(names, befores, b"}\n", Style.JSON, view, condition)
            befores[0] = f",\n{befores[0]}"
            return _layout(names, befores, b"}", Style.JSON, view, condition)
        case Format.CSV if not view.terminal:
            befores = ["", *[","] * (len(names) - 1)]
            return _layout(names, befores, b"\r\n", Style.CSV, view, condition)
        case Format.YAML:
            befores = [f"{'  ' if at else '- '}{name}:" for at, name in enumerate(names)]
            befores[1:] = [f"\n{before}" for before in befores[1:]]
            from rmqctl.output.yaml_rows import YamlRows  # lazy: imports YAML

            rows = YamlRows(names)
            return _layout(names, befores, b"\n", Style.YAML, view, condition, rows.row)
        case Format.TSV | Format.PLAIN if not view.terminal:
            befores = ["", *["\t"] * (len(names) - 1)]
            return _layout(names, befores, b"\n", Style.LINES, view, condition)
    return None


def layout_of_template(
    pieces: Sequence["Field | bytes"], zone: tzinfo | None = None
) -> Layout | None:
    """The layout of a template; None with fields or forms that need messages."""
    parts: list[Part] = []
    literal = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            literal += piece
        elif piece.modifier or piece.code not in _OF_TEMPLATES:
            return None
        else:
            value, field = _OF_TEMPLATES[piece.code]
            parts.append(Part(literal, value, field))
            literal = b""
    if native.compiled is None or not parts:
        return None
    return Layout(parts, literal, Style.RAW, zone)


def layout_of_bodies(delimiter: bytes) -> Layout | None:
    """The layout of bodies alone, each with the delimiter; None without compiled code."""
    if native.compiled is None:
        return None
    value, field = SOURCES["body"]
    return Layout([Part(b"", value, field)], delimiter, Style.RAW)


def _layout(
    names: Sequence[str],
    befores: Sequence[str],
    end: bytes,
    style: Style,
    view: View,
    condition: "Condition | None",
    unsure: Callable[[Sequence[Any]], str] | None = None,
) -> Layout:
    dates = style is Style.LINES and not view.raw
    parts = []
    for name, before in zip(names, befores, strict=True):
        value, field = SOURCES[name]
        if value is Value.TIME and not dates:
            value = Value.LONG
        parts.append(Part(before.encode(), value, field))
    return Layout(parts, end, style, view.zone, unsure, condition)


def _buffers(table: "MessageTable", value: Value, field: str) -> tuple[Any, ...]:
    return tuple(table.buffer(field + name) for name in _BUFFERS.get(value, _OF_TEXT))


def _where(condition: "Condition", table: "MessageTable", chosen: Any) -> bytearray:
    """A byte a row: 1 for those that are chosen, and for which a condition holds."""
    names, holds = condition.names, condition.holds
    columns = [_plain(SOURCES[name], table) for name in names]
    rows: Iterator[tuple[int, Any]] = enumerate(zip(*columns, strict=True))
    if chosen is not None:
        rows = compress(rows, chosen)
    kept = bytearray(table.rows)
    for row, found in rows:
        kept[row] = holds(dict(zip(names, found, strict=True)))
    return kept


def _plain(source: _Source, table: "MessageTable") -> Iterator[Any]:
    """The values of a column, as a MessageRow has them."""
    value, field = source
    found = _values(value, _buffers(table, value, field))
    if value in (Value.INT, Value.LONG, Value.TIME, Value.LIST, Value.PAIRS):
        return found
    return (_shown(value, each, None) for each in found)


# -- the reference -----------------------------------------------------------------------------


def _encoded_rows(
    columns: Sequence[_Column],
    rows: int,
    style: int,
    end: bytes,
    chosen: Any = None,
    zone: tzinfo | None = None,
) -> tuple[Any, Any, Sequence[int]]:
    """The text of the rows, an int64 end each after a first 0, and rows of YAML that are left to
    YamlRows. Rows that are not chosen have no text.

    Compiled code takes the offset of dates from the columns, and writes some rows of YAML.
    """
    wanted = range(rows) if chosen is None else [row for row in range(rows) if chosen[row]]
    if style == Style.YAML:
        return b"", bytes(8 * (rows + 1)), wanted
    made = [bytearray() for _ in range(rows)]
    for before, value, _, buffers in columns:
        write = _writer(Style(style), Value(value), zone)
        for row, found in zip(made, _values(Value(value), buffers), strict=True):
            row += before + write(found)
    for row in made:
        if style == Style.CSV and len(columns) == 1 and not row:
            row += b'""'
        row += end
    if chosen is not None:
        made = [row if chosen[at] else bytearray() for at, row in enumerate(made)]
    ends = array("q", [0])
    for row in made:
        ends.append(ends[-1] + len(row))
    return b"".join(made), ends.tobytes(), ()


def _values(value: Value, buffers: Sequence[Any]) -> Iterator[Any]:
    match value:
        case Value.INT:
            yield from memoryview(buffers[0]).cast("i")
        case Value.LONG | Value.TIME:
            yield from memoryview(buffers[0]).cast("q")
        case Value.LIST:
            texts = list(_texts(*buffers[1:]))
            yield from ([each.decode() for each in texts[a:b]] for a, b in _spans(buffers[0]))
        case Value.PAIRS:
            pairs = list(zip(_texts(*buffers[1:3]), _texts(*buffers[3:5]), strict=True))
            for begin, end in _spans(buffers[0]):
                yield {name.decode(): text.decode() for name, text in pairs[begin:end]}
        case _:
            yield from _texts(*buffers)


def _spans(ends: Any) -> Iterator[tuple[int, int]]:
    numbers = array("i", bytes(ends))
    return pairwise(numbers)


def _texts(ends: Any, text: Any) -> Iterator[bytes]:
    return (bytes(text[begin:end]) for begin, end in _spans(ends))


def _writer(style: Style, value: Value, zone: tzinfo | None) -> Callable[[Any], bytes]:
    """How a value of a column is written."""
    match style:
        case Style.JSON:
            return lambda found: as_json(_shown(value, found, zone)).encode()
        case Style.CSV:
            return lambda found: _csv_cell(exact(_shown(value, found, zone))).encode()
        case Style.LINES:
            return lambda found: _line_cell(_shown(value, found, zone)).encode()
    if value is Value.BODY:
        return bytes
    return lambda found: exact(_shown(value, found, zone)).encode()


def _shown(value: Value, found: Any, zone: tzinfo | None) -> Any:
    """What the row of a message has for a value of a column."""
    match value:
        case Value.TIME:
            return format_time(found, zone, iso=True)
        case Value.NAME:
            return found.decode()
        case Value.TAG:
            return found.decode() or None
        case Value.LENGTH:
            return len(found)
        case Value.BODY | Value.BODY_BASE64:
            return _body(found, in_base64=value is Value.BODY_BASE64)
    return found


def _body(body: bytes, *, in_base64: bool) -> str | None:
    from rmqctl.output.message_rows import body_texts

    return body_texts(body, "text")[in_base64]


def _csv_cell(text: str) -> str:
    quoted = any(mark in text for mark in '",\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _line_cell(value: Any) -> str:
    return "-" if value is None else escape_tabs(exact(value))


encoded_rows: Final = native.form("encoded_rows", _encoded_rows)
