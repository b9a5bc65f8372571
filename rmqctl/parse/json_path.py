"""``--json-path EXPR``: conditions on JSON bodies, joined by and, or, not.

A path alone holds where its member exists and is not null. ``rmqctl explain json-path`` lists all
forms. The forms of filters in RFC 9535 are read, too::

    country = DE and sum > 100           @.country == "DE" && @.sum > 100
    items[*].sku in (x7, x8)             $.items[?@.sku == 'x7' && @.price > 9]

Differences from RFC 9535: a number and its text are equal, a comparison with a missing member is
false, and a path holds for null only where it is compared with null. A time limit follows from the
grammar: RE2 for regular expressions, one ``..`` in a path and none in a filter below it.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from operator import ge, gt, le, lt
from typing import Any, Final, NamedTuple

from storage.parse.patterns import search_text

from .conditions import Grammar, number_of
from .json_facts import Facts, FieldFacts, KindFacts
from .json_plan import ORDERS, OTHER, Answer, Kind as NodeKind, Node, Plan, steps_of, value_of
from .json_steps import Any_, Descent, Path, Slice, Step, Test, reader_of

_MOST_STEPS: Final = 100
_MOST_FILTERS: Final = 10
"""Filters inside each other."""
_MOST_CONDITIONS: Final = 10_000
_ONE: Final = 1
_NAME: Final = re.compile(r"[^.\[\]=!<>~\s()&|,'\"?]+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"' + r"|'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ROOT: Final = re.compile(r"\$|@(?=[.\[\s=!<>~)&|,\]]|$)")
_EXPLICIT: Final = re.compile(r"[$@](?=[.\[])")
_INDEX: Final = re.compile(r"-?[0-9]{1,18}")
_SLICE: Final = re.compile(r"(-?[0-9]{1,18})?\s*:\s*(-?[0-9]{1,18})?(?:\s*:\s*(-?[0-9]{1,18})?)?")
_FUNCTION: Final = re.compile(r"(match|search|length|count)\s*\(")
_EXISTS: Final = re.compile(r"(not\s+)?exists(?![\w.\[])", re.IGNORECASE)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\"'\\/bfnrt]))", re.DOTALL)
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ORDER: Final = {"<": lt, "<=": le, ">": gt, ">=": ge}
_NUMBERS: Final = frozenset({int, float})


def parse_json_path(text: str) -> "JsonFilter":
    """A predicate on bodies for an expression; ValueError for a malformed one."""
    return JsonFilter([JsonCondition(text)])


def parse_path(text: str) -> tuple[Callable[[Any], Iterable[Any]], Callable[[Any], str]]:
    """A path with at most one value: what reads it, and what makes a text of it."""
    condition = JsonCondition(text)
    path = condition.whole_path()
    if not path.singular:
        raise ValueError(f"{text!r} may have several values; name one, such as items[0].sku")
    return reader_of(path, FieldFacts(Facts(), path.text)), _as_text


class JsonFilter:
    """A predicate on bodies: all conditions hold. A body is parsed once for all of them."""

    def __init__(self, conditions: "Sequence[JsonCondition]") -> None:
        self._facts = Facts()
        self._tests = [condition.compile(self._facts) for condition in conditions]
        nodes = zip(conditions, self._tests, strict=True)
        self._plan = Plan([condition.node(test) for condition, test in nodes])

    def __call__(self, body: bytes) -> bool:
        """Whether the body is JSON and all conditions hold."""
        from .json_texts import parse_json

        facts = self._facts
        try:
            value = parse_json(body)
        except ValueError:
            facts.read.mark()
            return False
        facts.json.mark()  # first: a process that is killed in between has no message without JSON
        facts.read.mark()
        for test in self._tests:
            if not test(value):
                return False
        facts.matched.mark()
        return True

    def many(self, ends: Any, text: Any, rows: bytearray) -> None:
        """Test bodies: rows that are not 0 become 1 where this filter holds, else 0.

        ``ends`` are an int32 each, after a first 0.
        """
        left = _ONE
        if self._plan.is_usable:
            seen = self._plan.test(ends, text, rows)
            facts = self._facts
            if seen.json:
                facts.json.mark()
            if seen.read:
                facts.read.mark()
            if seen.matched:
                facts.matched.mark()
            left = int(Answer.OPEN)
        numbers = memoryview(ends).cast("B").cast("i")
        row = rows.find(left)
        while row >= 0:
            rows[row] = self(bytes(text[numbers[row] : numbers[row + 1]]))
            row = rows.find(left, row + 1)

    def mistakes(self) -> list[str]:
        """Why no message that was read can match; empty if one did, or for no such reason."""
        return self._facts.mistakes()


class JsonCondition(Grammar[Any]):
    """One expression."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.compile(Facts())  # a malformed expression is found before the first message

    def compile(self, facts: Facts) -> Test:
        """The test of a parsed body. It notes what it sees in ``facts``."""
        self._facts = facts
        self._nodes: dict[Test, Node] = {}
        self._filters = self._conditions = 0
        self._below_descent = False
        self.at = 0
        return self.parse()

    def node(self, test: Test) -> Node:
        """A test that was made here, for a Plan."""
        return self._nodes.get(test, OTHER)

    def _noted(
        self,
        test: Test,
        kind: NodeKind,
        path: "Path",
        known: FieldFacts,
        values: "Sequence[Literal]" = (),
        wanted: int = 0,
        fits: KindFacts | None = None,
    ) -> Test:
        """The test, with its form for a Plan if it has one."""
        steps = steps_of(path.steps)
        found = [value_of(value.text, value.number, quoted=value.quoted) for value in values]
        if steps is not None and None not in found:
            kept = tuple(value for value in found if value is not None)
            self._nodes[test] = Node(kind, (), steps, wanted, kept, known, fits)
        return test

    # Conditions

    def any_of(self, parts: Sequence[Test]) -> Test:
        """See Grammar."""
        test = super().any_of(parts)
        self._nodes[test] = Node(NodeKind.ANY, tuple(map(self.node, parts)))
        return test

    def all_of(self, parts: Sequence[Test]) -> Test:
        """See Grammar."""
        test = super().all_of(parts)
        self._nodes[test] = Node(NodeKind.ALL, tuple(map(self.node, parts)))
        return test

    def negated(self, inner: Test) -> Test:
        """See Grammar."""
        test = super().negated(inner)
        self._nodes[test] = Node(NodeKind.NEGATED, (self.node(inner),))
        return test

    def comparison(self) -> Test:
        """A path, or a comparison of a path with a value or another path."""
        self._conditions += 1
        if self._conditions > _MOST_CONDITIONS:
            raise self.problem(f"more than {_MOST_CONDITIONS} conditions")
        self.skip_blanks()
        start = self.at
        if found := self.accept(_FUNCTION):
            if found[1] in {"match", "search"}:
                return self._matching(whole=found[1] == "match")
            read = self._figure(found[1])
            known = FieldFacts(self._facts, self.text[start : self.at])
            operator = self.operator()
            if operator is None:
                raise self.problem("expected a comparison")
            return self._compared(read, operator, known)
        path = self._path("a path")
        if found := self.accept(_EXISTS):
            test = self._present(path)
            return self.negated(test) if found[1] else test
        operator = self.operator()
        if operator is None:
            return self._present(path)
        if self._is_literal(path):
            return self._swapped(path, start, operator)
        known = FieldFacts(self._facts, path.text)
        return self._compared(reader_of(path, known), operator, known, path)

    def _is_literal(self, path: Path) -> bool:
        """Whether the left side is a value: ``3 < @.sum`` of RFC 9535."""
        self.skip_blanks()
        text = path.text.strip()
        is_value = number_of(text) is not None or text in {"true", "false", "null"}
        is_value = is_value or bool(_QUOTED.fullmatch(text))
        return is_value and bool(_EXPLICIT.match(self.text, self.at))

    def _swapped(self, left: Path, start: int, operator: str) -> Test:
        if operator not in {"=", "!=", *_ORDER}:
            raise self.problem(f"the left side of {operator} is a path", at=start)
        found = _QUOTED.fullmatch(left.text.strip())
        text = left.text.strip()
        if found:
            text = _unescaped(found[1] if found[1] is not None else found[2])
        value = Literal(text, found is not None)
        path = self._path("a path")
        known = FieldFacts(self._facts, path.text)
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        return self._with_value(reader_of(path, known), mirrored, value, known, start, path)

    def _present(self, path: Path) -> Test:
        known = FieldFacts(self._facts, path.text)
        test = _any(reader_of(path, known), lambda value: value is not None)
        return self._noted(test, NodeKind.PRESENT, path, known)

    def _compared(
        self,
        read: "Callable[[Any], Iterable[Any]]",
        operator: str,
        known: FieldFacts,
        path: Path | None = None,
    ) -> Test:
        if operator in {"~", "!~"}:
            found = self._pattern()
            wanted = operator == "~"
            return _any(read, lambda v: v is not None and found(_as_text(v)) == wanted)
        if operator in {"in", "not in"}:
            values: list[Literal] = []
            self.skip_blanks()
            if self.text.startswith("[", self.at):
                values = [Literal(_as_text(v), type(v) is str) for v in self._json()]
            else:
                self.values(lambda stops: values.append(self._value(stops)))
            tests = list(map(_equal, values))
            wanted = operator == "in"
            among = _any(read, lambda v: any(test(v) for test in tests) == wanted)
            if path is None:
                return among
            return self._noted(among, NodeKind.AMONG, path, known, values, wanted)
        self.skip_blanks()
        start = self.at
        if _EXPLICIT.match(self.text, self.at):
            other = self._path("a path")
            if not other.singular:
                raise self.problem("expected a path without *, .. and filters", at=start)
            return _both(read, reader_of(other, FieldFacts(self._facts, other.text)), operator)
        return self._with_value(read, operator, self._value(), known, start, path)

    def _with_value(
        self,
        read: "Callable[[Any], Iterable[Any]]",
        operator: str,
        right: "Literal",
        known: FieldFacts,
        start: int,
        path: Path | None,
    ) -> Test:
        """A comparison of what is read at ``path``; None for a figure of a path."""
        test = _any(read, self._test(operator, right, known, start))
        if path is None:
            return test
        if operator in {"=", "!="}:
            return self._noted(test, NodeKind.AMONG, path, known, [right], operator == "=")
        return self._noted(
            test, NodeKind.ORDERED, path, known, [right], ORDERS[operator], known.kinds
        )

    def _test(self, operator: str, right: "Literal", known: FieldFacts, start: int) -> Test:
        if operator == "=":
            return _equal(right)
        if operator == "!=":
            equal = _equal(right)
            return lambda value: not equal(value)
        compare: Callable[[Any, Any], bool] = _ORDER[operator]
        number = right.number
        if number is None and not right.quoted:
            raise self.problem(
                f"{right.text!r} is not a number", "quote it to compare texts", at=start
            )
        kind = known.kind(number is not None, text=right.quoted)

        def test(value: Any) -> bool:
            if type(value) in _NUMBERS and number is not None:
                kind.fits.mark()
                return compare(value, number)
            if right.quoted and type(value) is str:
                kind.fits.mark()
                return compare(value, right.text)
            if value is not None:
                kind.differs.mark()
            return False

        return test

    def _matching(self, *, whole: bool) -> Test:
        """The functions match and search of RFC 9535."""
        path = self._path("a path")
        self._expect(",", "expected ,")
        self.skip_blanks()
        found = _QUOTED.match(self.text, self.at)
        if not found:
            raise self.problem("expected a quoted regular expression")
        start, self.at = self.at, found.end()
        text = _unescaped(found[1] if found[1] is not None else found[2])
        search = self._search(f"^(?:{text})$" if whole else text, start)
        self._expect(")", "missing )")
        known = FieldFacts(self._facts, path.text)
        return _any(reader_of(path, known), lambda value: type(value) is str and search(value))

    def _figure(self, name: str) -> "Callable[[Any], Iterable[Any]]":
        """The functions length and count of RFC 9535."""
        path = self._path("a path")
        self._expect(")", "missing )")
        read = reader_of(path, FieldFacts(self._facts, path.text))
        if name == "count":
            return lambda value: (sum(1 for _ in read(value)),)
        return lambda value: (len(v) for v in read(value) if isinstance(v, (str, list, dict)))

    def _expect(self, sign: str, reason: str) -> None:
        self.skip_blanks()
        if not self.text.startswith(sign, self.at):
            raise self.problem(reason)
        self.at += len(sign)

    # Values

    def _value(self, stops: str = "") -> "Literal":
        self.skip_blanks()
        found = _QUOTED.match(self.text, self.at)
        if found:
            self.at = found.end()
            text = _unescaped(found[1] if found[1] is not None else found[2])
            return Literal(text, True)
        if self.text.startswith(("[", "{"), self.at):
            value = self._json()
            return Literal(_as_text(value), False)
        if self.text.startswith(("'", '"'), self.at):
            raise self.problem(f"a text without its closing {self.text[self.at]}")
        start = self.at
        text = self.bare(stops)
        if not text or text[0] in "=<>~!":
            raise self.problem("expected a value", at=start)
        return Literal(text, False)

    def _json(self) -> Any:
        try:
            value, self.at = json.JSONDecoder().raw_decode(self.text, self.at)
        except (ValueError, RecursionError):
            raise self.problem("expected a value: the JSON array or object is malformed") from None
        return value

    def _pattern(self) -> Callable[[str], bool]:
        """A regular expression. In quotes only the quote itself is escaped."""
        self.skip_blanks()
        start = self.at
        found = _QUOTED.match(self.text, self.at)
        if not found:
            text = self.bare()
            if not text:
                raise self.problem("expected a regular expression")
            return self._search(text, start)
        self.at = found.end()
        quote = found[0][0]
        return self._search(found[0][1:-1].replace("\\" + quote, quote), start)

    def _search(self, pattern: str, start: int) -> Callable[[str], bool]:
        try:
            return search_text(pattern)
        except ValueError as error:
            raise self.problem(str(error), at=start) from None

    # Paths

    def _path(self, expected: str) -> Path:
        self.skip_blanks()
        start = self.at
        root = _ROOT.match(self.text, self.at)
        steps: list[Step] = []
        if root:
            if root[0] == "$" and self._filters:
                raise self.problem("expected @: a filter in a path sees its own value only")
            self.at = root.end()
            explicit = bool(_EXPLICIT.match(self.text, start)) or root[0] == "@"
            if root[0] == "$" and not explicit:
                self._first(steps)  # $order.id
                explicit = True
        else:
            explicit = False
            self._first(steps)
            if not steps and not self.text.startswith((".", "["), self.at):
                raise self._no_path(expected)
        above = self._below_descent
        while self._segment(steps):
            pass
        self._below_descent = above
        if len(steps) > _MOST_STEPS:
            raise ValueError(f"a path of {len(steps)} steps is too long ({_MOST_STEPS} at most)")
        return Path(self.text[start : self.at], tuple(steps), explicit)

    def whole_path(self) -> Path:
        """The text as a path alone."""
        self.at = 0
        path = self._path("a path")
        if not self.at_end():
            raise self.problem(f"unexpected {self.here()!r}", "expected a path alone")
        return path

    def _no_path(self, expected: str) -> ValueError:
        example = "such as order.id or items[*].sku=x7"
        if self.at_end():
            return self.problem(f"expected {expected}", example)
        return self.problem(f"expected {expected} instead of {self.here()!r}", example)

    def _first(self, steps: list[Step]) -> None:
        """A name at the beginning, or after a dot."""
        if found := _QUOTED.match(self.text, self.at):
            steps.append(_unescaped(found[1] if found[1] is not None else found[2]))
        elif found := _NAME.match(self.text, self.at):
            steps.append(Any_() if found[0] == "*" else found[0])
        else:
            return
        self.at = found.end()

    def _segment(self, steps: list[Step]) -> bool:
        """Read one more segment; whether there was one."""
        text = self.text
        if text.startswith("..", self.at):
            if self._below_descent:
                raise self.problem("a second .. in a path")
            self._below_descent = True
            steps.append(Descent())
            self.at += 2
            if text.startswith("[", self.at):
                return True
        elif text.startswith(".", self.at):
            self.at += 1
            if text.startswith("[", self.at):
                return True
        elif text.startswith("[", self.at):
            self.at += 1
            steps.append(self._bracket())
            self.skip_blanks()
            if not text.startswith("]", self.at):
                raise self.problem("expected ]")
            self.at += 1
            return True
        else:
            return False
        before = len(steps)
        self._first(steps)
        if len(steps) == before:
            raise self.problem("expected a name")
        return True

    def _bracket(self) -> Step:
        self.skip_blanks()
        text = self.text
        if text.startswith("*", self.at):
            self.at += 1
            return Any_()
        if text.startswith("?", self.at):
            return self._filter()
        if found := _QUOTED.match(text, self.at):
            self.at = found.end()
            return _unescaped(found[1] if found[1] is not None else found[2])
        if found := _SLICE.match(text, self.at):
            self.at = found.end()
            numbers = [None if part is None else int(part) for part in found.groups()]
            if numbers[2] == 0:
                raise self.problem("a step of 0", at=found.start())
            return Slice(slice(*numbers))
        if found := _INDEX.match(text, self.at):
            self.at = found.end()
            return int(found[0])
        raise self.problem("expected an index, a quoted name, * or ?")

    def _filter(self) -> Test:
        self.at += 1
        self._filters += 1
        if self._filters > _MOST_FILTERS:
            raise self.problem(f"more than {_MOST_FILTERS} filters inside each other")
        test = self.either()
        self._filters -= 1
        return test


class Literal(NamedTuple):
    """A value on the right side."""

    text: str
    """As JSON writes it; a text as it is."""
    quoted: bool

    @property
    def number(self) -> float | int | None:
        """The number that the text is; None if it is none."""
        return number_of(self.text)


def _unescaped(text: str) -> str:
    """A quoted text of JSON. A backslash before any other character stays."""
    if "\\" not in text:
        return text

    def letter(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _LETTERS.get(found[2], found[2])

    return _ESCAPE.sub(letter, text)


def _equal(right: Literal) -> Test:
    """Whether a value is the literal: texts and numbers by their text; numbers also by value.
    Quotes exclude true, false and null."""
    text, number, quoted = right.text, right.number, right.quoted

    def equal(value: Any) -> bool:
        if type(value) is str:
            return value == text
        if type(value) in _NUMBERS:
            return (number is not None and value == number) or _as_text(value) == text
        return not quoted and _as_text(value) == text

    return equal


def _any(read: Callable[[Any], Iterable[Any]], test: Test) -> Test:
    def holds(value: Any) -> bool:
        for member in read(value):  # noqa: SIM110 - a generator for any() takes twice as long
            if test(member):
                return True
        return False

    return holds


def _both(
    read: Callable[[Any], Iterable[Any]], other: Callable[[Any], Iterable[Any]], operator: str
) -> Test:
    """A comparison of two paths."""

    def holds(value: Any) -> bool:
        return any(
            _compare(left, right, operator) for right in other(value) for left in read(value)
        )

    return holds


def _compare(left: Any, right: Any, operator: str) -> bool:
    numbers = type(left) in _NUMBERS and type(right) in _NUMBERS
    if operator in {"=", "!="}:
        same = left == right if numbers else _as_text(left) == _as_text(right)
        return same == (operator == "=")
    texts = type(left) is str and type(right) is str
    return (numbers or texts) and bool(_ORDER[operator](left, right))


def _as_text(value: Any) -> str:
    """A text as it is; numbers, true, false and null as JSON writes them."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # the reader's limit of depth is the writer's, too
        return ""
