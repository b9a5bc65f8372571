"""Rows as a list on a screen: filtered, ordered, and as cells of fitted columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rmqctl.output.cells import cells_of
from rmqctl.output.fields import Field, Fit, Kind, fields_of
from rmqctl.output.headings import Times, headings, in_capitals
from rmqctl.output.layout import GAP, Column, lay_out, longest_usual_name
from rmqctl.output.shaping import chosen_fields, predicate_of, sort_keys, sorted_rows
from rmqctl.output.tables import STATES, state_color
from rmqctl.output.values import for_people
from rmqctl.output.view import Format, View

from .cells import fitted
from .drawing import Line, Role, Span

UNKNOWN: Final = "?"
_UNKNOWN_IF_NULL: Final = frozenset(
    {
        *("lag", "lag_bytes", "committed_offset", "retry", "rate_in", "rate_out", "lost"),
        *("members", "queues", "messages", "groups_lag"),
    }
)
"""Fields whose null is something that could not be found out, where it is not a row type that says
which (``unknown``, or Null.UNKNOWN of a field); others have no value then."""
_USUAL_NUMBER: Final = 6
_MOST_TEXTS: Final = 12_000
"""Texts of a column that are kept."""
_ROLES: Final[Mapping[str, Role]] = {"red": Role.BAD, "yellow": Role.WARN, "green": Role.GOOD}


class Filter(NamedTuple):
    """What ``/`` asks for: a text in any cell that is shown."""

    text: str = ""
    excludes: bool = False
    fuzzy: bool = False

    def __bool__(self) -> bool:
        """Whether any row may be left out."""
        return bool(self.text)

    def typed(self, *, fuzzy: bool) -> str:
        """What is typed after ``/``, or ``~``, to have this filter; nothing if it is of the other
        kind."""
        if self.fuzzy is not fuzzy:
            return ""
        return f"!{self.text}" if self.excludes else self.text

    def narrows(self, before: "Filter") -> bool:
        """Whether it takes only rows that another one takes."""
        alike = self.fuzzy is before.fuzzy and not (self.excludes or before.excludes)
        return bool(before) and alike and self.text.casefold().startswith(before.text.casefold())

    def takes(self, cells: Iterable[str]) -> bool:
        """Whether a row with these cells is shown."""
        line = "\0".join(cells).casefold()
        text = self.text.casefold()
        found = _has_letters(line, text) if self.fuzzy else text in line
        return found is not self.excludes


def _has_letters(line: str, text: str) -> bool:
    """Whether the letters come in this order, with others between them."""
    letters = iter(line)
    return all(letter in letters for letter in text)


class _KnownTexts(dict[Any, str]):
    """The texts of the values of a column: most are in many rows, and in those of the next look."""

    def __init__(self, field: Field, times: Times, *, raw: bool) -> None:
        super().__init__()
        self._field = field
        self._times = times
        self._raw = raw

    def __missing__(self, value: Any) -> str:
        return self._keep(value, value)

    def _keep(self, key: Any, value: Any) -> str:
        if value is None and _is_unknown(self._field):
            found = UNKNOWN
        else:
            found = for_people(value, self._field.kind, self._times, raw=self._raw)
        if len(self) >= _MOST_TEXTS:
            self.clear()
        self[key] = found
        return found


class _TypedTexts(_KnownTexts):
    """Those of a column that may have values of several types: 1, 1.0 and True are equal, and so
    are 0, 0.0 and False."""

    def __getitem__(self, value: Any) -> str:
        key = type(value), value
        return self.get(key) or self._keep(key, value)


def _is_unknown(field: Field) -> bool:
    """Whether null is a value that could not be found out, in each row."""
    return field.unknown_if_null or field.name in _UNKNOWN_IF_NULL


def _texts_of(field: Field, times: Times, *, raw: bool) -> _KnownTexts:
    mixed = field.kind in (Kind.OBJECT, Kind.NUMBER)
    return (_TypedTexts if mixed else _KnownTexts)(field, times, raw=raw)


class Arranged(NamedTuple):
    """Rows as a table shows them in one of its states."""

    rows: Sequence[Any]
    shown: list[Any]
    state: object
    now_ms: int
    """The time from which relative times of the condition count."""

    def holds(self, rows: object, state: object, now_ms: int) -> bool:
        """Whether they are so in this state."""
        return self.rows is rows and self.state is state and self.now_ms == now_ms


class RowTable:
    """The rows of one look, and how they are shown.

    The cursor is on a row's key, so it stays on it when others come and go.
    """

    def __init__(self, row_type: type, key: Sequence[str], view: View) -> None:
        self.row_type = row_type
        self.fields: tuple[Field, ...] = fields_of(row_type)
        self._says_unknown = hasattr(row_type, "unknown")
        """Whether each row names the fields whose null could not be found out."""
        self.view = view
        self.filter = Filter()
        self.total = 0
        """Rows of the look, before ``where`` and the filter."""
        self.shown: list[Any] = []
        self.marked: set[tuple[Any, ...]] = set()
        self._rows: list[Any] = []
        self._keep: Callable[[Any], bool] | None = None
        names = [field.name for field in self.fields]
        self._key = [names.index(name) for name in key]
        self._times = Times(view.zone, view.now_ms)
        self._cells: dict[int, list[str]] = {}
        self._known: list[_KnownTexts] = []
        """The texts of values that were shown or searched, by chosen column."""
        self._widths: list[int | None] = []
        self._chosen: list[int] = []
        self._laid_out_for: tuple[Any, ...] = ()
        self._state = object()
        """Another one where what is shown, or in which order, is chosen anew."""
        self._shape()

    # What is shown

    def key_of(self, row: Any) -> tuple[Any, ...]:
        """What tells the row from the others."""
        return tuple(row[index] for index in self._key)

    def set_view(self, view: View) -> None:
        """Show the rows in another way. UsageProblem if the view has a field that is not there."""
        before, self.view = self.view, view
        try:
            self._shape()
        except Exception:
            self.view = before
            self._shape()
            raise
        self._arrange()

    def set_filter(self, wanted: Filter) -> None:
        """Show the rows that have a text."""
        before, self.filter = self.filter, wanted
        self._state = object()
        if wanted.narrows(before):  # most letters that are typed: few rows are looked at again
            self._cells.clear()
            self.shown = [row for row in self.shown if wanted.takes(self.searched(row))]
        else:
            self._arrange()

    def set_now(self, now_ms: int) -> None:
        """Take note when the rows that follow were looked at: relative times of the condition
        count from then."""
        if now_ms != self.view.now_ms:
            self.view = self.view._replace(now_ms=now_ms)
            if self.view.where is not None:
                self._keep = predicate_of(self.fields, self.view)

    def set_rows(self, rows: Iterable[Any], arranged: Arranged | None = None) -> None:
        """Replace the rows by those of a new look; ``arranged`` is used if it still holds."""
        self._rows = list(rows)
        wanted = rows, self._state, self.view.now_ms
        if arranged is not None and arranged.holds(*wanted):
            self._cells.clear()
            self.total, self.shown = len(self._rows), arranged.shown
        else:
            self._arrange()

    def arranged(self, rows: Sequence[Any], now_ms: int) -> Arranged:
        """The rows of a look at a time as they are to be shown. Another thread than the one that
        draws may call it."""
        state = self._state  # before all that may be another one in the next moment
        keep = predicate_of(self.fields, self.view._replace(now_ms=now_ms))
        return Arranged(rows, self._shown_of(rows, keep), state, now_ms)

    def add_rows(self, rows: Iterable[Any]) -> None:
        """Add rows that came later of the same look."""
        self._rows += rows
        self._arrange()

    def _shape(self) -> None:
        self._keep = predicate_of(self.fields, self.view)
        self._order = sort_keys(self.fields, self.view.sort)
        chosen = [self.fields.index(field) for field in chosen_fields(self.fields, self.view)]
        if chosen != self._chosen:
            self._widths = []  # those of other columns, until these are drawn
        self._chosen = chosen
        self._known = [
            _texts_of(self.fields[i], self._times, raw=self.view.raw) for i in self._chosen
        ]
        self._laid_out_for = ()
        self._state = object()

    def _arrange(self) -> None:
        self._cells.clear()
        self.total = len(self._rows)
        self.shown = self._shown_of(self._rows, self._keep)

    def _shown_of(self, rows: Sequence[Any], keep: Callable[[Any], bool] | None) -> list[Any]:
        wanted, order = self.filter, self._order
        if keep is not None:
            rows = [row for row in rows if keep(row)]
        if wanted:
            rows = [row for row in rows if wanted.takes(self.searched(row))]
        return sorted_rows(rows, order) if order else list(rows)

    # Cells

    def _texts(self, row: Any) -> list[str]:
        raw, times = self.view.raw, self._times
        unknown = row.unknown if self._says_unknown and None in row else ()
        blank = getattr(row, "blank", False)
        if not (blank or unknown):
            try:
                return [known[row[i]] for known, i in zip(self._known, self._chosen, strict=True)]
            except TypeError:  # a list
                pass
        texts = []
        for i in self._chosen:
            value, field = row[i], self.fields[i]
            is_unknown = field.name in unknown or (not blank and _is_unknown(field))
            text = for_people(value, field.kind, times, raw=raw)
            texts.append(UNKNOWN if value is None and is_unknown else text)
        return texts

    def searched(self, row: Any) -> list[str]:
        """The texts of a row that the filter looks at."""
        return self._texts(row)

    @property
    def all_rows(self) -> Sequence[Any]:
        """The rows of the look, before ``where`` and the filter."""
        return self._rows

    def keep_last(self, count: int) -> int:
        """Drop all rows but the last so many; returns how many are dropped."""
        dropped = max(0, len(self._rows) - count)
        if dropped:
            self._rows = self._rows[dropped:]
            self._arrange()
        return dropped

    def cells(self, place: int) -> list[str]:
        """The cells of a shown row, as they are before they are cut."""
        found = self._cells.get(place)
        if found is None:
            found = self._cells[place] = self._texts(self.shown[place])
        return found

    def place_of(self, key: tuple[Any, ...] | None) -> int | None:
        """Where the row with a key is shown; None if it is not."""
        if key is None:
            return None
        first = self._key[0]  # most rows differ in it
        for place, row in enumerate(self.shown):
            if row[first] == key[0] and self.key_of(row) == key:
                return place
        return None

    # Lines

    def layout(self, width: int, first: int, count: int) -> None:
        """Choose columns and widths for a width; widths only grow until the shape changes."""
        places = range(first, min(first + count, len(self.shown)))
        before = self._widths
        same = self._laid_out_for == (width, tuple(self._chosen))
        cells = [self.cells(place) for place in places]
        titles = self.titles()
        columns = []
        for n, i in enumerate(self._chosen):
            known = [row[n] for row in cells]
            columns.append(
                self._column(i, titles[n], known, (before[n] or 0) if same else 0, width)
            )
        self._widths = lay_out(columns, width, keep_all=False)
        self._laid_out_for = (width, tuple(self._chosen))

    def _column(self, i: int, title: str, cells: Sequence[str], before: int, room: int) -> Column:
        field = self.fields[i]
        widths = [before, *map(cells_of, cells)]
        usual = None
        if field.kind is Kind.STRING and field.fit is Fit.WHOLE:
            limit = longest_usual_name(room)
            usual = max((width for width in widths if width <= limit), default=0)
        if field.kind in (Kind.DURATION, Kind.NUMBER):
            widths.append(_USUAL_NUMBER)
        return Column(cells_of(title), max(widths), field.rank, field.fit, usual)

    def columns(self) -> list[str]:
        """The names of the columns, those for which there is no room, too."""
        return [self.fields[i].name for i in self._chosen]

    def exact_cell(self, place: int, column: str) -> str:
        """A cell of a shown row: a text as it is, anything else as it is shown."""
        n = self.columns().index(column)
        value = self.shown[place][self._chosen[n]]
        return value if isinstance(value, str) else self.cells(place)[n]

    def column_at(self, cell: int) -> str | None:
        """The name of the column at a cell of a line; None beside the columns."""
        end = 0
        for name, width in zip(self.columns(), self._widths, strict=False):
            if width is not None:
                end += width + GAP
                if 0 <= cell < end:
                    return name
        return None

    def titles(self) -> list[str]:
        """The headings of the columns."""
        fields = [self.fields[i] for i in self._chosen]
        return [
            in_capitals(heading)
            for heading in headings(fields, self._times.label, raw=self.view.raw)
        ]

    def left_out(self) -> list[str]:
        """Names of the columns that the width has no room for."""
        names = self.columns()
        return [names[n] for n, width in enumerate(self._widths) if width is None]

    def header(self) -> Line:
        """The line of headings."""
        return self._line(self.titles(), lambda n, text: Role.HEAD)

    def line(self, place: int) -> Line:
        """The line of a shown row."""
        return self._line(self.cells(place), self._role)

    def _role(self, n: int, text: str) -> Role:
        if text in (UNKNOWN, "-"):
            return Role.DIM
        if self.fields[self._chosen[n]].name in STATES:
            return _ROLES.get(state_color(text), Role.TEXT)
        return Role.TEXT

    def _line(self, cells: Sequence[str], role: Callable[[int, str], Role]) -> Line:
        line: Line = []
        for n, width in enumerate(self._widths):
            if width is None:
                continue
            field = self.fields[self._chosen[n]]
            text = fitted(cells[n], width, field.fit, right=field.numeric)
            line.append(Span(text, role(n, cells[n])))
            line.append(Span(" " * GAP, Role.TEXT))
        return line[:-1]


def shape_options(view: View) -> tuple[str, ...]:
    """The options of a command that shows rows in this way."""
    options: list[str] = []
    if view.where:
        options += ["--where", view.where]
    if view.sort:
        options.append(f"--sort={','.join(view.sort)}")
    if view.columns:
        options += ["--columns", ",".join(view.columns)]
    return tuple(options)


def view_of(view: View, *, wide: bool = False, sort: tuple[str, ...] = ()) -> View:
    """The view of a pane: a table whose order is the option's, else its own."""
    form = Format.WIDE if wide else Format.TABLE
    return view._replace(format=form, sort=view.sort or sort)
