"""JSON as fastjson 1.2 writes and reads it (RemotingSerializable.toJson(obj, true)).

Written with one TAB a level, ``"key":value`` without a blank and no newline at the end. A map with
int keys keeps them bare and stays on one line, but for its closing brace:

    {
        "offsetTable":{
                "TopicTest@g1":{0:5,1:7
                }
        }
    }

fastjson reads far more than JSON; ``loads`` takes what it takes of that in practice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Final, NoReturn, TypeAlias

from .errors import JsonError

JsonKey: TypeAlias = "str | int"
JsonMap: TypeAlias = (
    "Mapping[JsonKey, JsonValue] | Mapping[str, JsonValue] | Mapping[int, JsonValue]"
)
JsonValue: TypeAlias = "bool | int | float | str | Sequence[JsonValue] | JsonMap | None"
JsonObject: TypeAlias = "dict[JsonKey, JsonValue]"

MAX_DEPTH: Final = 100
"""Deepest nesting that ``loads`` accepts; RocketMQ's own files need six levels."""

_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\"} | dict(
    zip("\b\t\n\f\r", ("\\b", "\\t", "\\n", "\\f", "\\r"), strict=True)
)
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')


def dumps(value: JsonValue) -> str:
    """Write a value as RocketMQ's config files have it; members keep the dict's order.

    Members that are None are left out, as fastjson does. Lists stay on one line: that is how it
    writes Java's arrays and sets, the only ones in the files of 4.9.
    """
    out: list[str] = []
    _write(value, 0, out)
    return "".join(out)


def _write(value: JsonValue, depth: int, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(_quoted(value))
    elif isinstance(value, Mapping):
        _write_map(value, depth, out)
    elif isinstance(value, Sequence):
        out.append("[")
        for i, item in enumerate(value):
            if i:
                out.append(",")
            _write(item, depth, out)
        out.append("]")
    else:
        out.append(json.dumps(value, allow_nan=False))


def _write_map(members: JsonMap, depth: int, out: list[str]) -> None:
    out.append("{")
    indent = "\n" + "\t" * (depth + 1)
    separator = ""
    for key, value in members.items():
        if value is None:
            continue
        out.append(separator)
        out.append(str(key) + ":" if isinstance(key, int) else f"{indent}{_quoted(key)}:")
        _write(value, depth + 1, out)
        separator = ","
    out.append("\n" + "\t" * depth + "}" if separator else "}")


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04X}"


def loads(text: str, *, once: bool = False) -> JsonValue:
    """Read JSON as tolerantly as fastjson; JsonError if even that fails.

    Beyond JSON: bare int keys (they become ints), bare names, single quotes, surplus commas,
    ``+1``, ``1L``, ``\\x41``, control bytes in strings, comments. Numbers in quotes stay strings. A
    later duplicate member wins; with ``once``, for what a user has written, it is an error. Nesting
    beyond ``MAX_DEPTH`` is an error.
    """
    if not once:
        with suppress(ValueError, RecursionError):
            return _read_plain(text)
    return JsonReader(text, once=once).read()


# -- what is JSON but for bare int keys: three to five times as fast ---------------------------

_INT_KEY: Final = re.compile(r"([{,][ \t\r\n]*+)([0-9]{1,18}+)(?=[ \t\r\n]*+:)")
_LIKE_INT_KEY: Final = re.compile(r"[{,][ \t\r\n]*+[0-9]")
_MARK: Final = "\x7f"
_PLAIN_DEPTH: Final = 90


def _read_plain(text: str) -> JsonValue:
    """Read what Python's own parser takes once int keys are quoted; ValueError for all else, and
    wherever the two might see different things: ``JsonReader`` is to read it then.

    Without a backslash each quote begins or ends a string, if the text is JSON at all.
    """
    if "\\" in text or _MARK in text:
        raise ValueError("strings might end elsewhere, or keys be taken for others")
    strings = text.split('"')[1::2]
    if _LIKE_INT_KEY.search('"'.join(strings)):
        raise ValueError("a string looks like a key")
    parts = _INT_KEY.split(text)  # between them what is before a key, and the key
    parts[2::3] = [f'"{_MARK}{key}"' for key in parts[2::3]]
    decoder = _WITHOUT if len(parts) == 1 else _WITH_INT_KEYS
    value: JsonValue = decoder.decode("".join(parts))
    level: list[Any] = [[value]]
    for _ in range(_PLAIN_DEPTH):
        below: list[Any] = []
        for each in level:
            for item in each.values() if type(each) is dict else each:
                if type(item) is dict or type(item) is list:
                    below.append(item)  # noqa: PERF401 - a call for each otherwise
        if not below:
            return value
        level = below
    raise ValueError("nested deep")


def _with_int_keys(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    return {int(key[1:]) if key[:1] == _MARK else key: value for key, value in pairs}


def _finite(token: str) -> float:
    number = float(token)
    if not isfinite(number):
        raise ValueError("this number is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_WITHOUT: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)
_WITH_INT_KEYS: Final = json.JSONDecoder(
    parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_with_int_keys
)

# -- all that fastjson takes ------------------------------------------------------------------

# Blanks and comments, then one token. A bare word is a Java identifier.
_TOKEN: Final = re.compile(
    r"""(?:[\s\x00\ufeff]++|/\*.*?\*/|//[^\n]*+)*+
    (?:(?P<punctuation>[{}\[\]:,])
    |"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"
    |'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'
    |(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?P<suffix>[LSBFD]?)(?![\w.])
    |(?P<word>[^\W\d][\w$]*|[$][\w$]*)
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_PAIR: Final = r'"?[0-9]{1,18}+"?\s*+:\s*+[0-9]{1,18}+\s*+'
_NUMBERS: Final = re.compile(rf"\s*+((?:{_PAIR},\s*+)*+{_PAIR})\}}")
"""The rest of an object of plain numbers: the offsets of a topic, thousands of queues perhaps."""
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_UNESCAPED: Final = {c: c for c in "\"'\\/"} | {
    "b": "\b", "t": "\t", "n": "\n", "f": "\f", "F": "\f", "r": "\r", "v": "\v",
    **{str(digit): chr(digit) for digit in range(8)},
}  # fmt: skip
_WORDS: Final[dict[str, JsonValue]] = {
    "true": True, "false": False, "null": None, "NaN": None, "undefined": None
}  # fmt: skip


def _pairs(text: str) -> JsonObject | None:
    """Read ``0:5,1:7`` or ``"0":5,"1":7``; None if only some of the names are quoted."""
    quotes, colons = text.count('"'), text.count(":")
    pairs = (pair.split(":") for pair in text.split(","))
    if not quotes:
        return {int(key): int(value) for key, value in pairs}
    if quotes == 2 * colons:
        return {key.strip()[1:-1]: int(value) for key, value in pairs}
    return None


class JsonReader:
    """Recursive descent over one text; torn_json goes on from here."""

    def __init__(self, text: str, *, once: bool = False) -> None:
        self._text = text
        self._once = once
        self._at = 0  # where the next token is looked for
        self._start = 0  # where the current one begins
        self._kind = ""
        self._token = ""
        self._suffix = ""

    def read(self) -> JsonValue:
        """Read the text as one value; JsonError."""
        self._next()
        value = self._value(0)
        if self._kind != "end":
            self._fail("there is more behind the value")
        return value

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self._start = self._at
            self._fail("this is no JSON token, or a string does not end")
        self._at = match.end()
        kind = match.lastgroup or ""
        if kind == "suffix":
            self._suffix = match["suffix"]
            kind = "number"
        self._kind = kind
        self._token = match[kind]
        self._start = match.start(kind)

    def _fail(self, reason: str) -> NoReturn:
        raise JsonError(reason, self._text, self._start)

    def _value(self, depth: int) -> JsonValue:
        if depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels")
        kind, token = self._kind, self._token
        value: JsonValue
        if token == "{" and kind == "punctuation":
            return self._object(depth)
        if token == "[" and kind == "punctuation":
            return self._array(depth)
        if kind in ("double", "single"):
            value = self._unescaped(token)
        elif kind == "number":
            value = self._number()
        elif kind == "word" and token in _WORDS:
            value = _WORDS[token]
        else:
            self._fail(f"a value is missing before {token!r}" if token else "the text ends here")
        self._next()
        return value

    def _object(self, depth: int) -> JsonObject:
        members: JsonObject = {}
        numbers = self._plain_numbers(depth)
        if numbers is not None:
            self._next()
            return numbers
        self._next()
        while True:
            while self._is(","):
                self._next()
            if self._is("}"):
                self._next()
                return members
            key = self._key()
            if self._once and key in members:
                self._fail(f"it has the key {str(key)[:100]!r} twice")
            self._next()
            if not self._is(":"):
                self._fail("':' is missing behind a name")
            self._next()
            members[key] = self._value(depth + 1)
            if not (self._is(",") or self._is("}")):
                self._fail("',' or '}' is missing behind a member")

    def _plain_numbers(self, depth: int) -> JsonObject | None:
        """Read the rest of an object of numbers at once; None if it is none."""
        numbers = _NUMBERS.match(self._text, self._at) if depth < MAX_DEPTH else None
        if numbers is None or (found := _pairs(numbers[1])) is None:
            return None
        if self._once and len(found) < numbers[1].count(":"):
            return None  # one comes twice; reading them one by one finds which one
        self._at = numbers.end()
        return found

    def _key(self) -> JsonKey:
        if self._kind in ("double", "single"):
            return self._unescaped(self._token)
        if self._kind == "word":
            return self._token
        if self._kind == "number":
            number = self._number()
            return number if isinstance(number, int) else self._token
        return self._fail("a name is missing" if self._token else "the text ends here")

    def _array(self, depth: int) -> list[JsonValue]:
        items: list[JsonValue] = []
        self._next()
        while True:
            while self._is(","):
                self._next()
            if self._is("]"):
                self._next()
                return items
            items.append(self._value(depth + 1))
            if not (self._is(",") or self._is("]")):
                self._fail("',' or ']' is missing behind an item")

    def _is(self, char: str) -> bool:
        return self._token == char and self._kind == "punctuation"

    def _number(self) -> int | float:
        try:
            if self._suffix in ("F", "D"):
                return float(self._token)
            return int(self._token)
        except ValueError:  # a fraction, or more digits than int() accepts
            number = float(self._token)
        return number if isfinite(number) else self._fail("this number is too large")

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text
        return (
            _ESCAPE.sub(self._unescape, text)
            .encode("utf-16", "surrogatepass")
            .decode("utf-16", "replace")
        )

    def _unescape(self, match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16))
        try:
            return _UNESCAPED[match[3]]
        except KeyError:
            return self._fail(f"unknown escape \\{match[3]}")
