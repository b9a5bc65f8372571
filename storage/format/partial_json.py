"""The whole part of JSON that ends too early, or that is damaged in the middle.

A member counts when its value is complete: ``1:12`` at the very end may have been ``1:123``. Zeros
after the cut are no text: file systems leave them after a power loss.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .errors import JsonError
from .fastjson import JsonKey, JsonObject, JsonValue
from .fastjson_reader import JsonReader

_NOTHING: Final = "\0 \t\r\n"


class PartialJson(NamedTuple):
    """The whole part of a document, an object.

    ``cut_at`` is the position (in characters) of the first text that could not be read, None if the
    text is whole. ``open`` names the objects that the cut lies in, from the outermost member on:
    they are incomplete, so a caller that needs whole rows drops the last one.
    """

    document: JsonObject
    cut_at: int | None
    open: tuple[JsonKey, ...] = ()


def loads_torn(text: str) -> PartialJson:
    """Read as ``fastjson.loads`` does, up to where that is possible; never an error.

    What does not begin as an object gives an empty document.
    """
    return _TornReader(text.rstrip(_NOTHING)).read_torn()


class _TornReader(JsonReader):
    """Keeps what was read when a JsonError comes."""

    _keeps_bytes = True

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._cut: int | None = None
        self._open: list[JsonKey] = []
        self._whole: JsonObject | None = None

    def read_torn(self) -> PartialJson:
        value: JsonValue = {}
        try:
            value = self.read()
        except JsonError:
            if self._cut is None:  # an object was whole, and more follows it
                self._cut = self._start
        document = self._whole if self._whole is not None else value
        if not isinstance(document, dict):
            return PartialJson({}, 0)
        return PartialJson(document, self._cut, tuple(reversed(self._open)))

    def _object(self, depth: int) -> JsonObject:
        members: JsonObject = {}
        try:
            numbers = self._plain_numbers(depth)
            if numbers is not None:
                members = numbers
                self._next()
                return members
            self._next()
            while True:
                while self._is(","):
                    self._next()
                if self._is("}"):
                    break
                key = self._key()
                self._next()
                if not self._is(":"):
                    self._fail("':' is missing after a name")
                self._next()
                value = self._value(depth + 1)
                if self._cut is not None:
                    members[key] = value
                    self._open.append(key)
                    break
                delimited = self._is(",") or self._is("}")
                if delimited or isinstance(value, (dict, list, str)):
                    members[key] = value
                if not delimited:
                    self._fail("',' or '}' is missing after a member")
            if self._cut is None:
                self._next()
        except JsonError:
            if self._cut is None:
                self._cut = self._start
        finally:
            if not depth:
                self._whole = members
        return members
