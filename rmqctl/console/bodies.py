"""Bodies of messages as lines: JSON, text or hexadecimal digits."""

import base64
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from rmqctl.output.cells import cells_of
from rmqctl.parse.json_texts import parse_json

from .cells import safe
from .drawing import Line, Role, Span

MOST_BYTES: Final = 256 << 10
"""Bytes of a body that are shown; the screen says so."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_HEX_BYTES: Final = 16
_DEEPEST: Final = 24
"""Levels that are indented."""


class Form(StrEnum):
    """How a body is shown."""

    JSON = "JSON"
    TEXT = "text"
    HEX = "hex"


def body_of(row: Any) -> bytes | None:
    """The body of a row with ``body`` and ``body_base64``; None if it could not be unpacked."""
    if row.body is not None:
        return str(row.body).encode("utf-8", "surrogateescape")
    return None if row.body_base64 is None else base64.b64decode(row.body_base64)


def forms_of(body: bytes) -> list[Form]:
    """The forms that a body can be shown in, the best one first."""
    shown = body[:MOST_BYTES]
    try:
        # A cut letter at the end is no reason to call it binary.
        shown.decode("utf-8") if len(shown) == len(body) else shown[:-4].decode("utf-8", "ignore")
        body.decode("utf-8")
    except UnicodeDecodeError:
        return [Form.HEX]
    if len(body) <= MOST_BYTES:
        try:
            parse_json(body)
        except ValueError:
            pass
        else:
            return [Form.JSON, Form.TEXT, Form.HEX]
    return [Form.TEXT, Form.HEX]


def body_lines(body: bytes, form: Form, width: int, *, wrap: bool) -> list[Line]:
    """The lines of a body, of at most ``MOST_BYTES`` of it."""
    shown = body[:MOST_BYTES]
    if form is Form.HEX:
        return [[Span(line)] for line in _hex_lines(shown, width)]
    text = shown.decode("utf-8", "replace")
    if form is Form.JSON:
        lines = _json_lines(text)
    else:
        lines = [[Span(safe(line.expandtabs(4)))] for line in text.split("\n")]
    if not wrap:
        return lines
    return [piece for line in lines for piece in wrapped_line(line, width)]


def wrapped_line(line: Sequence[Span], width: int) -> list[Line]:
    """A line, as several of a width."""
    found: list[Line] = [[]]
    left = width = max(1, width)
    for span in line:
        text = span.text
        while text:
            count = _fitting(text, left)
            if not count and left == width:
                count = 1
            if count:
                found[-1].append(Span(text[:count], span.role))
                left -= cells_of(text[:count])
                text = text[count:]
            if text:
                found.append([])
                left = width
    return found


def _fitting(text: str, width: int) -> int:
    """How many letters of a text fit; the marks of a letter stay with it."""
    if text.isascii():
        return max(0, min(width, len(text)))
    used = 0
    for count, letter in enumerate(text):
        used += cells_of(letter)
        if used > width:
            return count
    return len(text)


def _hex_lines(body: bytes, width: int) -> Iterator[str]:
    per_line = _HEX_BYTES if width >= 74 else _HEX_BYTES // 2
    for start in range(0, len(body), per_line):
        part = body[start : start + per_line]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        yield f"{start:06x}  {part.hex(' '):{3 * per_line}} {letters}"


def _json_lines(text: str) -> list[Line]:
    """The text of a JSON value over several lines. No number and no name is changed."""
    lines: list[Line] = [[]]
    depth = 0
    tokens = _TOKEN.findall(text)
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token in "{[":
            lines[-1].append(Span(token))
            depth += 1
            if following not in "]}":
                lines.append(_indent(depth))
        elif token in "}]":
            depth -= 1
            if tokens[at - 1] not in "{[":
                lines.append(_indent(depth))
            lines[-1].append(Span(token))
        elif token == ",":
            lines[-1].append(Span(token))
            lines.append(_indent(depth))
        elif token == ":":
            lines[-1].append(Span(": "))
        else:
            role = Role.HEAD if following == ":" else Role.TEXT
            lines[-1].append(Span(safe(token), role))
    return lines


def _indent(depth: int) -> Line:
    return [Span("  " * min(depth, _DEEPEST))]
