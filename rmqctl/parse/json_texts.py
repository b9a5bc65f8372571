"""Texts that may be JSON: bodies of messages, and lines of files."""

import json
from typing import Any

from storage.format.strict_json import each_once


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. ValueError if it is none, or nested too deep for Python's reader: more
    than some 900 levels, which depends on who calls it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def parse_given(text: str | bytes) -> Any:
    """What a JSON text with named fields says. Refuses a name that an object has twice, too: which
    of the two values is meant, no reader knows. ValueError."""
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def write_json(value: Any) -> str:
    """The shortest JSON text of a value. ValueError if it has a number that JSON does not know, or
    is nested too deep."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
