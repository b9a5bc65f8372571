"""Texts that may be JSON: bodies of messages, and lines of files."""

import json
from typing import Any

from storage.format.strict_json import each_once


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. ValueError if it is malformed, or nested too deep for Python's
    reader: more than some 900 levels, depending on the caller's stack."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_given(text: str | bytes) -> Any:
    """The value of a JSON text with named fields. ValueError also for an object with a duplicate
    name, as its value is ambiguous."""
    try:
        value = json.loads(text, object_pairs_hook=each_once)
        if b"\\u" in text if isinstance(text, bytes) else "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("a text in it has half of a surrogate pair") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return value


def write_json(value: Any) -> str:
    """The shortest JSON text of a value. ValueError for a number that JSON cannot express, or if it
    is nested too deep."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
