"""SQL92 expressions as RocketMQ 4.9 reads them (SelectorParser.jj), by recursive descent.

    expression  = and { OR and }
    and         = equality { AND equality }
    equality    = comparison { "=" comparison | "<>" comparison | IS [ NOT ] NULL }
    comparison  = unary { ( ">" | ">=" | "<" | "<=" ) unary
                        | [ NOT ] BETWEEN unary AND unary
                        | [ NOT ] IN "(" string { "," string } ")" }
    unary       = "+" unary | "-" unary | NOT unary | primary
    primary     = string | integer | decimal | TRUE | FALSE | NULL | name | "(" expression ")"

Keywords may be written small. ``NOT`` binds closer than any comparison: ``NOT a = 1`` is
``(NOT a) = 1``, so put parentheses. What RocketMQ refuses is refused: strings that are ordered, IN
over anything but a property, BETWEEN with its bounds the wrong way round, 0.0. Text after the end
of an expression is refused, too; RocketMQ silently ignores it.

No parser library: most of this module are checks that no grammar expresses, and loading a library
takes longer than all of it (50 ms).
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from broker.errors import SubscriptionParseError

from .expression import (
    LONG_MAX,
    ORDERINGS,
    BooleanCast,
    Both,
    Condition,
    Constant,
    Either,
    Equal,
    EvaluationError,
    Expression,
    In,
    Negation,
    Not,
    Ordering,
    Property,
    Truth,
    compare,
)

_DEEPEST: Final = 100
_LONG_DIGITS: Final = len(str(LONG_MAX))
_TRUTHS: Final = {"TRUE": True, "FALSE": False, "NULL": None}


class Kind(StrEnum):
    """Kind of a word; keywords and symbols are their own kind, in capitals."""

    NAME = "name"
    STRING = "string"
    INTEGER = "integer"
    DECIMAL = "decimal"
    KEYWORD = "keyword"
    SYMBOL = "symbol"
    END = "end"


_SHOWN: Final = 200

KEYWORDS: Final = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})

_RULES: Final = re.compile(
    r"""
    (?P<skip>     [ \t\n\r\f]+ | --[^\n\r]* | /\*.*?\*/ )
  | (?P<decimal>  \d+\.\d*(?:E[+-]?\d+)? | \.\d+(?:E[+-]?\d+)? | \d+E[+-]?\d+ )
  | (?P<integer>  0 | [1-9]\d*L? )
  | (?P<string>   '(?:''|[^'])*' )
  | (?P<name>     [A-Z_$][A-Z0-9_$]* )
  | (?P<symbol>   <> | <= | >= | [=<>()+,-] )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)


class Token(NamedTuple):
    """A word, and where it begins (0-based)."""

    kind: Kind
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind is Kind.END else repr(shortened(self.text))


def parse_error(expression: str, position: int, what: str) -> SubscriptionParseError:
    """Make the error for a position in an expression."""
    place = f"at character {position + 1} of {shortened(expression)!r}"
    return SubscriptionParseError(f"{what}, {place}")


def shortened(text: str) -> str:
    """A text as an error shows it: the beginning of a long one."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def tokens(expression: str) -> list[Token]:
    """Cut an expression into words, the last one Kind.END. Raises SubscriptionParseError."""
    found: list[Token] = []
    position = 0
    while position < len(expression):
        match = _RULES.match(expression, position)
        if match is None:
            what = "a string without its closing '" if expression[position] == "'" else None
            raise parse_error(
                expression, position, what or f"{expression[position]!r} belongs to no word"
            )
        group, text = match.lastgroup, match[0]
        if group == "name" and text.upper() in KEYWORDS:
            found.append(Token(Kind.KEYWORD, text.upper(), position))
        elif group != "skip":
            found.append(Token(Kind(group or ""), text, position))
        position = match.end()
    found.append(Token(Kind.END, "", position))
    return found


@lru_cache(maxsize=100)
def compile_sql92(expression: str) -> Condition:
    """Read an expression; a repeated one is cached.

    Raises SubscriptionParseError, which names the place.
    """
    return _Parser(expression).parse()


class _Parser:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    def parse(self) -> Condition:
        start = self._tokens[0]
        found = self._condition(self._either(), start)
        self._expect_end()
        return found

    # -- grammar

    def _either(self) -> Expression:
        start = self._token
        left = self._both()
        while self._take(Kind.KEYWORD, "OR"):
            middle = self._token
            right = self._condition(self._both(), middle)
            left = Either(self._condition(left, start), right)
        return left

    def _both(self) -> Expression:
        start = self._token
        left = self._equality()
        while self._take(Kind.KEYWORD, "AND"):
            middle = self._token
            right = self._condition(self._equality(), middle)
            left = Both(self._condition(left, start), right)
        return left

    def _equality(self) -> Expression:
        start = self._token
        left = self._comparison()
        for _ in range(_DEEPEST):
            token = self._token
            if self._take(Kind.SYMBOL, "=") or self._take(Kind.SYMBOL, "<>"):
                middle = self._token
                right = self._comparison()
                self._check_equal(left, start, right, middle)
                equal = Equal(left, right)
                left = equal if token.text == "=" else Not(equal)
            elif self._take(Kind.KEYWORD, "IS"):
                negated = self._take(Kind.KEYWORD, "NOT")
                self._expect(Kind.KEYWORD, "NULL")
                null = Equal(left, Constant(None))
                left = Not(null) if negated else null
            else:
                return left
        raise parse_error(self._text, start.position, "it is nested too deeply")

    def _comparison(self) -> Expression:
        start = self._token
        left = self._unary()
        while True:
            token = self._token
            if token.kind is Kind.SYMBOL and token.text in ORDERINGS:
                self._next += 1
                middle = self._token
                left = self._ordering(token.text, left, start, self._unary(), middle)
                continue
            negated = token == (Kind.KEYWORD, "NOT", token.position)
            if negated:
                self._next += 1
            if self._take(Kind.KEYWORD, "BETWEEN"):
                left = self._between(left, start, negated=negated)
            elif self._take(Kind.KEYWORD, "IN"):
                left = self._in(left, start, negated=negated)
            elif negated:
                raise self._unexpected("BETWEEN or IN")
            else:
                return left

    def _between(self, value: Expression, start: Token, *, negated: bool) -> Condition:
        low_at = self._token
        low = self._unary()
        self._expect(Kind.KEYWORD, "AND")
        high_at = self._token
        high = self._unary()
        if negated:
            return Either(
                self._ordering("<", value, start, low, low_at),
                self._ordering(">", value, start, high, high_at),
            )
        if isinstance(low, Constant) and isinstance(high, Constant):
            if low.value is None or high.value is None:
                raise parse_error(self._text, low_at.position, "BETWEEN cannot have NULL")
            try:
                sign = compare(high.value, low.value)
            except EvaluationError as error:
                raise parse_error(self._text, low_at.position, str(error)) from error
            if sign < 0:
                raise parse_error(
                    self._text, low_at.position, f"{low_at} is more than {high_at} in BETWEEN"
                )
        return Both(
            self._ordering(">=", value, start, low, low_at),
            self._ordering("<=", value, start, high, high_at),
        )

    def _in(self, value: Expression, start: Token, *, negated: bool) -> Condition:
        if not isinstance(value, Property):
            raise parse_error(self._text, start.position, "only a property can be IN a list")
        self._expect(Kind.SYMBOL, "(")
        values = [self._string(self._expect(Kind.STRING))]
        while self._take(Kind.SYMBOL, ","):
            values.append(self._string(self._expect(Kind.STRING)))
        self._expect(Kind.SYMBOL, ")")
        return In(value, frozenset(values), negated=negated)

    def _unary(self) -> Expression:
        start = self._token
        self._depth += 1
        if self._depth > _DEEPEST:
            raise parse_error(self._text, start.position, "it is nested too deeply")
        try:
            if self._take(Kind.SYMBOL, "+"):
                return self._unary()
            if self._take(Kind.SYMBOL, "-"):
                return Negation(self._unary())
            if self._take(Kind.KEYWORD, "NOT"):
                operand = self._token
                return Not(self._condition(self._unary(), operand))
            return self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> Expression:
        token = self._token
        self._next += 1
        if token.kind is Kind.STRING:
            return Constant(self._string(token))
        if token.kind is Kind.INTEGER:
            digits = token.text.rstrip("lL")
            if len(digits) > _LONG_DIGITS or int(digits) > LONG_MAX:
                raise parse_error(
                    self._text, token.position, f"{shortened(digits)} has more than 64 bits"
                )
            return Constant(int(digits))
        if token.kind is Kind.DECIMAL:
            value = float(token.text)
            if not 0 < value < float("inf"):
                raise parse_error(
                    self._text, token.position, f"{shortened(token.text)} is out of range"
                )
            return Constant(value)
        if token.kind is Kind.NAME:
            return Property(token.text)
        if token.kind is Kind.KEYWORD and token.text in _TRUTHS:
            return Constant(_TRUTHS[token.text])
        if token.kind is Kind.SYMBOL and token.text == "(":
            inner = self._either()
            self._expect(Kind.SYMBOL, ")")
            return inner
        self._next -= 1
        raise self._unexpected("a property or a value")

    # -- what no grammar expresses

    def _condition(self, found: Expression, start: Token) -> Condition:
        """Return an expression as a condition, if it can be one."""
        if isinstance(found, Condition):
            return found
        if isinstance(found, Property):
            return BooleanCast(found)
        if isinstance(found, Constant) and (found.value is None or isinstance(found.value, bool)):
            return Truth(found.value)
        raise parse_error(self._text, start.position, f"{start} is neither true nor false")

    def _ordering(
        self, symbol: str, left: Expression, left_at: Token, right: Expression, right_at: Token
    ) -> Ordering:
        for side, at in ((left, left_at), (right, right_at)):
            ordered = not isinstance(side, Condition)
            if isinstance(side, Constant):
                ordered = isinstance(side.value, (int, float)) and not isinstance(side.value, bool)
            if not ordered:
                raise parse_error(self._text, at.position, f"{at} cannot be compared by {symbol}")
        return Ordering(symbol, left, right)

    def _check_equal(
        self, left: Expression, left_at: Token, right: Expression, right_at: Token
    ) -> None:
        for side, at in ((left, left_at), (right, right_at)):
            if isinstance(side, Constant) and side.value is None:
                raise parse_error(self._text, at.position, "use IS NULL to look for NULL")
        if (
            isinstance(left, Constant)
            and isinstance(right, Constant)
            and isinstance(left.value, bool)
            and not isinstance(right.value, bool)
        ):
            raise parse_error(
                self._text, left_at.position, f"{left_at} cannot be compared with {right_at}"
            )

    # -- words

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, kind: Kind, text: str) -> bool:
        token = self._token
        if token.kind is not kind or token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, kind: Kind, text: str | None = None) -> Token:
        token = self._token
        if token.kind is not kind or text not in (None, token.text):
            raise self._unexpected(text or f"a {kind}")
        self._next += 1
        return token

    def _expect_end(self) -> None:
        if self._token.kind is not Kind.END:
            raise self._unexpected("AND, OR or the end")

    def _unexpected(self, wanted: str) -> Exception:
        token = self._token
        return parse_error(self._text, token.position, f"{token} where {wanted} belongs")

    def _string(self, token: Token) -> str:
        return token.text[1:-1].replace("''", "'")
