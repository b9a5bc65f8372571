"""The tolerant reader of :func:`.fastjson.loads`: all that fastjson takes of what is no JSON.

A module of its own: files that a broker wrote are read without it, and its patterns take a
hundredth of a short command's time.
"""

from __future__ import annotations

import re
from contextlib import suppress
from math import isfinite
from typing import Final, NoReturn

from .errors import JsonError
from .fastjson import MAX_DEPTH, JsonKey, JsonObject, JsonValue

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
_ESCAPES: Final = re.compile(r"(?:\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.))++", re.DOTALL)
_HALF_A_PAIR: Final = "[\ud800-\udc7f\udd00-\udfff]"
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
    """Recursive descent over one text; partial_json goes on from here."""

    _keeps_bytes = False
    """Whether ``\\udcff`` is a byte that is no UTF-8, as rmqctl's own files have it; else it is
    half of a surrogate pair, and becomes U+FFFD."""

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
            self._fail("there is more after the value")
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
                self._fail("':' is missing after a name")
            self._next()
            members[key] = self._value(depth + 1)
            if not (self._is(",") or self._is("}")):
                self._fail("',' or '}' is missing after a member")

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
                self._fail("',' or ']' is missing after an item")

    def _is(self, char: str) -> bool:
        return self._token == char and self._kind == "punctuation"

    def _number(self) -> int | float:
        if self._suffix not in ("F", "D"):
            with suppress(ValueError):  # a fraction, or more digits than int() accepts
                return int(self._token)
        number = float(self._token)
        return number if isfinite(number) else self._fail("this number is too large")

    def _unescaped(self, text: str) -> str:
        # Halves of pairs are escapes: in the rest of a text they are bytes that are no UTF-8.
        return text if "\\" not in text else _ESCAPES.sub(self._unescaped_run, text)

    def _unescaped_run(self, match: re.Match[str]) -> str:
        pairs = _ESCAPE.sub(self._unescape, match[0]).encode("utf-16", "surrogatepass")
        if self._keeps_bytes:
            return re.sub(_HALF_A_PAIR, "\ufffd", pairs.decode("utf-16", "surrogatepass"))
        return pairs.decode("utf-16", "replace")

    def _unescape(self, match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code:
            return chr(int(code, 16))
        try:
            return _UNESCAPED[match[3]]
        except KeyError:
            return self._fail(f"unknown escape \\{match[3]}")
