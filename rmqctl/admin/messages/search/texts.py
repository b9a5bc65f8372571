"""The fields of a message that are searched, and the literal bytes of a pattern."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.format.message import MessageExt

Texts = Callable[["MessageExt"], Iterable[bytes]]

FIELDS: Final = ("body", "tags", "keys", "properties")
"""The fields that can be searched; ``properties`` are the values of all, also tags and keys."""
DEFAULT_FIELDS: Final = ("body", "properties")

_NAMED: Final = {"tags": (b"TAGS",), "keys": (b"KEYS",)}
_LEAST: Final = 3
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")


def parse_fields(text: str) -> tuple[str, ...]:
    """The fields of a text such as ``body,tags``; ValueError for an unknown field."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in FIELDS:
            raise ValueError(f"{name!r} is not one of {', '.join(FIELDS)}")
    if not names:
        raise ValueError(f"{text!r} names no field")
    return names


def texts_in(fields: Iterable[str]) -> Texts:
    """A function that returns the texts of a message's fields, as bytes.

    It raises BodyError if the body is needed and cannot be unpacked.
    """
    wanted = frozenset(fields)
    every = "properties" in wanted
    names = frozenset(name for field in wanted for name in _NAMED.get(field, ()))
    body = "body" in wanted

    def texts(message: "MessageExt") -> Iterator[bytes]:
        if every or names:
            for name, value in stored_properties(message.property_bytes):
                if every or name in names:
                    yield value
        if body:
            yield message.body

    return texts


def stored_properties(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and values as stored (MessageDecoder.string2messageProperties)."""
    for item in data.split(b"\x02"):
        name, _, value = item.partition(b"\x01")
        if name and value:
            yield name, value


def literal_of(pattern: str) -> bytes | None:
    """The longest text that every match of a regular expression contains; None if none is found.

    Conservative: alternatives, groups and flags are not analysed.
    """
    if "|" in pattern or "(?" in pattern:
        return None
    runs: list[str] = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            escaped = pattern[at + 1 : at + 2]
            at += 2
            if escaped and not escaped.isalnum() and escaped.isascii():
                at = _take(runs, escaped, pattern, at)
                continue
            if escaped not in _SHORT_ESCAPES:
                return None
        elif character == "(":
            at = _after_group(pattern, at)
        elif character == "[":
            at = _after_class(pattern, at)
        elif character == "{":
            at = max(pattern.find("}", at), at) + 1
        elif character in _SPECIAL:
            at += 1
        else:
            at = _take(runs, character, pattern, at + 1)
            continue
        runs.append("")
    best = max(runs, key=len)
    return best.encode("utf-8", "surrogateescape") if len(best) >= _LEAST else None


_SHORT_ESCAPES: Final = frozenset("dDwWsSbBAzntrfva")
"""Escapes of two characters. Others are longer (``\\x41``, ``\\pN``) or quote text (``\\Q``)."""


def _take(runs: list[str], character: str, pattern: str, at: int) -> int:
    """Add a character to the last run, unless a quantifier follows it."""
    following = pattern[at : at + 1]
    if following and following in "?*{":
        runs.append("")
    elif following == "+":
        runs[-1] += character
        runs.append("")
    else:
        runs[-1] += character
    return at


def _after_group(pattern: str, at: int) -> int:
    depth = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "[":
            at = _after_class(pattern, at) - 1
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return at


def _after_class(pattern: str, at: int) -> int:
    at += 1
    if pattern[at : at + 1] == "^":
        at += 1
    first = at
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "]" and at > first:
            return at + 1
        at += 1
    return at
