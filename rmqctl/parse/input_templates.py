"""Reading records with a template: the other direction of :mod:`rmqctl.parse.templates`."""

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

from .lists import parse_property
from .templates import Field, parse_template

_NUMBERS: Final = frozenset("qoPSTBri")
_TAKEN: Final = frozenset("tqkgsh")
"""What a producer sets; the other fields are read and left aside, so that what one prints the
other reads. Times, offsets and ids are the new message's own."""


class ParsedRecord(NamedTuple):
    """The parts of one record that its template names; None where it does not."""

    body: bytes
    topic: str | None = None
    queue_id: int | None = None
    keys: str | None = None
    tags: str | None = None
    properties: dict[str, str] | None = None


class InputTemplate:
    """A template compiled for reading: literals separate the fields, each as short as it can be.

    ``delimiter`` ends a record in the input; a template that ends with it need not repeat it.
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
                    f"template {text!r} can not be read: nothing separates %{before.code} "
                    f"and %{piece.code}"
                )
            pattern.append(_pattern(piece))
            self._fields.append(piece)
        codes = [field.code for field in self._fields if field.code in _TAKEN]
        if "s" not in codes:
            raise ValueError(f"template {text!r} can not be read: it has no body (%s)")
        twice = {code for code in codes if codes.count(code) > 1}
        if twice:
            raise ValueError(f"template {text!r} can not be read: %{min(twice)} stands in it twice")
        self._pattern = re.compile(b"".join(pattern), re.DOTALL)

    def parse(self, record: bytes) -> ParsedRecord:
        """The record's parts; ValueError names what does not fit the template."""
        found = self._pattern.fullmatch(record)
        if not found:
            raise ValueError(f"does not fit the template {self.text!r}")
        parts: dict[str, Any] = {}
        for field, raw in zip(self._fields, found.groups(), strict=True):
            if field.code in _TAKEN:
                parts[_NAMES[field.code]] = _value(field, raw)
        return ParsedRecord(**parts)


_TEXT: Final = rb'"(?:[^"\\]|\\.)*"'


def _pattern(field: Field) -> bytes:
    """What the field's bytes look like; a text is as short as the next literal allows."""
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
    """One field's value from its bytes, its modifier undone."""
    decoded = _undo(field, raw)
    if field.code == "s":
        if decoded is None:
            raise ValueError("%s{json} is null, which is no body")
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
        raise ValueError(f"%{field.code}{{{field.modifier}}} can not be read: {error}") from None


def _properties(field: Field, decoded: Any) -> dict[str, str]:
    if isinstance(decoded, dict):
        return {str(name): str(value) for name, value in decoded.items()}
    try:
        text = decoded.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("%h is not UTF-8") from None
    return dict(parse_property(part) for part in text.split(",")) if text else {}
