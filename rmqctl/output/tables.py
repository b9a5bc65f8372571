"""Tables: fitted to a terminal, as aligned text elsewhere."""

from collections.abc import Sequence
from typing import Any, Final

from rmqctl.output.cells import cells_of, cut_end, cut_middle, wrapped
from rmqctl.output.fields import Field, Fit, Kind, Rank
from rmqctl.output.headings import Times, headings, in_capitals
from rmqctl.output.layout import GAP, Column, lay_out, longest_usual_name
from rmqctl.output.values import for_people
from rmqctl.output.view import Format, View

_BATCH: Final = 1000
"""Rows that a terminal's table is laid out for; more are printed in further batches."""
_USUAL_NUMBER: Final = 6
"""Least width of ages and rates, which change from call to call: ``10m59s``."""

_HEADING: Final = "\x1b[1;36m"
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[31m"
_YELLOW: Final = "\x1b[33m"
_GREEN: Final = "\x1b[32m"
_END: Final = "\x1b[0m"
_COLORS: Final = {
    **dict.fromkeys(
        ("STOP", "STALL", "LOST", "CRITICAL", "STUCK", "DEAD", "AHEAD", "REWIND", "ERROR"), _RED
    ),
    **dict.fromkeys(("WARN", "WARNING", "LAG", "OVERDUE", "UNKNOWN", "FAILED", "NOTE"), _YELLOW),
    **dict.fromkeys(("OK", "CAUGHT_UP", "SEND_OK"), _GREEN),
}
"""Colors of states; the word is always there, too."""
_NAMES: Final = {_RED: "red", _YELLOW: "yellow", _GREEN: "green"}
STATES: Final = frozenset({"status", "state", "severity", "verdict", "event", "send_status"})
"""Fields with a state."""


def state_color(state: str) -> str:
    """The color of a state: red, yellow, green; an empty text for others."""
    return _NAMES.get(_COLORS.get(state.upper(), ""), "")


class Table:
    """Collects rows and prints them in columns; a pause prints the rows so far.

    On a terminal the first batch decides which columns are shown. Later batches keep them.
    """

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        self.fields = fields
        self.view = view
        self._rows: list[list[str]] = []
        self._times = Times(view.zone, view.now_ms)
        self._widths: list[int | None] = []
        self._printed = False
        self._room = 0
        self._left_out: set[int] = set()
        self._not_shown: list[str] = []
        self._remarked: set[str] = set()

    def head(self) -> str:
        """Empty, as widths depend on the rows."""
        return ""

    def rows(self, rows: Sequence[Sequence[Any]]) -> str:
        """Keep the rows; a terminal gets them in batches."""
        times, raw = self._times, self.view.raw
        kinds = [field.kind for field in self.fields]
        self._rows += [
            [
                for_people(value, kind, times, raw=raw)
                for value, kind in zip(row, kinds, strict=True)
            ]
            for row in rows
        ]
        return self._text() if self.view.terminal and len(self._rows) >= _BATCH else ""

    def pause(self) -> str:
        """The rows so far; the header the first time only."""
        return self._text() if self._rows else ""

    def tail(self) -> str:
        """The rest, and the header if there was no row."""
        return self._text() if self._rows or not self._printed else ""

    def remark(self) -> str:
        """The names of columns that the terminal has no room for; each once."""
        names = [name for name in self._not_shown if name not in self._remarked]
        self._remarked.update(names)
        if not names:
            return ""
        return "\n".join(wrapped(f"not shown: {', '.join(names)} (-o wide shows all)", self._room))

    def _text(self) -> str:
        rows, self._rows = self._rows, []
        text = self._fitted(rows) if self.view.terminal else self._aligned(rows)
        self._printed = True
        return text

    def _titles(self) -> list[str]:
        return [
            in_capitals(heading)
            for heading in headings(self.fields, self._times.label, raw=self.view.raw)
        ]

    def _present(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """The columns, without those that are left out if no row has a value."""
        return [
            i
            for i, field in enumerate(self.fields)
            if self.view.columns
            or not field.omit_null
            or any(row[i] not in ("", "-") for row in rows)
        ]

    def _aligned(self, rows: Sequence[Sequence[str]]) -> str:
        """Whole values, whatever the width."""
        shown = self._present(rows)
        titles = self._titles()
        lines = [[row[i] for i in shown] for row in rows]
        if self.view.headers and not self._printed:
            lines.insert(0, [titles[i] for i in shown])
        return aligned(lines, [self.fields[i].numeric for i in shown]) if lines else ""

    def _fitted(self, rows: Sequence[Sequence[str]]) -> str:
        """Lines for the terminal; a header without rows is useless there."""
        if not rows:
            return ""
        titles = self._titles()
        present = self._present(rows)
        known = [i for i, width in enumerate(self._widths) if width is not None]
        anew = not set(present) <= {*known, *self._left_out}
        chosen = present if anew else known
        before = [0] * len(self.fields) if anew else [width or 0 for width in self._widths]
        self._room = _terminal_width()
        columns = [self._column(i, titles[i], before[i], [row[i] for row in rows]) for i in chosen]
        if self.view.format is Format.WIDE:
            self._room = sum(column.whole + GAP for column in columns)
            widths: list[int | None] = [column.whole for column in columns]
        else:
            keep_all = bool(self.view.columns) or not anew
            widths = lay_out(columns, self._room, keep_all=keep_all)
        self._widths = [None] * len(self.fields)
        for i, width in zip(chosen, widths, strict=True):
            self._widths[i] = width
        if anew:
            self._left_out = {i for i in chosen if self._widths[i] is None}
            self._not_shown = [
                titles[i].partition(" (")[0]
                for i in sorted(self._left_out)
                if any(row[i] != "-" for row in rows)
            ]
        text = ""
        if anew and self.view.headers:
            text = self._line(titles, header=True)
        return text + "".join([self._line(row) for row in rows])

    def _column(self, i: int, title: str, before: int, cells: Sequence[str]) -> Column:
        field = self.fields[i]
        widths = [before, *map(cells_of, cells)]
        usual = None
        if field.kind is Kind.STRING and field.fit is Fit.WHOLE:
            limit = longest_usual_name(self._room)
            usual = max((width for width in widths if width <= limit), default=0)
        if field.kind in (Kind.DURATION, Kind.NUMBER):  # columns must not come and go with them
            widths.append(_USUAL_NUMBER)
        heading = cells_of(title) if self.view.headers else 1
        no_value = field.rank is not Rank.KEY and all(cell == "-" for cell in cells)
        rank = Rank.EXTRA if no_value else field.rank
        return Column(heading, max(widths), rank, field.fit, usual)

    def _line(self, row: Sequence[str], *, header: bool = False) -> str:
        """One row; more lines if a name is longer than its column, or sentences are wrapped.

        A name that is longer than its column takes the room of the columns after it; they continue
        on the next line. If that is not enough, either, it stands on a line of its own.
        """
        pen = _Pen(self._room)
        further: list[list[tuple[int, str]]] = []
        start = 0
        for i, width in enumerate(self._widths):
            if width is None:
                continue
            field = self.fields[i]
            text, *rest = [row[i]] if header else _pieces(row[i], width, field)
            cells = cells_of(text)
            style = self._style(field, text, header=header) if self.view.color else ""
            pen.write(start + width - cells if field.numeric else start, text, cells, style)
            for place, piece in enumerate(rest):
                if place == len(further):
                    further.append([])
                further[place].append((start, piece))
            start += width + GAP
        for pieces in further:
            pen.end_line()
            for begin, piece in pieces:
                pen.write(begin, piece, cells_of(piece), "")
        return pen.text()

    @staticmethod
    def _style(field: Field, text: str, *, header: bool) -> str:
        if header:
            return _HEADING
        if text == "-":
            return _DIM
        return _COLORS.get(text.upper(), "") if field.name in STATES else ""


class _Pen:
    """Writes cells at their places on lines of a terminal."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lines: list[str] = []
        self._line = ""
        self._at = 0

    def write(self, begin: int, text: str, cells: int, style: str) -> None:
        """Write a cell; on the next line if its place is taken, or it would exceed the line."""
        if not text:
            return
        if self._at and (begin < self._at + GAP or begin + cells > self._room):
            self.end_line()
        if begin + cells > self._room:
            begin = 0
        self._line += " " * (begin - self._at) + (f"{style}{text}{_END}" if style else text)
        self._at = begin + cells

    def end_line(self) -> None:
        """Continue on the next line."""
        self._lines.append(self._line.rstrip())
        self._line, self._at = "", 0

    def text(self) -> str:
        """All lines."""
        self.end_line()
        return "".join([f"{line}\n" for line in self._lines])


def _pieces(text: str, width: int, field: Field) -> list[str]:
    """The lines of a cell."""
    if len(text) * 2 <= width or cells_of(text) <= width:
        return [text]
    match field.fit:
        case Fit.MIDDLE:
            return [cut_middle(text, width)]
        case Fit.END:
            return [cut_end(text, width)]
        case Fit.WRAP:
            return wrapped(text, width)
    return [text]


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


def _terminal_width() -> int:
    """Width of the terminal of stdout, or of stderr where a plan is shown."""
    from os import get_terminal_size
    from shutil import get_terminal_size as size

    try:
        beside = get_terminal_size(2).columns
    except OSError:
        beside = 0
    return size((beside or 80, 24)).columns
