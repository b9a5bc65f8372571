"""Conditions on JSON bodies as a table, which compiled code tests for many bodies at once.

Compiled code answers yes or no where it is sure, and leaves a body open where it is not: a
condition that is no comparison of a path with values, a body that is no JSON or odd. JsonFilter
decides these. The table holds every condition, so that a body may be decided by the simple ones.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl import native

if TYPE_CHECKING:
    from .json_facts import FieldFacts, KindFacts

MOST_PATHS: Final = 63
_MOST_NODES: Final = 1000
_MOST_LITERALS: Final = 10_000
_MOST_STEPS: Final = 5000
_LARGEST: Final = (1 << 63) - 1


class Answer(IntEnum):
    """What is known of a body."""

    NO = 0
    YES = 1
    OPEN = 2


class Kind(IntEnum):
    """What a node says."""

    ALL = 0
    ANY = 1
    NEGATED = 2
    PRESENT = 3
    """The value is there, and not null."""
    AMONG = 4
    """It is one of some values, or none of them."""
    ORDERED = 5
    OTHER = 6
    """A condition that is left open."""


class Order(IntEnum):
    """How a value is ordered."""

    LESS = 0
    AT_MOST = 1
    MORE = 2
    AT_LEAST = 3


class Number(IntEnum):
    """What a value on the right side is, taken as a number."""

    NO_NUMBER = 0
    AN_INT = 1
    A_FLOAT = 2


ORDERS: Final = {"<": Order.LESS, "<=": Order.AT_MOST, ">": Order.MORE, ">=": Order.AT_LEAST}


class Value(NamedTuple):
    """A value on the right side."""

    text: bytes
    quoted: bool
    kind: Number
    whole: int
    fraction: float


class Node(NamedTuple):
    """A condition."""

    kind: Kind
    inner: "tuple[Node, ...]" = ()
    steps: tuple[bytes | int, ...] = ()
    wanted: int = 0
    values: tuple[Value, ...] = ()
    field: "FieldFacts | None" = None
    fits: "KindFacts | None" = None


OTHER: Final = Node(Kind.OTHER)


def value_of(text: str, number: float | None, *, quoted: bool) -> Value | None:
    """The value of a literal; None for one that is left to the reference."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # it came as bytes that are no UTF-8
        return None
    if number is None:
        return Value(data, quoted, Number.NO_NUMBER, 0, 0.0)
    if isinstance(number, int):
        if not -_LARGEST <= number <= _LARGEST:
            return None
        return Value(data, quoted, Number.AN_INT, number, 0.0)
    if number - number != 0:  # infinite
        return None
    return Value(data, quoted, Number.A_FLOAT, 0, number)


def steps_of(steps: Sequence[Any]) -> tuple[bytes | int, ...] | None:
    """The steps of a path; None for a path that is left to the reference."""
    found: list[bytes | int] = []
    for step in steps:
        if type(step) is int and step >= 0:
            found.append(step)
        elif type(step) is str:
            try:
                found.append(step.encode())
            except UnicodeEncodeError:
                return None
        else:
            return None
    return tuple(found)


class Plan:
    """The table of some conditions that all have to hold."""

    def __init__(self, conditions: Sequence[Node]) -> None:
        self._fields: list[Node] = []
        self._nodes: list[tuple[int, int, int, int, tuple[Value, ...]]] = []
        self._add(Node(Kind.ALL, tuple(conditions)))
        self._paths = tuple(node.steps for node in self._fields)
        values = sum(len(node[4]) for node in self._nodes)
        steps = sum(map(len, self._paths))
        self.is_usable: Final = (
            native.compiled is not None
            and 0 < len(self._paths) <= MOST_PATHS
            and len(self._nodes) <= _MOST_NODES
            and values <= _MOST_LITERALS
            and steps <= _MOST_STEPS
        )
        """Whether compiled code is there, can take it, and decides something."""

    def _add(self, node: Node) -> None:
        at, path = len(self._nodes), len(self._fields)
        self._nodes.append((int(node.kind), path, node.wanted, 1, node.values))
        if node.field is not None:
            self._fields.append(node)
        for inner in node.inner:
            self._add(inner)
        self._nodes[at] = (*self._nodes[at][:3], len(self._nodes) - at, node.values)

    def test(self, ends: Any, text: Any, rows: bytearray) -> "Seen":
        """Test the bodies of the rows that are not 0: each gets an Answer.

        ``ends`` are an int32 each, after a first 0.
        """
        noting = 0
        for bit, node in enumerate(self._fields):
            if node.field is not None and node.field.is_noting:
                noting |= 1 << bit
        seen = Seen(*json_tests(self._paths, tuple(self._nodes), noting, ends, text, rows))
        for node in _at(self._fields, seen.found):
            assert node.field is not None
            node.field.found.mark()
        for node in _at(self._fields, seen.fits):
            assert node.fits is not None
            node.fits.fits.mark()
        for node in _at(self._fields, seen.differs):
            assert node.fits is not None
            node.fits.differs.mark()
        return seen


class Seen(NamedTuple):
    """What was seen in the bodies that were decided."""

    read: int
    """Whether any was."""
    json: int
    matched: int
    found: int
    """A bit for each path."""
    fits: int
    differs: int


def _at(nodes: Sequence[Node], bits: int) -> Iterator[Node]:
    return (node for bit, node in enumerate(nodes) if bits >> bit & 1)


def _json_tests(
    paths: Any, nodes: Any, noting: int, ends: Any, text: Any, rows: bytearray
) -> tuple[int, int, int, int, int, int]:
    """The form that leaves all open."""
    rows[:] = rows.replace(b"\1", bytes([Answer.OPEN]))
    return 0, 0, 0, 0, 0, 0


json_tests: Final = native.form("json_tests", _json_tests)
