"""Reading for ``message import --keep-times``: messages with all stored fields."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rmqctl.produce.parsers import Outgoing, from_fields, object_of
from storage.format.compress import MAX_INFLATED_BODY_SIZE
from storage.format.errors import BodyError
from storage.format.host import pack_host
from storage.format.java_numbers import parse_digits
from storage.format.message import (
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    MessageExt,
    MessageSysFlag,
)
from storage.format.sys_flag import gets_unit
from storage.parse.times import parse_epoch
from storage.tools.carve.records import set_stored_body, set_stored_properties

from .import_reader import outgoing_portions, raw_messages, whole

if TYPE_CHECKING:
    from rmqctl.produce.sources import Portion, ReadBytes

_INT, _LONG = 31, 63
_NUMBERS: Final = {
    "reconsume_times": _INT,
    "flag": _INT,
    "sys_flag": _INT,
    "prepared_transaction_offset": _LONG,
}
_TIMES: Final = ("store_timestamp", "born_timestamp")
_HOSTS_V6: Final = MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG


def parse_whole_line(record: bytes, *, ignore_unknown: bool = False) -> Outgoing:
    """The message of a line of JSON."""
    return parse_whole_fields(object_of(record, ignore_unknown=ignore_unknown))


def parse_whole_fields(fields: Mapping[str, Any]) -> Outgoing:
    """The message of an object, or of the cells of a CSV record."""
    message = whole(fields, from_fields(dict(fields), keeps_properties=True))
    return message._replace(stored=_stored(fields, message.body))


def whole_parquet_portions(
    path: str, read: "ReadBytes", *, ignore_unknown: bool = False
) -> "Iterator[Portion]":
    """The rows of a Parquet file."""
    from .parquet import read_parquet, row_fields

    def message_of(cells: dict[str, Any]) -> Outgoing:
        row = row_fields(cells, ignore_unknown=ignore_unknown)
        body = row.pop("body")
        message = whole(row, from_fields({**row, "body": ""}, keeps_properties=True))
        return message._replace(body=body, stored=_stored(row, body))

    yield from outgoing_portions(read_parquet(path, read), message_of)


def whole_raw_portions(path: str, read: "ReadBytes") -> "Iterator[Portion]":
    """Consecutive records."""
    yield from outgoing_portions(raw_messages(path, read), _as_stored)


def _as_stored(message: MessageExt) -> Outgoing:
    try:
        message.inflated_body(MAX_INFLATED_BODY_SIZE)
    except BodyError as error:  # no reader could use it
        raise error.of(message.place) from None
    return Outgoing(
        message.stored_body,
        topic=message.topic,
        queue_id=message.queue_id,
        stored=_storable(message),
    )


def _stored(fields: Mapping[str, Any], body: bytes) -> MessageExt:
    numbers = {name: _number(fields, name, bits) for name, bits in _NUMBERS.items()}
    numbers |= {name: _time(fields, name) for name in _TIMES}
    properties = fields.get("properties")
    if not isinstance(properties, dict):
        raise ValueError("has no properties, and --keep-times needs every field of an export")
    hosts = [_host(fields, name) for name in ("born_host", "store_host")]
    message = MessageExt(
        str(fields.get("topic") or ""),
        body,
        born_host_bytes=hosts[0],
        store_host_bytes=hosts[1],
    )
    for name, number in numbers.items():
        setattr(message, name, number)
    v6 = (len(hosts[0]) == 20) << 4 | (len(hosts[1]) == 20) << 5
    message.sys_flag = message.sys_flag & ~_HOSTS_V6 | v6
    given = properties.items()
    texts = {str(name): str(value) for name, value in given if value is not None}
    set_stored_properties(message, texts)
    set_stored_body(message, body)
    return _storable(message)


def _storable(message: MessageExt) -> MessageExt:
    """The message without fields that are only meaningful in its old store."""
    if not gets_unit(message.sys_flag):
        raise ValueError("is a half message or the end of a transaction, not a message")
    names = (PROPERTY_INNER_MULTI_DISPATCH, PROPERTY_INNER_MULTI_QUEUE_OFFSET)
    if message.get_property(names[0]) is not None:  # offsets of light queues differ here
        kept = {n: v for n, v in message.properties.items() if n not in names}
        set_stored_properties(message, kept)
    return message


def _number(fields: Mapping[str, Any], name: str, bits: int) -> int:
    value = fields.get(name)
    if isinstance(value, str) and parse_digits(value.lstrip("-")) is not None:
        value = int(value)
    if value is None and name == "flag":
        value = 0  # cells of CSV may be empty
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise ValueError(f"its {name} is {value!r}; --keep-times needs every field of an export")
    return value


def _time(fields: Mapping[str, Any], name: str) -> int:
    """A time of an export in ms, in any form of a time."""
    number = _number(fields, name, _LONG)
    if number < 0:
        raise ValueError(f"its {name} {number} lies before 1970")
    try:
        return parse_epoch(number)
    except ValueError as error:
        raise ValueError(f"its {name} {error}") from None


def _host(fields: Mapping[str, Any], name: str) -> bytes:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ValueError(f"its {name} is {value!r}; --keep-times needs every field of an export")
    return pack_host(value)
