"""Tables: with Rich on a terminal, as aligned text elsewhere."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from rmqctl.output.fields import Field, Kind
from rmqctl.output.values import for_people
from rmqctl.output.view import Format, View

_GAP: Final = 2
"""Blanks between two columns."""
_LEAST: Final = 8
"""Least width of a text column."""


class TableEdge(Enum):
    """Priority of a column for keeping its width."""

    NONE = auto()
    """A text: it is truncated first."""
    LONG = auto()
    """An id, which is useless in part: it is truncated last."""
    FIRM = auto()
    """A number or a time: never truncated, as a part would be another value."""


def _grip(field: Field) -> TableEdge:
    if field.numeric or field.kind is Kind.TIMESTAMP:
        return TableEdge.FIRM
    return TableEdge.LONG if field.name.endswith("_id") else TableEdge.NONE


class Table:
    """Collects rows and prints them in columns; a pause prints the rows so far."""

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        self.fields = fields
        self.view = view
        self._rows: list[list[str]] = []
        self._printed = False

    def head(self) -> str:
        """Empty, as widths depend on the rows."""
        return ""

    def rows(self, rows: Sequence[Sequence[Any]]) -> str:
        """Keep the rows."""
        zone, raw = self.view.zone, self.view.raw
        kinds = [field.kind for field in self.fields]
        self._rows += [
            [for_people(v, k, zone, raw=raw) for v, k in zip(row, kinds, strict=True)]
            for row in rows
        ]
        return ""

    def pause(self) -> str:
        """The rows so far; the header the first time only."""
        return self._text() if self._rows else ""

    def tail(self) -> str:
        """The rest, and the header if there was no row."""
        return self._text() if self._rows or not self._printed else ""

    def _text(self) -> str:
        headers = self.view.headers and not self._printed
        rows, self._rows, self._printed = self._rows, [], True
        shown = [
            i
            for i, field in enumerate(self.fields)
            if self.view.columns or not field.omit_null or any(row[i] != "-" for row in rows)
        ]
        titles = [self.fields[i].name.upper() for i in shown]
        numeric = [self.fields[i].numeric for i in shown]
        grip = [_grip(self.fields[i]) for i in shown]
        if len(shown) < len(self.fields):
            rows = [[row[i] for i in shown] for row in rows]
        if self.view.terminal:
            # A header without rows is useless on a terminal.
            return _rich_table(titles, numeric, grip, rows, headers, self.view) if rows else ""
        return aligned([titles, *rows] if headers else rows, numeric)


def aligned(lines: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Columns two blanks apart, numbers to the right, no trailing blanks."""
    widths = [max(map(cells_of, column)) for column in zip(*lines, strict=True)]
    text = ""
    for line in lines:
        cells = []
        for cell, width, right in zip(line, widths, numeric, strict=True):
            blanks = " " * (width - cells_of(cell))
            cells.append(blanks + cell if right else cell + blanks)
        text += "  ".join(cells).rstrip() + "\n"
    return text


def cells_of(text: str) -> int:
    """Width of the text on a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text
    )


def _rich_table(
    titles: Sequence[str],
    numeric: Sequence[bool],
    grip: Sequence[TableEdge],
    rows: Sequence[Sequence[str]],
    headers: bool,
    view: View,
) -> str:
    from io import StringIO

    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(
        box=None,
        show_header=headers,
        header_style="bold cyan",
        padding=(0, 2, 0, 0),
        pad_edge=False,
    )
    titles, widths = _laid_out(titles, grip, rows, view)
    for title, right, width in zip(titles, numeric, widths, strict=True):
        table.add_column(
            title,
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=width,
        )
    for row in rows:
        table.add_row(*[Text(cell, style="dim" if cell == "-" else "") for cell in row])
    out = StringIO()
    console = Console(
        file=out,
        width=sum(widths) + _GAP * len(widths),
        force_terminal=view.color,
        no_color=not view.color,
        color_system="standard" if view.color else None,
        legacy_windows=False,
    )
    console.print(table)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _laid_out(
    titles: Sequence[str], grip: Sequence[TableEdge], rows: Sequence[Sequence[str]], view: View
) -> tuple[Sequence[str], Sequence[int]]:
    """Headings and widths for the terminal. Headings are wrapped before numbers exceed its width or
    ids are truncated, and before texts are truncated if that saves half of the truncation."""
    from shutil import get_terminal_size

    whole = [max(map(cells_of, column)) for column in zip(titles, *rows, strict=True)]
    room = get_terminal_size().columns
    if view.format is Format.WIDE or _excess(whole, room) <= 0:
        return titles, whole
    needed = [max(map(cells_of, column)) for column in zip(*rows, strict=True)]
    broken = [_broken(title, width) for title, width in zip(titles, needed, strict=True)]
    narrow = [
        max(width, *map(len, title.split("\n")))
        for title, width in zip(broken, needed, strict=True)
    ]
    cut = _fitted(whole, grip, room)
    ids = [i for i, how in enumerate(grip) if how is TableEdge.LONG]
    keeps_ids = all(cut[i] == whole[i] for i in ids)
    saved = _excess(whole, room) - _excess(narrow, room)
    if _excess(cut, room) <= 0 and keeps_ids and saved * 2 < _excess(whole, room):
        return titles, cut
    return broken, _fitted(narrow, grip, room)


def _excess(widths: Sequence[int], room: int) -> int:
    """The excess of the columns over the width of the terminal."""
    return sum(widths) + _GAP * (len(widths) - 1) - room


def _broken(title: str, width: int) -> str:
    """A heading on several lines, wrapped at underscores to about the width of the values."""
    parts = title.replace("_", "_ ").split()
    width = max(width, *map(len, parts))
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _fitted(widths: Sequence[int], grip: Sequence[TableEdge], room: int) -> list[int]:
    """Widths that fit the terminal: texts are truncated, the widest first, then ids."""
    fitted = list(widths)
    too_wide = _excess(fitted, room)
    for who in (TableEdge.NONE, TableEdge.LONG):
        while too_wide > 0:
            texts = [i for i, how in enumerate(grip) if how is who and fitted[i] > _LEAST]
            if not texts:
                break
            widest = max(texts, key=lambda i: fitted[i])
            others = [fitted[i] for i in texts if i != widest]
            step = min(too_wide, fitted[widest] - max([_LEAST, *others]) or 1)
            fitted[widest] -= step
            too_wide -= step
    return fitted
