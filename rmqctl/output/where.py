"""``--where EXPR``: the condition for printing a row.

::

    lag > 1000 and group ~ '^orders'      = == != < <= > >=   ~ (contains a match)   !~
    lag_bytes > 10M or age_ms >= 2h       and or not, also && || !, and parentheses
    store_timestamp > -1h                 values in the field's own unit; quotes are optional
    keys = order-7, properties.color=red  an array contains it; a member of an object
    committed_offset = null               unknown; any other comparison with null is false
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from rmqctl.output.fields import Field, Kind
from rmqctl.output.headings import field_of_heading
from rmqctl.parse.durations import parse_duration, parse_size
from rmqctl.parse.patterns import search_text
from rmqctl.parse.times import parse_time

Row = Mapping[str, Any]
Predicate = Callable[[Row], bool]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<op>==|!=|<=|>=|!~|&&|\|\||[=<>~()!])"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\""
    r"|(?P<word>[^\s()=!<>~&|'\"]+))"
)
_DEEPEST: Final = 100
_SHOWN: Final = 200
"""Characters of a long expression in an error."""
_COMPARISONS: Final = frozenset({"=", "==", "!=", "<", "<=", ">", ">=", "~", "!~"})


class _Token(NamedTuple):
    text: str
    kind: str
    position: int


class Where:
    """Parses an expression over the fields of one row type."""

    def __init__(
        self, text: str, fields: Sequence[Field], now_ms: int, zone: tzinfo | None = None
    ) -> None:
        self._text = text
        self._fields = {field.name: field for field in fields}
        self._now_ms = now_ms
        self._zone = zone
        self._tokens = self._tokenize()
        self._at = 0
        self._depth = 0

    def parse(self) -> Predicate:
        """The predicate over rows as mappings; ValueError says what is wrong and where."""
        predicate = self._either()
        if self._at < len(self._tokens):
            raise self._problem(f"unexpected {self._tokens[self._at].text!r}")
        return predicate

    def _tokenize(self) -> list[_Token]:
        tokens: list[_Token] = []
        position = 0
        text = self._text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if not found:
                raise self._problem(f"cannot read {text[position:]!r}")
            kind = str(found.lastgroup)
            tokens.append(_Token(found[kind], "text" if kind in _QUOTES else kind, position))
            position = found.end()
        return tokens

    def _problem(self, reason: str) -> ValueError:
        text = self._text if len(self._text) <= _SHOWN else f"{self._text[:_SHOWN]}..."
        return ValueError(f"--where {text!r}: {reason}")

    def _accept(self, *texts: str) -> str | None:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind != "text" and token.text.lower() in texts:
                self._at += 1
                return token.text
        return None

    def _next(self, expected: str) -> _Token:
        if self._at >= len(self._tokens):
            raise self._problem(f"expected {expected} at the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _either(self) -> Predicate:
        parts = [self._both()]
        while self._accept("or", "||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def _both(self) -> Predicate:
        parts = [self._one()]
        while self._accept("and", "&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def _one(self) -> Predicate:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._problem(f"it is nested deeper than {_DEEPEST} levels")
        try:
            if self._accept("not", "!"):
                inner = self._one()
                return lambda row: not inner(row)
            if self._accept("("):
                inner = self._either()
                if not self._accept(")"):
                    raise self._problem("missing )")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Predicate:
        token = self._next("a field")
        field, read = self._field(token)
        following = self._tokens[self._at] if self._at < len(self._tokens) else None
        if following is None or following.text not in _COMPARISONS or following.kind != "op":
            return lambda row: bool(read(row))
        self._at += 1
        right = self._next("a value")
        if right.kind == "op":
            raise self._problem(f"expected a value instead of {right.text!r}")
        matching = following.text in {"~", "!~"}
        value = right.text if matching else self._value(right, field)
        return self._compare(read, following.text, value)

    def _field(self, token: _Token) -> tuple[Field, Callable[[Row], Any]]:
        name, dot, member = token.text.partition(".")
        name = name.replace("-", "_").lower()
        field = field_of_heading(name, tuple(self._fields.values()))
        if token.kind == "op" or field is None:
            near = get_close_matches(name, self._fields, 1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else f" (fields: {', '.join(self._fields)})"
            )
            raise self._problem(f"{token.text!r} is not a field{hint}")
        if not dot:
            return field, lambda row: row[field.name]
        if field.kind is not Kind.OBJECT:
            raise self._problem(f"{name} has no members")
        inner = field._replace(kind=Kind.STRING)
        return inner, lambda row: (row[field.name] or {}).get(member)

    def _value(self, token: _Token, field: Field) -> Any:
        """The right side in the unit of the field on the left side."""
        text = token.text
        if token.kind == "word" and text == "null":
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
            raise self._problem(f"{text!r} is not a number" if number else str(error)) from None
        except KeyError:
            raise self._problem(f"{field.name} is true or false, not {text!r}") from None
        return text

    def _compare(self, read: Callable[[Row], Any], operator: str, right: Any) -> Predicate:
        if right is None:
            if operator not in {"=", "==", "!="}:
                raise self._problem("null can only be compared with = and !=")
            return lambda row: (read(row) is None) == (operator != "!=")
        if operator in {"~", "!~"}:
            try:
                found = search_text(str(right))
            except ValueError as error:
                raise self._problem(str(error)) from None
            return lambda row: _matches(found, read(row)) == (operator == "~")
        test = _TESTS[operator]

        def compare(row: Row) -> bool:
            left = read(row)
            if left is None:
                return False
            if isinstance(left, (list, tuple)):
                return any(test(member, right) for member in left)
            if isinstance(right, str) and not isinstance(left, str):
                left = str(left)
            return test(left, right)

        return compare


_QUOTES: Final = frozenset({"single", "double"})
_TESTS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda left, right: bool(left == right),
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}


def _matches(found: Callable[[str], bool], value: Any) -> bool:
    if value is None:
        return False
    if isinstance(value, (list, tuple)):
        return any(found(str(member)) for member in value)
    return found(str(value))
