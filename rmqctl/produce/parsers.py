"""Parsers of one input record: a body alone, or a body with keys, tags and properties."""

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.parse.input_templates import InputTemplate
from storage.format.message import (
    KEY_SEPARATOR,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_KEYS,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TAGS,
    split_keys,
)

from .field_names import BODY_ENCODING, column_of, known_fields, properties_told

if TYPE_CHECKING:
    from storage.format.message import MessageExt

    from .given_rows import RowReader


class Outgoing(NamedTuple):
    """A message to send, as given by its record; None leaves a field to the options."""

    body: bytes
    keys: str | None = None
    tags: str | None = None
    properties: dict[str, str] | None = None
    flag: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    stored: "MessageExt | None" = None
    """All fields of a message that was stored before, for --keep-times."""
    store_timestamp: Any = None
    """When the message was stored before, as its record has it, for --speed."""
    divided_key: str | None = None
    """A text that was given as one key, and is several: brokers divide keys at blanks."""


Parser = Callable[[bytes], Outgoing]


def keyed_parser(key_delimiter: bytes) -> Parser:
    """Records of the form ``KEYS<delimiter>BODY``."""
    shown = repr(key_delimiter.decode("utf-8", "backslashreplace"))

    def parse(record: bytes) -> Outgoing:
        keys, found, body = record.partition(key_delimiter)
        if not found:
            raise ValueError(f"has no key delimiter {shown}")
        return Outgoing(body, keys=_text(keys, "the key") or None)

    return parse


def template_parser(template: str, delimiter: bytes) -> Parser:
    """Records of the form of a ``-f`` template."""
    compiled = InputTemplate(template, delimiter)

    def parse(record: bytes) -> Outgoing:
        parts = compiled.parse(record)
        return Outgoing(
            parts.body,
            keys=parts.keys,
            tags=parts.tags,
            properties=parts.properties,
            topic=parts.topic,
            queue_id=parts.queue_id,
        )

    return parse


def parse_hex(record: bytes) -> Outgoing:
    """A body in hexadecimal; blanks between bytes are allowed."""
    try:
        return Outgoing(bytes.fromhex(record.decode("ascii")))
    except ValueError:
        raise ValueError("is not hexadecimal") from None


def parse_json(record: bytes, *, ignore_unknown: bool = False) -> Outgoing:
    """An object in the format of ``consume -o jsonl``.

    Body, keys, tags, flag and user properties are used. Ids, times, offsets and RocketMQ's
    reserved properties of the new message are its own. For other names see known_fields, for keys,
    tags and delays among the properties check_named_properties.
    """
    return from_fields(object_of(record, ignore_unknown=ignore_unknown))


def object_of(record: bytes, *, ignore_unknown: bool = False) -> dict[str, Any]:
    """The members of a JSON object by field names; ValueError for another text, and for an unknown
    name."""
    from rmqctl.parse.json_texts import parse_given

    try:
        value = parse_given(record)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return known_fields(value, ignore_unknown=ignore_unknown)


def from_fields(fields: dict[str, Any], *, keeps_properties: bool = False) -> Outgoing:
    """A message from the fields of a JSON object or a CSV line.

    ``keeps_properties`` see check_named_properties.
    """
    keys = fields.get("keys")
    divided = None
    if isinstance(keys, list):
        each = [_scalar(key, "a key") for key in keys if key is not None]
        keys, divided = KEY_SEPARATOR.join(each), divided_key(each)
    properties = fields.get("properties")
    if not isinstance(properties, (dict, type(None))):
        raise ValueError("its properties are not an object")
    flag = fields.get("flag")
    if flag is not None and not _is_int32(flag):
        raise ValueError(f"its flag is {flag!r}, not a 32-bit number")
    keys, tags = _optional_text(keys, "keys"), _optional_text(fields.get("tags"), "tags")
    if properties:
        check_named_properties(properties, keys, tags, are_kept=keeps_properties)
    return Outgoing(
        _body(fields),
        keys=keys,
        tags=tags,
        properties=_user_properties(properties) if properties else None,
        flag=flag or None,
        store_timestamp=fields.get("store_timestamp"),
        divided_key=divided,
    )


def divided_key(keys: Iterable[str]) -> str | None:
    """The first of some keys that is several; None if there is none."""
    return next((key for key in keys if len(split_keys(key)) > 1), None)


def check_named_properties(
    properties: dict[str, Any], keys: str | None, tags: str | None, *, are_kept: bool
) -> None:
    """ValueError for keys, a tag or a delay that only the properties have: the new message would
    lose them. An export has keys and tag in both places, and the delays that its broker set.

    ``are_kept``: the properties are stored as they are, so only fields that differ are refused.
    """
    stored, tag = properties.get(PROPERTY_KEYS), properties.get(PROPERTY_TAGS)
    if stored is not None:
        stored = _scalar(stored, f"property {PROPERTY_KEYS}")
        if split_keys(stored) != split_keys(keys) and (keys or not are_kept):
            raise ValueError(_differs(PROPERTY_KEYS, stored, "keys", keys))
    if tag is not None:
        tag = _scalar(tag, f"property {PROPERTY_TAGS}")
        if tag != (tags or "") and (tags or not are_kept):
            raise ValueError(_differs(PROPERTY_TAGS, tag, "tags", tags))
    delay = properties.get(PROPERTY_DELAY_TIME_LEVEL)
    # A broker that delays a message adds REAL_TOPIC, and leaves both in the delivered one.
    if not are_kept and _delays(delay) and PROPERTY_REAL_TOPIC not in properties:
        raise ValueError(
            f"its property {PROPERTY_DELAY_TIME_LEVEL} is {delay!r} and would be left out: remove "
            "it; --delay-level of 'rmqctl produce' delays messages"
        )


def _delays(level: object) -> bool:
    """Whether the property DELAY with this value delays, or is refused by brokers."""
    try:
        return int(str(level or 0)) > 0
    except ValueError:
        return True


def _differs(name: str, value: str, field: str, other: str | None) -> str:
    if other is None:
        return f"its property {name} is {value!r}, and it has no {field}: write it as {field}"
    return f"its property {name} is {value!r}, and its {field} are {other!r}: remove the property"


def _body(fields: dict[str, Any]) -> bytes:
    body, encoded = fields.get("body"), fields.get("body_base64")
    is_value = fields.get(BODY_ENCODING) == "json"
    if isinstance(body, str) and not is_value:
        return body.encode("utf-8", "surrogateescape")
    if body is not None or is_value:
        # `consume --body json` prints a value instead of a text.
        from rmqctl.parse.json_texts import write_json

        try:
            return write_json(body).encode("utf-8", "surrogateescape")
        except ValueError as error:
            raise ValueError(f"its body is not JSON: {error}") from None
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except (ValueError, binascii.Error):
            raise ValueError("its body_base64 is not base64") from None
    raise ValueError("has neither body nor body_base64")


def _user_properties(properties: dict[str, Any]) -> dict[str, str]:
    from storage.format.message import RESERVED_PROPERTIES

    return {
        name: _scalar(value, f"property {name}")
        for name, value in properties.items()
        if value is not None and name not in RESERVED_PROPERTIES
    }


def _scalar(value: object, what: str) -> str:
    """The text of a JSON member; a number or a boolean as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        from rmqctl.parse.json_texts import write_json

        return write_json(value)
    raise ValueError(f"{what} is {value!r}, not a text")


def _is_int32(value: object) -> bool:
    return type(value) is int and -(1 << 31) <= value < 1 << 31


def _optional_text(value: object, name: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"its {name} are {value!r}, not a text")
    return value


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is not UTF-8") from None


WHOLE_ROW: Final = "*"
"""Of --body-field: the row is the body."""
_KEY: Final = "(key)"
_LEFT_ASIDE: Final = "(ignored)"
_BESIDE: Final = frozenset({"keys", "tags", "flag", "properties"})
"""Fields that a message has beside a body that is the whole row."""


def _column(name: str, *, ignore_unknown: bool, may_be_reserved: bool) -> str | None:
    """The field of a column, None for a property."""
    try:
        return column_of(name, may_be_reserved=may_be_reserved)
    except ValueError:
        if not ignore_unknown:
            raise
        return f"{_LEFT_ASIDE} {name}"


class CsvParser:
    """Reads the lines of a CSV file whose header has the JSON keys.

    Columns that only exports have, such as offsets and times, are ignored. A column with a name of
    another tool is the field that it means, a misspelt field is refused, and any other column is a
    property, reported once with ``tell``. ``make`` gets all other cells as fields. A property with
    a reserved name is refused, unless ``keeps_properties``: ``make`` stores them as they are.

    The columns of ``key_fields`` are the keys; ``body_field`` is the body, or WHOLE_ROW: all cells
    but keys, tags, flag and properties, which the message has, as a JSON object. ``key_hint`` ends
    the sentence about properties of a table without keys.
    """

    def __init__(
        self,
        header: list[str],
        make: Callable[[dict[str, Any]], Outgoing] = from_fields,
        *,
        ignore_unknown: bool = False,
        keeps_properties: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        key_fields: Sequence[str] = (),
        body_field: str | None = None,
        key_hint: str = "",
    ) -> None:
        self._whole_row = body_field == WHOLE_ROW
        for name in (*key_fields, *([body_field] if body_field and not self._whole_row else [])):
            if name not in header:
                raise ValueError(f"the CSV header has no {name!r} (it has {', '.join(header)})")
        self._key_places = [header.index(name) for name in key_fields]
        may_be_reserved = keeps_properties or self._whole_row
        columns = [
            _KEY
            if name in key_fields
            else "body"
            if name == body_field
            else _column(name, ignore_unknown=ignore_unknown, may_be_reserved=may_be_reserved)
            for name in header
        ]
        header = [column or name for name, column in zip(header, columns, strict=True)]
        header = [f"{name} {at}" if name == _KEY else name for at, name in enumerate(header)]
        if self._whole_row and ("body" in header or "body_base64" in header):
            raise ValueError("the CSV header has a body, and --body-field '*' is the whole row")
        if key_fields and "keys" in header:
            raise ValueError("the CSV header has keys, and --key-field sets them")
        if not self._whole_row and "body" not in header and "body_base64" not in header:
            raise ValueError(
                "the CSV header has neither body nor body_base64; --body-field COLUMN names the "
                "column of the bodies, --body-field '*' sends whole rows as JSON"
            )
        twice = [name for name, count in Counter(header).items() if name and count > 1]
        if twice:
            raise ValueError(f"the CSV header has {twice[0]} twice")
        self._header = header
        self._fields = frozenset(
            name for name, column in zip(header, columns, strict=True) if column
        )
        self._beside = frozenset(
            name for name in self._fields if name in _BESIDE or name.startswith((_KEY, _LEFT_ASIDE))
        )
        self._make = make
        properties = [n for n, column in zip(header, columns, strict=True) if column is None]
        if any(properties) and not self._whole_row:
            keyed = key_fields or "keys" in header
            hint = "" if keyed else key_hint
            tell(properties_told(name for name in properties if name) + hint)

    def reader(self, *, has_places: bool) -> "RowReader | None":
        """Reads usual lines as columns, see RowReader; None where each line is parsed."""
        from . import given_rows

        several_keys = len(self._key_places) > 1
        if self._whole_row or several_keys or BODY_ENCODING in self._fields:
            return None
        columns = [
            (
                name,
                given_rows.Part.KEY
                if at in self._key_places
                else given_rows.part_of(name)
                if name in self._fields
                else given_rows.Part.PROPERTY,
            )
            for at, name in enumerate(self._header)
        ]
        return given_rows.csv_reader(columns, has_places=has_places)

    def parse(self, record: bytes) -> Outgoing:
        """The message of one line."""
        cells = csv_cells(record)
        if len(cells) != len(self._header):
            raise ValueError(f"has {len(cells)} cells, the header {len(self._header)}")
        fields: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        for name, cell in zip(self._header, cells, strict=True):
            if name == "properties":
                properties |= _json_object(cell)
            elif name == "flag":
                fields[name] = _number(cell)
            elif name in self._fields:
                fields[name] = cell
            elif cell:
                properties[name] = cell
        keys = [cells[place] for place in self._key_places if cells[place]]
        if self._key_places:
            fields["keys"] = KEY_SEPARATOR.join(keys)
        if self._whole_row:
            from rmqctl.parse.json_texts import write_json

            row = [*zip(self._header, cells, strict=True)]
            fields["body"] = write_json({n: cell for n, cell in row if n not in self._beside})
            fields.pop(BODY_ENCODING, None)  # a column of the row
            properties = _json_object(dict(row).get("properties", ""))
        elif fields.get("body_base64") and not fields.get("body"):
            fields["body"] = None
        message = self._make({**fields, "properties": properties})
        divided = divided_key(keys)
        return message if divided is None else message._replace(divided_key=divided)


def csv_cells(record: bytes) -> list[str]:
    """The cells of one CSV record, which may span lines."""
    import csv

    # A body may have megabytes; the limit applies to the whole process.
    csv.field_size_limit(max(csv.field_size_limit(), len(record) + 1))
    text = record.decode("utf-8", "surrogateescape").removesuffix("\r")
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise ValueError(f"is not CSV: {error}") from None


def _json_object(cell: str) -> dict[str, Any]:
    from rmqctl.parse.json_texts import parse_given

    if not cell:
        return {}
    try:
        value = parse_given(cell)
    except ValueError as error:
        raise ValueError(f"its properties are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("its properties are not a JSON object")
    return value


def _number(cell: str) -> int | None:
    if not cell:
        return None
    try:
        return int(cell)
    except ValueError:
        raise ValueError(f"its flag is {cell!r}, not a number") from None
