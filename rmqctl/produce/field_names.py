"""Names of message fields in JSON lines, CSV and Parquet, and the meaning of other names.

Fields of ``consume -o jsonl`` and ``message export`` that a new message sets itself (ids, times,
offsets) are ignored. Names of other tools are accepted. Any other name is an error: if it were
ignored silently, a message would lose its key or its delay.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rmqctl.parse.near_names import nearest_name, plain_name
from storage.format.message import RESERVED_PROPERTIES

FIELDS: Final = ("body", "body_base64", "keys", "tags", "flag", "properties", "topic", "queue_id")
"""Fields that are read; topic and queue by ``message import`` only."""
BODY_ENCODING: Final = "body_encoding"
"""Written by ``--body json`` only: whether the body is a JSON value or a text."""
ALIASES: Final[Mapping[str, str]] = {
    "key": "keys",
    "tag": "tags",
    "value": "body",
    "payload": "body",
    "headers": "properties",
}
"""Names of kcat, rpk and other tools, and the names here."""
_OPTIONS: Final = {
    "delay_level": "--delay-level",
    "delaylevel": "--delay-level",
    "delaytimelevel": "--delay-level",
    "delay": "--delay",
    "partition": "queue_id",
    "offset": "queue_offset",
}
"""Hints for other names: the option to use instead."""
_NEAR: Final = 0.8


def written_by_exports() -> frozenset[str]:
    """All names in exports of rmqctl."""
    from rmqctl.output.message_rows import MessageRow

    return frozenset({*MessageRow._fields, BODY_ENCODING})


def known_fields(fields: Mapping[str, Any], *, ignore_unknown: bool = False) -> dict[str, Any]:
    """The fields by their names. ValueError for an unknown or duplicate name."""
    found: dict[str, Any] = {}
    exported = None
    for name, value in fields.items():
        field = ALIASES.get(name, name)
        if field not in FIELDS and field != BODY_ENCODING:
            exported = written_by_exports() if exported is None else exported
            if field not in exported:
                if ignore_unknown:
                    continue
                raise ValueError(f"has {name!r}, {unknown(name)}")
        if field != name:
            if field in fields:
                raise ValueError(f"has both {name!r} and {field!r}, which are the same field")
            if field in found:
                raise ValueError(f"has {field} twice, as {name!r} too")
            if field == "properties":
                value = _headers(value)
        found[field] = value
    return found


def unknown(name: str) -> str:
    """The end of a sentence about an unknown name."""
    near = nearest(name)
    hint = f"; did you mean {near}?" if near else ""
    return (
        f"which is not a field of a message{hint} (fields: {', '.join(FIELDS)}; "
        "--ignore-unknown ignores others)"
    )


def nearest(name: str) -> str | None:
    """The field or option that is similar to a name; None for none."""
    plain = plain_name(name)
    if plain in _OPTIONS or name.lower() in _OPTIONS:
        return repr(_OPTIONS.get(plain) or _OPTIONS[name.lower()])
    near = nearest_name(name, (*FIELDS, *written_by_exports()), ALIASES, cutoff=_NEAR)
    return None if near is None else repr(near)


def column_of(name: str, *, may_be_reserved: bool = False) -> str | None:
    """The field of a CSV column; None for a property. ValueError for a misspelt field, and for a
    property that no user's message may have, unless ``may_be_reserved``."""
    if name in ALIASES:
        return ALIASES[name]
    if name in FIELDS or name in written_by_exports():
        return name
    near = nearest(name)
    if near is not None:
        raise ValueError(
            f"the CSV header has {name!r}, which is not a field of a message; did you mean {near}? "
            "(put a property of that name into the column properties; --ignore-unknown ignores it)"
        )
    if name in RESERVED_PROPERTIES and not may_be_reserved:
        raise ValueError(
            f"the CSV header has {name!r}, a name that RocketMQ reserves; rename the column "
            "(--ignore-unknown ignores it)"
        )
    return None


def properties_told(names: Iterable[str]) -> str:
    """The sentence about columns that become properties."""
    shown = ", ".join(names)
    return f"columns that are not fields become properties: {shown}"


def object_of_map(value: Any) -> Any:
    """A map of Arrow, a list of pairs or of {key, value}, as an object; other values unchanged."""
    if isinstance(value, list):
        if all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return _object_of_pairs(value)
        if all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in value):
            return _object_of_pairs((one["key"], one["value"]) for one in value)
    return value


def _headers(value: Any) -> Any:
    """Properties of kcat's list of names and values, or of a list of pairs; others unchanged."""
    value = object_of_map(value)
    if not isinstance(value, list):
        return value
    if len(value) % 2 or not all(isinstance(name, str) for name in value[::2]):
        raise ValueError("its headers are neither an object nor a list of names and values")
    return _object_of_pairs(zip(value[::2], value[1::2], strict=True))


def _object_of_pairs(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """An object. ValueError for a name that is no text, and for one that comes twice: one of its
    values would be lost."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not isinstance(name, str):
            raise ValueError(f"a name of its properties is {name!r}, not a text")
        if name in found:
            raise ValueError(f"has the property {name!r} twice")
        found[name] = value
    return found
