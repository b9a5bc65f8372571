"""The words of an SQL92 expression (the token rules of RocketMQ's SelectorParser)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from broker.errors import SubscriptionParseError


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
