"""The properties of a record as text (org.apache.rocketmq.common.message.MessageDecoder).

    name 0x01 value 0x02 name 0x01 value ...

Nothing is escaped. Writers up to 4.9.0 and from 5.2.0 end the last item with 0x02, too; those
between do not. Readers accept both. The order has no meaning: Java writes that of its hash map.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from storage import native
from storage.errors import InvalidMessageError

MAX_PROPERTIES_LENGTH: Final = 32767
"""Bytes: the length is stored as a signed short."""


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Write properties as 4.9.1 and later do: no separator after the last item.

    Items with an empty name or value are left out, as no reader would see them. A separator inside
    a name, or 0x02 inside a value, would come back as other properties: InvalidMessageError.
    A value may hold 0x01.
    """
    items = ["\x01".join((name, value)) for name, value in properties.items() if name and value]
    text = "\x02".join(items)
    if items and (text.count("\x02") != len(items) - 1 or text.count("\x01") != len(items)):
        _check_separators(properties)
    return text.encode()


def _check_separators(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if "\x01" in name or "\x02" in name:
            raise InvalidMessageError(
                f"property name {name!r} holds U+0001 or U+0002, which separate properties"
            )
        if "\x02" in value:
            raise InvalidMessageError(
                f"the value of property {name!r} holds U+0002, which separates properties"
            )


def parse_properties_pure(data: bytes) -> dict[str, str]:
    """Read properties by the rule of 4.9.1 and later; never fails.

    The first 0x01 of an item ends the name; an item without a name, without 0x01 or without a
    value is skipped; a later duplicate wins. Bytes that are not UTF-8 become U+FFFD, as in Java.
    """
    properties = {}
    for item in data.decode("utf-8", "replace").split("\x02"):
        name, _, value = item.partition("\x01")
        if name and value:
            properties[name] = value
    return properties


parse_properties: Final = native.form("parse_properties", parse_properties_pure)


def find_property(data: bytes, name: str) -> str | None:
    """Read one property without parsing the others; same answer as ``parse_properties``."""
    try:
        marker = f"\x02{name}\x01".encode()
    except UnicodeEncodeError:  # a name with a lone surrogate: none that is read has one
        return None
    at = data.rfind(marker)
    while at >= 0:
        start = at + len(marker)
        end = data.find(b"\x02", start)
        value = data[start:] if end < 0 else data[start:end]
        if value:
            return value.decode("utf-8", "replace")
        at = data.rfind(marker, 0, at + 1)
    if not data.startswith(marker[1:]):
        return None
    start = len(marker) - 1
    end = data.find(b"\x02", start)
    return (data[start:] if end < 0 else data[start:end]).decode("utf-8", "replace") or None
