"""Texts that may be JSON: bodies of messages, and lines of files."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. ValueError if it is none, or nested too deep for Python's reader: more
    than some 900 levels, which depends on who calls it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def write_json(value: Any) -> str:
    """The shortest JSON text of a value. ValueError if it has a number that JSON does not know, or
    is nested too deep."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
