"""The names that a message's fields may have in JSON lines, CSV and Parquet, and what others mean.

What ``consume -o jsonl`` and ``message export`` write and a new message has of its own (ids, times,
offsets) is left aside. Names of other tools are taken for what they mean. Any other name is an
error: left aside without a word, a message would lose its key, or come now instead of later.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rmqctl.parse.near_names import nearest_name, plain_name

FIELDS: Final = ("body", "body_base64", "keys", "tags", "flag", "properties", "topic", "queue_id")
"""What is read; topic and queue by ``message import``."""
ALIASES: Final[Mapping[str, str]] = {
    "key": "keys",
    "tag": "tags",
    "value": "body",
    "payload": "body",
    "headers": "properties",
}
"""Names that kcat, rpk and others write, and what they are here."""
_OPTIONS: Final = {
    "delay_level": "--delay-level",
    "delaylevel": "--delay-level",
    "delaytimelevel": "--delay-level",
    "delay": "--delay",
    "partition": "queue_id",
    "offset": "queue_offset",
}
"""What is said of another name; an option where there is no such field."""
_NEAR: Final = 0.8


def written_by_exports() -> frozenset[str]:
    """All names that our own exports write."""
    from rmqctl.message.rows import MessageRow

    return frozenset(MessageRow._fields)


def known_fields(fields: Mapping[str, Any], *, ignore_unknown: bool = False) -> dict[str, Any]:
    """The fields with their own names. ValueError for an unknown name, and for one said twice."""
    found: dict[str, Any] = {}
    exported = None
    for name, value in fields.items():
        field = ALIASES.get(name, name)
        if field not in FIELDS:
            exported = written_by_exports() if exported is None else exported
            if field not in exported:
                if ignore_unknown:
                    continue
                raise ValueError(f"has {name!r}, {unknown(name)}")
        if field != name:
            if field in fields:
                raise ValueError(f"has both {name!r} and {field!r}, which mean the same")
            if field in found:
                raise ValueError(f"has {field} twice, as {name!r} too")
            if field == "properties":
                value = _headers(value)
        found[field] = value
    return found


def unknown(name: str) -> str:
    """The end of a sentence about a name that is no field's."""
    near = nearest(name)
    hint = f"; did you mean {near}?" if near else ""
    return (
        f"which is no field of a message{hint} (fields: {', '.join(FIELDS)}; "
        "--ignore-unknown leaves others aside)"
    )


def nearest(name: str) -> str | None:
    """The field or option that a name is likely to mean; None if it is like none."""
    plain = plain_name(name)
    if plain in _OPTIONS or name.lower() in _OPTIONS:
        return repr(_OPTIONS.get(plain) or _OPTIONS[name.lower()])
    near = nearest_name(name, (*FIELDS, *written_by_exports()), ALIASES, cutoff=_NEAR)
    return None if near is None else repr(near)


def column_of(name: str) -> str | None:
    """The field of a CSV column; None for a property. ValueError for a near miss of a field."""
    if name in ALIASES:
        return ALIASES[name]
    if name in FIELDS or name in written_by_exports():
        return name
    near = nearest(name)
    if near is not None:
        raise ValueError(
            f"the CSV header names {name!r}, which is no field of a message; did you mean {near}? "
            "(a property of that name goes into the column properties; --ignore-unknown leaves "
            "it aside)"
        )
    return None


def properties_told(names: Iterable[str]) -> str:
    """The sentence about columns that become properties."""
    shown = ", ".join(names)
    return f"columns that are no field become properties: {shown}"


def _headers(value: Any) -> Any:
    """Properties of kcat's list of names and values, or of a list of pairs; others as they are."""
    if not isinstance(value, list):
        return value
    if all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in value):
        return {str(one["key"]): one["value"] for one in value}
    if len(value) % 2 or not all(isinstance(name, str) for name in value[::2]):
        raise ValueError("its headers are neither an object nor a list of names and values")
    return dict(zip(value[::2], value[1::2], strict=True))
