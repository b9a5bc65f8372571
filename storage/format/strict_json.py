"""Reading JSON that rmqctl wrote itself, or that a user gave it: RFC 8259 and nothing more.

Python's own reader takes ``NaN``, makes an infinity of ``1e400``, and ends in a RecursionError
where values are nested deep. Here all of that is a JsonError. ``fastjson.py`` reads what a Java
broker writes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from math import isfinite
from typing import Any, Final, NoReturn

from .errors import JsonError

MAX_DEPTH: Final = 64
"""Deepest nesting that is read; rmqctl's own files need eight levels."""


def loads_strict(
    data: bytes | str, *, max_depth: int = MAX_DEPTH, escaped_bytes: bool = False
) -> Any:
    """Read one value. JsonError for text that is no JSON, is nested too deep, has a number that a
    float cannot hold, or more digits than Python converts, an object with a name twice, or half of
    a surrogate pair.

    ``escaped_bytes``: a text may have bytes that are no UTF-8, such as FF as ``\\udcff``
    (Python's surrogateescape).
    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise JsonError("these bytes are no UTF-8", "", error.start) from None
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, text, error.pos) from None
    except RecursionError:
        raise JsonError("it is nested too deep", text, 0) from None
    except ValueError as error:
        raise JsonError(str(error), text, 0) from None
    may_have_bytes = escaped_bytes or text is data
    if "\\u" in text and not _is_text(value, "surrogateescape" if may_have_bytes else "strict"):
        raise JsonError("a text in it has half of a surrogate pair", text, 0)
    if text.count("[") + text.count("{") > max_depth and is_deeper(value, max_depth):
        raise JsonError(f"it is nested deeper than {max_depth} levels", text, 0)
    return value


def _is_text(value: Any, errors: str) -> bool:
    """Whether UTF-8 can hold all texts of a value, which escapes may have made."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
    except RecursionError:  # the depth is judged after this
        return True
    return True


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold a text; names of files and arguments may have any bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested deeper than so many levels."""
    level = [value] if type(value) in _NESTING else []
    for _ in range(levels):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is dict:
                below += [each for each in item.values() if type(each) in _NESTING]
            elif kind is list:
                below += [each for each in item if type(each) in _NESTING]
        level = below
    return bool(level)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members. ValueError for a name that comes twice: readers differ in
    which of the two values counts."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = name_given_twice(name for name, _ in pairs)
        raise ValueError(f"it has the key {str(twice)[:100]!r} twice")
    return members


def name_given_twice(names: Iterable[str]) -> str | None:
    """The first of some names that comes again; None if each comes once. There may be millions."""
    counts = Counter(names)
    return next((name for name, count in counts.items() if count > 1), None)


_NESTING: Final = frozenset({dict, list})


def _finite(token: str) -> float:
    number = float(token)
    if not isfinite(number):
        raise ValueError(f"the number {token[:20]} is too large")
    return number


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON")


_DECODER: Final = json.JSONDecoder(
    parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=each_once
)
