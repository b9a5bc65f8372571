"""Reading records with a template, the reverse of :mod:`rmqctl.parse.templates`."""

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

from storage.format.strict_json import name_given_twice

from .lists import parse_property
from .templates import Field, parse_template

_NUMBERS: Final = frozenset("qoPSTBri")
_TAKEN: Final = frozenset("tqkgsh")
"""Fields that a producer sets. Other fields are read and ignored, so that printed messages can
be read again. Times, offsets and ids of the new message are its own."""


class ParsedRecord(NamedTuple):
    """The parts of one record; None for a field that the template does not have."""

    body: bytes
    topic: str | None = None
    queue_id: int | None = None
    keys: str | None = None
    tags: str | None = None
    properties: dict[str, str] | None = None


class InputTemplate:
    """A template compiled for reading: literals separate the fields, each as short as possible.

    ``delimiter`` ends a record of the input; a template may end with it or not.
    """

    def __init__(self, text: str, delimiter: bytes = b"\n") -> None:
        self.text = text
        pieces = parse_template(text)
        if pieces and isinstance(pieces[-1], bytes) and delimiter:
            pieces[-1] = pieces[-1].removesuffix(delimiter)
        pattern: list[bytes] = []
        self._fields: list[Field] = []
        for before, piece in zip([b"-", *pieces], pieces, strict=False):
            if isinstance(piece, bytes):
                pattern.append(re.escape(piece))
                continue
            if isinstance(before, Field):
                raise ValueError(
                    f"template {text!r} is ambiguous: no text separates %{before.code} "
                    f"and %{piece.code}"
                )
            pattern.append(_pattern(piece))
            self._fields.append(piece)
        codes = [field.code for field in self._fields if field.code in _TAKEN]
        if "s" not in codes:
            raise ValueError(f"template {text!r} is invalid: it has no body (%s)")
        twice = name_given_twice(sorted(codes))
        if twice is not None:
            raise ValueError(f"template {text!r} is invalid: it has %{twice} twice")
        self._pattern = re.compile(b"".join(pattern), re.DOTALL)

    def parse(self, record: bytes) -> ParsedRecord:
        """The parts of a record; ValueError if it does not match the template."""
        found = self._pattern.fullmatch(record)
        if not found:
            raise ValueError(f"does not match the template {self.text!r}")
        parts: dict[str, Any] = {}
        for field, raw in zip(self._fields, found.groups(), strict=True):
            if field.code in _TAKEN:
                parts[_NAMES[field.code]] = _value(field, raw)
        return ParsedRecord(**parts)


_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'


def _pattern(field: Field) -> bytes:
    """The pattern of a field; a text is as short as the next literal allows."""
    match field.modifier:
        case "hex":
            return rb"([0-9A-Fa-f]*)"
        case "base64":
            return rb"([A-Za-z0-9+/=]*)"
        case "json" if field.code == "h":
            return rb'(\{(?:[^"}]|' + _TEXT + rb")*\})"
        case "json":
            return rb"(" + _TEXT + rb"|-?\d+|null)"
    return rb"(\d*)" if field.code in _NUMBERS else rb"(.*?)"


_NAMES: Final = {
    "s": "body",
    "t": "topic",
    "q": "queue_id",
    "k": "keys",
    "g": "tags",
    "h": "properties",
}


def _value(field: Field, raw: bytes) -> object:
    """The value of a field from its bytes, with the modifier reversed."""
    decoded = _undo(field, raw)
    if field.code == "s":
        if decoded is None:
            raise ValueError("%s{json} is null, which is not a body")
        return decoded if isinstance(decoded, bytes) else str(decoded).encode()
    if field.code == "h":
        return _properties(field, decoded)
    if isinstance(decoded, bytes):
        try:
            decoded = decoded.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"%{field.code} is not UTF-8") from None
    if field.code == "q":
        if decoded is None or decoded == "":
            return None
        if not str(decoded).isdigit():
            raise ValueError(f"%q is {decoded!r}, not a queue number")
        return int(decoded)
    return str(decoded) if decoded else None


def _undo(field: Field, raw: bytes) -> Any:
    try:
        match field.modifier:
            case "hex":
                return bytes.fromhex(raw.decode("ascii"))
            case "base64":
                return base64.b64decode(raw, validate=True)
            case "json":
                from .json_texts import parse_json

                return parse_json(raw)
            case _:
                return raw
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"%{field.code}{{{field.modifier}}} cannot be read: {error}") from None


def _properties(field: Field, decoded: Any) -> dict[str, str]:
    if isinstance(decoded, dict):
        return {str(name): str(value) for name, value in decoded.items()}
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("%h is not UTF-8") from None
    return dict(parse_property(part) for part in text.split(",")) if text else {}
