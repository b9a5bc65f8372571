"""The grammar that ``--where`` and ``--json-path`` share: conditions joined by and, or, not.

::

    either     = both { ("or" | "||") both }
    both       = one { ("and" | "&&") one }
    one        = ("not" | "!") one | "(" either ")" | comparison

A subclass reads its comparisons with the methods for words, quoted texts and lists. It reads
characters, not tokens, as a path, a value and a regular expression end at different ones.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

S = TypeVar("S")

DEEPEST: Final = 100
_SHOWN: Final = 200
"""Characters of a long expression in an error."""
_BLANKS: Final = re.compile(r"\s*")
_OR: Final = re.compile(r"or(?![\w.\[])|\|\|", re.IGNORECASE)
_AND: Final = re.compile(r"and(?![\w.\[])|&&", re.IGNORECASE)
_NOT: Final = re.compile(r"not(?![\w.\[])(?!\s*(?:[=<>~]|![=~]))|!(?![=~])", re.IGNORECASE)
_OPEN: Final = re.compile(r"\(")
_CLOSE: Final = re.compile(r"\)")
_COMMA: Final = re.compile(r",")
_SOME: Final = re.compile(r"\w+|\S")
_OPERATOR: Final = re.compile(
    r"(?P<sign>==|=~|=|!=|!~|<=|>=|<>|<|>|~)"
    r"|(?P<not>not\s+)?(?P<word>in|matches)(?![\w.\[])",
    re.IGNORECASE,
)
_SAME: Final = {"==": "=", "=~": "~", "<>": "!=", "matches": "~", "not matches": "!~"}


def number_of(text: str) -> float | int | None:
    """The number that a text is; None if it is none, or NaN."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return None if number != number else number  # NaN


class Grammar(ABC, Generic[S]):
    """Parses a condition over subjects of one type."""

    def __init__(self, text: str, prefix: str = "") -> None:
        """``prefix`` comes before the expression in errors."""
        self.text = text
        self.at = 0
        """Position of the next character that is read."""
        self._prefix = prefix
        self._depth = 0

    def parse(self) -> Callable[[S], bool]:
        """The predicate; ValueError says what is wrong, and at which character."""
        predicate = self.either()
        if not self.at_end():
            raise self.problem(
                f"unexpected {self.here()!r}", "expected and, or, or the end; quote blanks"
            )
        return predicate

    def either(self) -> Callable[[S], bool]:
        """A whole expression, up to a closing bracket or the end."""
        parts = [self._both()]
        while self.accept(_OR):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else self.any_of(parts)

    def _both(self) -> Callable[[S], bool]:
        parts = [self._one()]
        while self.accept(_AND):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else self.all_of(parts)

    def _one(self) -> Callable[[S], bool]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.problem(f"it is nested deeper than {DEEPEST} levels")
        try:
            if self.accept(_NOT):
                return self.negated(self._one())
            if self.accept(_OPEN):
                inner = self.either()
                if not self.accept(_CLOSE):
                    raise self.problem("missing )")
                return inner
            return self.comparison()
        finally:
            self._depth -= 1

    # What the words between conditions mean

    def any_of(self, parts: Sequence[Callable[[S], bool]]) -> Callable[[S], bool]:
        """Whether one of some conditions holds."""
        return lambda subject: any(p(subject) for p in parts)

    def all_of(self, parts: Sequence[Callable[[S], bool]]) -> Callable[[S], bool]:
        """Whether all of some conditions hold."""
        return lambda subject: all(p(subject) for p in parts)

    def negated(self, inner: Callable[[S], bool]) -> Callable[[S], bool]:
        """Whether a condition does not hold."""
        return lambda subject: not inner(subject)

    @abstractmethod
    def comparison(self) -> Callable[[S], bool]:
        """Read one condition."""

    # What subclasses read with

    def problem(self, reason: str, more: str = "", at: int | None = None) -> ValueError:
        """An error at a position, by default the next character."""
        at = self.at if at is None else at
        place = "at the end" if at >= len(self.text.rstrip()) else f"at character {at + 1}"
        text = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        return ValueError(f"{self._prefix}{text!r}: {reason} {place}" + (more and f" ({more})"))

    def skip_blanks(self) -> None:
        """Move to the next character that is not blank."""
        found = _BLANKS.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def at_end(self) -> bool:
        """Whether only blanks are left."""
        self.skip_blanks()
        return self.at >= len(self.text)

    def here(self) -> str:
        """The next word, for an error."""
        found = _SOME.match(self.text, self.at)
        return found[0] if found else ""

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what matches after blanks; None, and nothing is read, if nothing does."""
        self.skip_blanks()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def operator(self) -> str | None:
        """The operator: = != < <= > >= ~ !~ in, "not in"; None if there is none."""
        found = self.accept(_OPERATOR)
        if found is None:
            return None
        if found["sign"]:
            text = found["sign"]
        else:
            text = ("not " if found["not"] else "") + found["word"].lower()
        return _SAME.get(text, text)

    def bare(self, stops: str = "") -> str:
        """A text without quotes: up to a blank, ``&&``, ``||``, a closing bracket that it did not
        open, or one of ``stops``."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter.isspace():
                break
            if letter in "([":
                depth += 1
            elif letter in ")]":
                if not depth:
                    break
                depth -= 1
            elif not depth and (letter in stops or self.text.startswith(("&&", "||"), self.at)):
                break
            self.at += 1
        return self.text[start : self.at]

    def values(self, read: Callable[[str], object]) -> None:
        """Read a list in brackets; ``read`` reads a value, which ends before the given stops."""
        if not self.accept(_OPEN):
            raise self.problem("expected ( and a list of values")
        read(",")
        while self.accept(_COMMA):
            read(",")
        if not self.accept(_CLOSE):
            raise self.problem("expected , or )")
