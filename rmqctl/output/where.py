"""``--where EXPR``: the condition for printing a row.

::

    lag > 1000 and group ~ '^orders'      = == != < <= > >=   ~ or matches   !~   in (a, b)
    lag_bytes > 10M or age_ms >= 2h       and or not, also && || !, and parentheses
    store_timestamp > -1h                 values in the field's own unit; quotes are optional
    keys = order-7, properties.color=red  an array contains it; a member of an object
    commitlog.files > 9                   by the type of its value: number with number
    committed_offset = null               unknown; any other comparison with null is false

``rmqctl explain where`` lists all forms.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from rmqctl.output.fields import Field, Kind, kind_of_member
from rmqctl.output.headings import field_of_heading
from rmqctl.output.values import exact
from rmqctl.parse.conditions import Grammar, number_of
from storage.parse.durations import parse_duration, parse_size
from storage.parse.patterns import search_text
from storage.parse.times import parse_time

Row = Mapping[str, Any]
Predicate = Callable[[Row], bool]

_QUOTED: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NAME: Final = re.compile(r"[^\s()=!<>~&|'\",]+")


class _Untyped(NamedTuple):
    """A right side whose left side may have any type: a number is compared with the number, other
    values with the text."""

    text: str
    number: float | int | None


class Where(Grammar[Row]):
    """Parses an expression over the fields of one row type."""

    def __init__(
        self, text: str, fields: Sequence[Field], now_ms: int, zone: tzinfo | None = None
    ) -> None:
        super().__init__(text, "--where ")
        self._fields = {field.name: field for field in fields}
        self.names: dict[str, None] = {}
        """The fields that the expression reads, as keys in their order there."""
        self._now_ms = now_ms
        self._zone = zone

    def comparison(self) -> Predicate:
        """A field that is true, or a comparison of a field with a value or several."""
        field, read = self._field()
        operator = self.operator()
        if operator is None:
            return lambda row: bool(read(row))
        if operator in {"in", "not in"}:
            return self._among(field, read, negated=operator == "not in")
        self.skip_blanks()
        start = self.at
        text, quoted = self._text()
        value = text if operator in {"~", "!~"} else self._value(text, field, start, quoted=quoted)
        return self._compare(read, operator, value, start)

    def _among(self, field: Field, read: Callable[[Row], Any], *, negated: bool) -> Predicate:
        tests: list[Predicate] = []

        def one(stops: str) -> None:
            self.skip_blanks()
            start = self.at
            text, quoted = self._text(stops)
            value = self._value(text, field, start, quoted=quoted)
            tests.append(self._compare(read, "=", value, start))

        self.values(one)
        if not negated:
            return lambda row: any(test(row) for test in tests)
        return lambda row: read(row) is not None and not any(test(row) for test in tests)

    def _text(self, stops: str = "") -> tuple[str, bool]:
        """A value, and whether it stood in quotes."""
        self.skip_blanks()
        if found := _QUOTED.match(self.text, self.at):
            self.at = found.end()
            return found[found.lastindex or 1], True
        if self.text.startswith(("'", '"'), self.at):
            raise self.problem(f"cannot read a text without its closing {self.text[self.at]}")
        start = self.at
        text = self.bare(stops)
        if not text or text[0] in "=<>~!":
            raise self.problem("expected a value", at=start)
        return text, False

    def _field(self) -> tuple[Field, Callable[[Row], Any]]:
        self.skip_blanks()
        start = self.at
        if found := _QUOTED.match(self.text, start) or _NAME.match(self.text, start):
            self.at = found.end()
        elif start >= len(self.text):
            raise self.problem("expected a field")
        written = found[found.lastindex or 0] if found else self.here()
        name, dot, member = written.partition(".")
        name = name.replace("-", "_").lower()
        field = field_of_heading(name, tuple(self._fields.values()))
        if found is None or field is None:
            near = get_close_matches(name, self._fields, 1)
            more = f"did you mean {near[0]!r}?" if near else f"fields: {', '.join(self._fields)}"
            raise self.problem(f"{written!r} is not a field", more, at=start)
        self.names[field.name] = None
        if not dot:
            return field, lambda row: row[field.name]
        if field.kind is not Kind.OBJECT:
            more = "--json-path 'country = DE' is for JSON bodies" if name == "body" else ""
            raise self.problem(f"{name} has no members", more, at=start)
        return field._replace(name=member), lambda row: _member(row[field.name], member)

    def _value(self, text: str, field: Field, start: int, *, quoted: bool) -> Any:
        """The right side in the unit of the field on the left side; ``field`` has the name of the
        member where the left side is one."""
        if not quoted and text == "null":
            return None
        try:
            match field.kind:
                case Kind.TIMESTAMP:
                    return parse_time(text, self._now_ms, self._zone)
                case Kind.DURATION if not text.isdigit():
                    return parse_duration(text)
                case Kind.SIZE if not text.isdigit():
                    return parse_size(text)
                case Kind.DURATION | Kind.SIZE | Kind.INTEGER:
                    return int(text)
                case Kind.NUMBER:
                    return float(text)
                case Kind.BOOLEAN:
                    return {"true": True, "false": False}[text.lower()]
        except ValueError as error:
            number = field.kind in (Kind.INTEGER, Kind.NUMBER)
            reason = f"{text!r} is not a number" if number else str(error)
            raise self.problem(reason, at=start) from None
        except KeyError:
            reason = f"{field.name} is true or false, not {text!r}"
            raise self.problem(reason, at=start) from None
        unit = kind_of_member(field.name) if field.kind is Kind.OBJECT else None
        return _Untyped(text, self._number(text, unit))

    def _number(self, text: str, kind: Kind | None) -> float | int | None:
        """The number that a text is in a unit; None if it is no number."""
        number = number_of(text)
        if number is not None or kind is None:
            return number
        try:
            match kind:
                case Kind.TIMESTAMP:
                    return parse_time(text, self._now_ms, self._zone)
                case Kind.DURATION:
                    return parse_duration(text)
                case _:
                    return parse_size(text)
        except ValueError:
            return None  # a text, such as a value of a property that is named so

    def _compare(
        self, read: Callable[[Row], Any], operator: str, right: Any, start: int
    ) -> Predicate:
        if right is None:
            if operator not in {"=", "!="}:
                raise self.problem("null can only be compared with = and !=", at=start)
            return lambda row: (read(row) is None) == (operator != "!=")
        if operator in {"~", "!~"}:
            try:
                found = search_text(str(right))
            except ValueError as error:
                raise self.problem(str(error), at=start) from None
            return lambda row: _matches(found, read(row)) == (operator == "~")
        test = _TESTS[operator]
        if isinstance(right, _Untyped):
            return lambda row: _holds(test, read(row), right)

        def compare(row: Row) -> bool:
            left = read(row)
            return left is not None and test(left, right)

        return compare


_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


def _member(value: Any, name: str) -> Any:
    """A member of an object; None without it, and for a value that is no object."""
    return value.get(name) if isinstance(value, Mapping) else None


def _holds(test: Callable[[Any, Any], bool], left: Any, right: _Untyped) -> bool:
    """Whether a comparison holds for a value, or for any item of an array. Objects, true and false
    have no order."""
    if type(left) is str:
        return test(left, right.text)
    if left is None:
        return False
    if isinstance(left, (list, tuple)):
        return any(_holds(test, item, right) for item in left)
    if isinstance(left, (int, float)) and not isinstance(left, bool):
        return test is _TESTS["!="] if right.number is None else test(left, right.number)
    is_order = test not in (_TESTS["="], _TESTS["!="])
    return not is_order and test(exact(left), right.text)


def _matches(found: Callable[[str], bool], value: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, (list, tuple)):
        return any(_matches(found, member) for member in value)
    return found(exact(value))
