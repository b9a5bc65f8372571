"""Comparing values as RocketMQ does (ComparisonExpression of 4.9).

Properties are strings. Beside a number or a boolean constant they are converted to its type, and
one that does not convert is an error; two strings are ordered as numbers or not at all.
"""

from __future__ import annotations

import math
import re
from typing import Final

Value = str | int | float | bool
"""What an expression can hold, besides None (null)."""

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1
_LONG_DIGITS: Final = len(str(LONG_MAX))

_DOUBLE: Final = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII
)


class EvaluationError(ValueError):
    """Values that cannot be compared; the message does not match."""


def compare(left: Value, right: Value) -> int:
    """Give -1, 0 or 1; -1 for types that cannot be compared.

    Raises EvaluationError for a string that does not convert.
    """
    if isinstance(left, bool):
        if isinstance(right, str):  # RocketMQ casts the wrong side and fails
            raise EvaluationError(f"a boolean cannot be compared with {right!r}")
        return _sign(left, right) if isinstance(right, bool) else -1
    if isinstance(left, str):
        if isinstance(right, str):
            return _sign(left, right)
        if isinstance(right, bool):
            return _sign(left.lower() == "true", right)
        return compare_numbers(to_number(left, right), right)
    if isinstance(right, bool):
        return -1
    if isinstance(right, str):
        return compare_numbers(left, to_number(right, left))
    return compare_numbers(left, right)


def to_number(text: str, like: int | float) -> int | float:
    """Convert a string to the type of a number: Integer, Long or Double, by Java's rules.

    Raises EvaluationError for text that is no such number.
    """
    if isinstance(like, float):
        return to_double(text)
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits.isdecimal():
        raise EvaluationError(f"{text!r} is no whole number")
    if len(digits.lstrip("0")) > _LONG_DIGITS:
        raise EvaluationError(f"a number of {len(digits)} digits is out of range beside {like}")
    # Python reads no text of more than some thousand digits, leading zeros included.
    number = int(f"{text[: len(text) - len(digits)]}{digits.lstrip('0') or '0'}")
    low, high = (INT_MIN, INT_MAX) if INT_MIN <= like <= INT_MAX else (LONG_MIN, LONG_MAX)
    if not low <= number <= high:
        raise EvaluationError(f"{text!r} is out of range beside {like}")
    return number


def to_double(text: str) -> float:
    """Convert a string as Double.valueOf does, but for hexadecimal numbers.

    Raises EvaluationError for text that is no such number.
    """
    trimmed = text.strip("".join(map(chr, range(33))))
    if not _DOUBLE.fullmatch(trimmed):
        raise EvaluationError(f"{text!r} is no number")
    return float(trimmed.rstrip("fFdD") if trimmed[-1] in "fFdD" else trimmed)


def compare_numbers(left: int | float, right: int | float) -> int:
    """Order two numbers as Double.compareTo: NaN is the largest and equal to itself."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) - math.isnan(right)
        if left == right == 0.0:
            return _sign(math.copysign(1.0, left), math.copysign(1.0, right))
    return _sign(left, right)


def _sign(left: str | float, right: str | float) -> int:
    return (left > right) - (left < right)  # type: ignore[operator]
