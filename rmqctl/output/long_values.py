"""Rows with a value of many megabytes, written piece by piece.

A body of some KB may inflate to the limit of inflation, and JSON has six characters for a zero
byte. So the row is encoded with a short word in the place of each long value, and the value is
written there in parts. All escaping is by character, so the parts give what the whole would.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from rmqctl.output.stdout import Out
from rmqctl.output.values import (
    LONG,
    escape_controls,
    escape_tabs,
    for_terminal,
    json_string,
    pieces_of,
    yaml_string,
)
from rmqctl.output.view import Format, View


def write_row(
    row: Sequence[Any], text_of: Callable[[Sequence[Any]], str], view: View, out: Out
) -> None:
    """Write the text of a row, the long values of which are not in memory twice."""
    long = [at for at, value in enumerate(row) if isinstance(value, str) and len(value) > LONG]
    if not long or view.format in _CUT:
        out.write(text_of(row))
        return
    word = f"value{os.urandom(8).hex()}x"
    short = list(row)
    for at in long:
        short[at] = f"{word}{at}x"
    rest = text_of(short)
    for at in long:
        before, _, rest = rest.partition(f"{word}{at}x")
        out.write(before)
        _write_value(row[at], view, out)
    out.write(rest)


_CUT: Final = frozenset({Format.TABLE, Format.WIDE, Format.MD})
"""Formats for people: their cells are cut."""


def _write_value(value: str, view: View, out: Out) -> None:
    escape, quote = _written_as(value, view)
    out.write(quote)
    for piece in pieces_of(value):
        out.write(escape(piece))
    out.write(quote)


def _written_as(value: str, view: View) -> tuple[Callable[[str], str], str]:
    """How parts of a value are written in a format, and what is put around it."""
    match view.format:
        case Format.JSON | Format.JSONL:  # the word is in quotes already
            return json_string, ""
        case Format.YAML:
            return yaml_string, '"'
        case Format.CSV:
            shown = escape_controls if view.terminal else str
            marks = '",' if view.terminal else '",\r\n'
            quote = '"' if any(mark in value for mark in marks) else ""
            return lambda piece: shown(piece).replace('"', '""'), quote
    shown = for_terminal if view.terminal else str
    return lambda piece: shown(escape_tabs(piece)), ""
