"""The parts of an SQL92 expression, and their values for a message's properties.

Logic has three values. A property that a message does not have is null (None), and a comparison
with null is null, with one exception of RocketMQ's: a property that is present does not equal one
that is absent. Only TRUE matches.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

Properties = Mapping[str, str]
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


class Long(int):
    """A number that an Integer of Java could hold, and that is a Long."""

    __slots__ = ()


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
    is_long = isinstance(like, Long) or not INT_MIN <= like <= INT_MAX
    low, high = (LONG_MIN, LONG_MAX) if is_long else (INT_MIN, INT_MAX)
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


class Expression(ABC):
    """Something that has a value for each message."""

    __slots__ = ()

    @abstractmethod
    def evaluate(self, properties: Properties) -> Value | None:
        """Give the value; None is null. Raises EvaluationError."""


class Constant(Expression):
    """A literal. TRUE, FALSE and NULL count as boolean."""

    __slots__ = ("value",)

    def __init__(self, value: Value | None) -> None:
        self.value = value

    def evaluate(self, properties: Properties) -> Value | None:
        """Give the literal's value."""
        return self.value


class Property(Expression):
    """A property of the message, by name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def evaluate(self, properties: Properties) -> Value | None:
        """Give its text; None if the message does not have it."""
        return properties.get(self.name)


class Negation(Expression):
    """Unary minus; null for what is no number."""

    __slots__ = ("operand",)

    def __init__(self, operand: Expression) -> None:
        self.operand = operand

    def evaluate(self, properties: Properties) -> Value | None:
        """Give the number with the other sign, in Java's 64 bits; that of a Long is a Long."""
        value = self.operand.evaluate(properties)
        if isinstance(value, (str, bool)) or value is None:
            return None
        if isinstance(value, int) and value == LONG_MIN:
            return LONG_MIN
        return Long(INT_MIN) if isinstance(value, int) and value == -INT_MIN else -value


class Condition(Expression):
    """An expression that is true, false or null."""

    __slots__ = ()

    @abstractmethod
    def evaluate(self, properties: Properties) -> bool | None:
        """Give the truth; None is null. Raises EvaluationError."""


class Truth(Condition):
    """TRUE, FALSE or NULL where a condition is wanted."""

    __slots__ = ("value",)

    def __init__(self, value: bool | None) -> None:
        self.value = value

    def evaluate(self, properties: Properties) -> bool | None:
        """Give the literal's value."""
        return self.value


class BooleanCast(Condition):
    """A property alone where a condition is wanted: never true, as properties are strings."""

    __slots__ = ("operand",)

    def __init__(self, operand: Property) -> None:
        self.operand = operand

    def evaluate(self, properties: Properties) -> bool | None:
        """Give false, or null if the message does not have it."""
        return None if self.operand.evaluate(properties) is None else False


class Equal(Condition):
    """``=``; with NULL on the right IS NULL."""

    __slots__ = ("left", "right")

    def __init__(self, left: Expression, right: Expression) -> None:
        self.left = left
        self.right = right

    def evaluate(self, properties: Properties) -> bool | None:
        """Compare; null if the left side alone is null, false if the right side alone is."""
        left = self.left.evaluate(properties)
        right = self.right.evaluate(properties)
        if left is None:
            return True if right is None else None
        if right is None:
            return False
        return compare(left, right) == 0


ORDERINGS: Final[Mapping[str, Callable[[int], bool]]] = {
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
}


class Ordering(Condition):
    """``>``, ``>=``, ``<`` or ``<=``."""

    __slots__ = ("left", "right", "test")

    def __init__(self, symbol: str, left: Expression, right: Expression) -> None:
        self.test = ORDERINGS[symbol]
        self.left = left
        self.right = right

    def evaluate(self, properties: Properties) -> bool | None:
        """Compare; null if either side is null. Two strings are compared as decimals."""
        left = self.left.evaluate(properties)
        if left is None:
            return None
        right = self.right.evaluate(properties)
        if right is None:
            return None
        if isinstance(left, str) and isinstance(right, str):
            left, right = to_double(left), to_double(right)
        return self.test(compare(left, right))


class In(Condition):
    """``IN`` a list of strings, or ``NOT IN``."""

    __slots__ = ("negated", "operand", "values")

    def __init__(self, operand: Property, values: frozenset[str], *, negated: bool) -> None:
        self.operand = operand
        self.values = values
        self.negated = negated

    def evaluate(self, properties: Properties) -> bool | None:
        """Look the property up; null if the message does not have it."""
        value = self.operand.evaluate(properties)
        return None if value is None else (value in self.values) is not self.negated


class Not(Condition):
    """``NOT``."""

    __slots__ = ("operand",)

    def __init__(self, operand: Condition) -> None:
        self.operand = operand

    def evaluate(self, properties: Properties) -> bool | None:
        """Negate; null stays null."""
        value = self.operand.evaluate(properties)
        return None if value is None else not value


class Both(Condition):
    """``AND``, of two or more conditions: a long chain is one object and not a deep tree."""

    __slots__ = ("parts",)

    def __init__(self, left: Condition, right: Condition) -> None:
        self.parts = _parts_of(Both, left, right)

    def evaluate(self, properties: Properties) -> bool | None:
        """False if one part is false, else null if one is null. The left one goes first."""
        found: bool | None = True
        for part in self.parts:
            value = part.evaluate(properties)
            if value is False:
                return False
            if value is None:
                found = None
        return found


class Either(Condition):
    """``OR``, of two or more conditions."""

    __slots__ = ("parts",)

    def __init__(self, left: Condition, right: Condition) -> None:
        self.parts = _parts_of(Either, left, right)

    def evaluate(self, properties: Properties) -> bool | None:
        """True if one part is true, else null if one is null. The left one goes first."""
        found: bool | None = False
        for part in self.parts:
            value = part.evaluate(properties)
            if value:
                return True
            if value is None:
                found = None
        return found


def _parts_of(
    kind: type[Both] | type[Either], left: Condition, right: Condition
) -> list[Condition]:
    """Both sides. A left side of the same kind, which nothing else uses, gives its list."""
    if not isinstance(left, kind):
        return [left, right]
    left.parts.append(right)
    return left.parts


def matches(condition: Condition, properties: Properties) -> bool:
    """Return whether a message passes; values that cannot be compared do not match."""
    try:
        return condition.evaluate(properties) is True
    except EvaluationError:
        return False
