"""Rows as YAML, by a template: all rows of a type have the same members.

PyYAML looks at each character of a value many times. Most values are ASCII on one line, whose style
(plain, or in single quotes) few tests decide; PyYAML writes the others. The bytes are those that it
would write of the whole.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

from rmqctl.output.encoders import as_yaml
from rmqctl.output.values import safe_json

_WIDTH: Final = 2**31
_ASCII: Final = re.compile(r"[ -~]*")
_BREAK: Final = re.compile("[\n\x85\u2028\u2029]")
_NEVER_FIRST: Final = frozenset("#,[]{}&*!|>'\"%@`")
_PERHAPS_FIRST: Final = frozenset("-?:.")
_LONGEST_NAME: Final = 100
"""Names of 128 characters and more, or of several lines, stand on a line of their own."""
_LONGEST_KNOWN: Final = 64
_MOST_KNOWN: Final = 4096
_RESOLVERS: Final = yaml.SafeDumper.yaml_implicit_resolvers


class UnusualError(Exception):
    """A value takes several lines, or its name does: PyYAML writes the whole row."""


class YamlRows:
    """Writes rows with some names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._known: dict[str, str] = {}
        self._names = names
        self._shown = list(map(self._name, names))

    def row(self, row: Sequence[Any]) -> str:
        """A row; where it has characters that :func:`as_yaml` escapes, they are escaped."""
        text = self._row(row)
        if safe_json(text) == text:
            return text
        return as_yaml([dict(zip(self._names, row, strict=True))])

    def text(self, rows: Sequence[Sequence[Any]]) -> str:
        """The rows as items of a list. Their values are plain: see values.plain."""
        return "".join(map(self._row, rows))

    def _row(self, row: Sequence[Any]) -> str:
        if not row:
            return "- {}\n"
        try:
            lines = [
                f"  {name}:{self._value(value, '  ')}\n"
                for name, value in zip(self._shown, row, strict=True)
            ]
        except UnusualError:
            return _dumped([dict(zip(self._names, row, strict=True))])
        return "-" + "".join(lines)[1:]

    def _value(self, value: Any, margin: str) -> str:
        """What follows the colon of a name that has so much margin."""
        if type(value) is str:
            return " " + self._text(value)
        if value is None:
            return " null"
        if type(value) is int:
            return f" {value}"
        if type(value) is list:
            if not value:
                return " []"
            return "".join([f"\n{margin}- {self._item(each)}" for each in value])
        if type(value) is dict:
            if not value:
                return " {}"
            inner = margin + "  "
            return "".join(
                [
                    f"\n{inner}{self._name(name)}:{self._value(member, inner)}"
                    for name, member in value.items()
                ]
            )
        return " " + self._other(value)

    def _item(self, value: Any) -> str:
        """An item of a list that is no list, and no object."""
        if type(value) is str:
            return self._text(value)
        if type(value) in (list, dict):
            raise UnusualError
        return self._other(value)

    def _name(self, name: str) -> str:
        if not name or len(name) > _LONGEST_NAME or not _ASCII.fullmatch(name):
            raise UnusualError
        return self._text(name)

    def _text(self, text: str) -> str:
        known = self._known.get(text)
        if known is None:
            known = _styled(text)
            if len(text) <= _LONGEST_KNOWN:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[text] = known
        return known

    @staticmethod
    def _other(value: Any) -> str:
        text = _dumped([value])
        if _BREAK.search(text, 0, len(text) - 1):
            raise UnusualError
        return text[2:-1]


def _styled(text: str) -> str:
    """A text of one line in the style that PyYAML chooses."""
    if not _ASCII.fullmatch(text) or (text and text[0] in _PERHAPS_FIRST):
        return YamlRows._other(text)
    if _is_plain(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _is_plain(text: str) -> bool:
    """Whether an ASCII text stands without quotes, and is read as a text."""
    if not text or text[0] in _NEVER_FIRST or text[0] == " " or text[-1] in " :":
        return False
    if ": " in text or " #" in text:
        return False
    rules = _RESOLVERS.get(text[0], []) + _RESOLVERS.get(None, [])
    return not any(pattern.match(text) for _, pattern in rules)


def _dumped(value: Any) -> str:
    dumped: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return dumped
