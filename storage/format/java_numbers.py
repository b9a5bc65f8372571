"""Numbers in texts, and in JSON as fastjson gives them to Java's fields: an int has 32 bits, a
long 64."""

from __future__ import annotations

import re
from typing import Any, Final

from .shapes import MAX_INT, MAX_LONG, shown

_NUMBER: Final = r"[+-]?[0-9]{1,19}"
_MOST_DIGITS: Final = 19
"""Digits of the largest number of 8 bytes; int() raises for thousands of them."""


def parse_digits(text: str) -> int | None:
    """Give the number of a text of ASCII digits; None for any other text, and beyond 19 digits."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)


def parse_int(text: str) -> int | None:
    """Give the number of a text of ASCII digits that an int holds; None for any other text."""
    number = parse_digits(text)
    return None if number is None or number > MAX_INT else number


def java_int(value: Any) -> int:
    """Take a value for an int; ValueError for what an int does not hold."""
    return _within(value, MAX_INT, "an int")


def java_long(value: Any) -> int:
    """Take a value for a long; ValueError for what a long does not hold."""
    return _within(value, MAX_LONG, "a long")


def next_java_long(number: int) -> int:
    """The long after a long, as AtomicLong counts: the smallest one follows the largest."""
    return number + 1 if number < MAX_LONG else -MAX_LONG - 1


def next_java_int(number: int) -> int:
    """The int after an int, as Java adds: the smallest one follows the largest."""
    return number + 1 if number < MAX_INT else -MAX_INT - 1


def _within(value: Any, most: int, kind: str) -> int:
    """Numbers in quotes count, fractions are cut, true is 1 (TypeUtils.castToInt)."""
    number: int | None = None
    if isinstance(value, (int, float)):
        number = int(value)  # OverflowError for an infinity, which no reader lets through
    elif isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
        number = int(value)
    if number is None or not -most - 1 <= number <= most:
        raise ValueError(f"{shown(value)} is no number that {kind} holds")
    return number
