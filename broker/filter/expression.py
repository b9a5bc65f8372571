"""The parts of an SQL92 expression, and their values for a message's properties.

Logic has three values. A property that a message does not have is null (None), and a comparison
with null is null, with one exception of RocketMQ's: a property that is present does not equal one
that is absent. Only TRUE matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

from .values import LONG_MIN, EvaluationError, Value, compare, to_double

Properties = Mapping[str, str]


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
        """Give the number with the other sign, in Java's 64 bits."""
        value = self.operand.evaluate(properties)
        if isinstance(value, (str, bool)) or value is None:
            return None
        return LONG_MIN if value == LONG_MIN and isinstance(value, int) else -value


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
