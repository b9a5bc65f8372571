"""What values that were read from a file must be: types, ranges, members. Pure.

A shape is a function that takes a value and its place, and raises ShapeError where the value is not
as it must be; the sentence names the place: ``topics.Orders is "x", not a whole number from 0 to
9223372036854775807``. Shapes are put together of shapes:

    table(members({"cursor": whole(0), "beyond": rows(items(whole(0), whole(0)))}))

A bool is no number here, although Python takes it for one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NoReturn, TypeAlias

from .errors import FormatError

MAX_LONG: Final = (1 << 63) - 1
"""The largest number that a Java long holds: no offset, time or size is larger."""
MAX_INT: Final = (1 << 31) - 1
"""The largest number that a Java int holds: no queue id is larger."""
MAX_QUEUES: Final = 65_536
"""rmqctl's own bound of the queues of a topic, as lists of queues are held in memory; RocketMQ has
none but MAX_INT."""

MAX_TIME: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: no clock is later."""
MAX_COUNT: Final = 1 << 53
"""More than any counter reaches; the next ones are still numbers that every reader holds."""

Shape: TypeAlias = "Callable[[Any, str], None]"

_NOTHING: Final[Mapping[str, Shape]] = {}
_OF_ALL: Final[dict[Shape, Callable[[Collection[Any]], bool]]] = {}
"""For shapes of numbers: whether many values have the shape, without a step of Python for each."""


def time_or_none(time_ms: int | None) -> int | None:
    """A store time that a clock may have given; else None: it is damaged, as no checksum covers
    it."""
    return None if time_ms is None or not 0 <= time_ms <= MAX_TIME else time_ms


class ShapeError(FormatError):
    """A value is not what it must be. ``place`` names its members from the outermost on."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place} {reason}" if place else f"it {reason}")
        self.place = place
        self.reason = reason


def check(value: Any, shape: Shape) -> None:
    """Raise ShapeError unless a whole document has a shape."""
    shape(value, "")


def anything(value: Any, place: str) -> None:
    """Accept every value: for members that only people read."""


def whole(low: int = -MAX_LONG - 1, high: int = MAX_LONG) -> Shape:
    """Make the shape of a whole number within bounds, both included."""

    def shape(value: Any, place: str) -> None:
        if type(value) is not int or not low <= value <= high:
            fail(value, place, f"a whole number from {low} to {high}")

    def of_all(values: Collection[Any]) -> bool:
        return {*map(type, values)} <= {int} and (
            not values or (low <= min(values) and max(values) <= high)
        )

    _OF_ALL[shape] = of_all
    return shape


def number(low: float, high: float) -> Shape:
    """Make the shape of a number within bounds, with a fraction or without."""

    def shape(value: Any, place: str) -> None:
        if type(value) not in (int, float) or not low <= value <= high:
            fail(value, place, f"a number from {low} to {high}")

    return shape


def text(value: Any, place: str) -> None:
    """Take a text."""
    if type(value) is not str:
        fail(value, place, "a text")


def flag(value: Any, place: str) -> None:
    """Take true or false."""
    if type(value) is not bool:
        fail(value, place, "true or false")


def maybe(inner: Shape) -> Shape:
    """Make the shape of a value that may be null."""

    def shape(value: Any, place: str) -> None:
        if value is not None:
            inner(value, place)

    of_all = _OF_ALL.get(inner)
    if of_all is not None:
        found = of_all
        _OF_ALL[shape] = lambda values: found(
            [value for value in values if value is not None] if None in values else values
        )
    return shape


def one_of(*allowed: Any) -> Shape:
    """Make the shape of one of some values."""

    def shape(value: Any, place: str) -> None:
        if not any(type(value) is type(known) and value == known for known in allowed):
            fail(value, place, f"one of {', '.join(map(str, allowed))}")

    return shape


def rows(inner: Shape) -> Shape:
    """Make the shape of a list of values of one shape."""

    def shape(value: Any, place: str) -> None:
        if type(value) is not list:
            fail(value, place, "a list")
        for at, item in enumerate(value):
            inner(item, f"{place}[{at}]")

    return shape


def items(*inner: Shape) -> Shape:
    """Make the shape of a list of so many values, each of a shape of its own."""

    def shape(value: Any, place: str) -> None:
        if type(value) is not list or len(value) != len(inner):
            fail(value, place, f"a list of {len(inner)}")
        for at, (item, of_item) in enumerate(zip(value, inner, strict=True)):
            of_item(item, f"{place}[{at}]")

    return shape


def table(inner: Shape, *, ids: bool = False) -> Shape:
    """Make the shape of an object whose members have any name and one shape.

    With ``ids`` the names are queue ids: whole numbers in decimal digits.
    """
    of_all = _OF_ALL.get(inner)

    def shape(value: Any, place: str) -> None:
        if type(value) is not dict:
            fail(value, place, "an object")
        if ids and not are_ids(value):
            wrong = next(name for name in value if not is_id(name))
            fail(wrong, f"{place}: a name", "the number of a queue")
        if of_all is not None and of_all(value.values()):
            return
        for name, item in value.items():
            inner(item, f"{place}.{name}" if place else str(name))

    return shape


def members(needed: Mapping[str, Shape], more: Mapping[str, Shape] = _NOTHING) -> Shape:
    """Make the shape of an object with members that it needs, and others that it may have.

    Members of other names are accepted: a later version may know them.
    """

    def shape(value: Any, place: str) -> None:
        if type(value) is not dict:
            fail(value, place, "an object")
        for name, inner in needed.items():
            if name not in value:
                raise ShapeError(place, f"has no member {name}")
            inner(value[name], f"{place}.{name}" if place else name)
        for name, inner in more.items():
            if name in value:
                inner(value[name], f"{place}.{name}" if place else name)

    return shape


def is_id(name: str) -> bool:
    """Whether a text is the number of a queue, as the name of a member in JSON."""
    return len(name) <= _DIGITS and name.isascii() and name.isdigit() and int(name) <= MAX_INT


def are_ids(names: Collection[str]) -> bool:
    """Whether all texts are numbers of queues; a tenth of the time of ``is_id`` for each."""
    text = "".join(names)
    if not text.isascii() or not text.isdigit():  # not one digit, or another character
        return not names
    return ("" not in names and max(map(len, names)) < _DIGITS) or all(map(is_id, names))


_DIGITS: Final = len(str(MAX_INT))
_SHOWN: Final = 40


def fail(value: Any, place: str, wanted: str) -> NoReturn:
    """Raise a ShapeError for a value that should be something else."""
    raise ShapeError(place, f"is {shown(value)}, not {wanted}")


def shown(value: Any) -> str:
    """Name a value of any kind in a few characters."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) > 10**_SHOWN:
        return "a huge number"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
