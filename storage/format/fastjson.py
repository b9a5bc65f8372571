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
_ESCAPED: Final = '["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]'


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
    return f'"{re.sub(_ESCAPED, _escape, text)}"'


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
    from .fastjson_reader import JsonReader

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
