"""A pane: the rows of one look with a cursor, and how they are drawn."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from rmqctl.console.specs import PaneSpec
from rmqctl.errors import UsageProblem
from rmqctl.output.fields import fields_of
from rmqctl.output.shaping import chosen_fields, decides_kind, predicate_of, sort_keys
from rmqctl.output.view import Format, View
from storage.clock import now_ms
from storage.parse.durations import format_size

from .drawing import Line, Role, Span, cut_line, spread, text_line, width_of, with_role
from .looks.look import Look, Place, Progress
from .notes import age_of, note_lines, problem_lines
from .reading import Batch
from .shapes import RULE
from .tables import UNKNOWN, Arranged, Filter, RowTable, shape_options, view_of

_MANY = 1_000
"""Rows that are arranged by the thread that reads them."""
_AGAIN: Final = " (^r: again)"
STOPPED: Final = f"stopped{_AGAIN}"
"""The state of a walk that was ended before its end."""
_LEAST_AGE_MS = 1_000
"""Rows that are younger are not called old, however often they are read."""
_MARGIN = 2
"""Cells at the left, for the cursor and marks."""


def progress_text(progress: Progress) -> str:
    """How far a look is, in words."""
    done, total, unit, _ = progress
    if unit == "bytes":
        return f"{format_size(done)} of {format_size(total)}"
    return f"{done:,} of {total:,} {unit}"


def fitting(view: View, row_type: type) -> View:
    """The view without the options that name fields which these rows do not have."""
    for name in ("where", "sort", "columns"):
        if unfit(view, row_type, name) is not None:
            view = view._replace(**{name: View._field_defaults[name]})
    return view


def unfit(view: View, row_type: type, *names: str) -> UsageProblem | None:
    """Why options of a view are not for these rows; None if they are."""
    fields = fields_of(row_type)
    alone = View(view.format, zone=view.zone, now_ms=view.now_ms)
    alone = alone._replace(**{name: getattr(view, name) for name in names})
    try:
        predicate_of(fields, alone)
        sort_keys(fields, alone.sort)
        chosen_fields(fields, alone)
    except UsageProblem as error:
        return error
    return None


class Pane:
    """Rows of one look."""

    table_type = RowTable
    shows_notes = True
    """Whether its notices stand above its rows; else the line below the screen's title has them."""
    shows_marks = True
    """Whether a row of it can be marked."""

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        self.spec = spec
        self.place = place
        self.look: Look = spec.look
        self._base = view = fitting(view, self.look.row_type)
        self._chosen = view.columns
        """The columns that were chosen; none: the usual ones."""
        self.wide = False
        usual = view_of(view, sort=self.look.sort)
        self.table = self.table_type(self.look.row_type, self.look.key, usual)
        self.cursor = 0
        self._is_placed = False
        """Whether the cursor was moved: until then it is on the first row, whichever that is."""
        self._sought: tuple[Any, ...] | None = None
        """The key of the row that the cursor was on, until it comes again."""
        self.column: str | None = None
        """The column that was clicked; until the cursor moves."""
        self._above = -1
        """Lines of the pane above its rows, when it was drawn last; -1: it has none."""
        self.top = 0
        self.height = 1
        self.as_of: int | None = None
        self.every_ms = 0
        """The time between two looks; the app sets it."""
        self.took_ms = 0
        self.loading = True
        self.empty = False
        """Whether it shows no place, as the cursor that it follows is on no row."""
        self.number = 0
        """The number of the latest request of its rows."""
        self.numbers: dict[Look, int] = {}
        """That of each of its looks."""
        self.progress: Progress | None = None
        """How far the look has come whose rows are shown."""
        self.rereading: Progress | None = None
        """How far the look is that runs while the rows of the look before are shown."""
        self.stopped = False
        self.partial = True
        """Whether the rows that are shown are not all rows of their look."""
        self.hidden = 0
        """System rows that are left out."""
        self.error: str | None = None
        self._failed_at: int | None = None
        """When the look began that has failed, in epoch ms."""
        self.lost = False
        """Whether the last look failed as the store could not be opened."""
        self.notices: tuple[str, ...] = ()
        self.notes_cut = False
        """Whether its height had no room for its notices."""
        self.everything = False
        """Whether rows of the system are shown, too."""
        self.asked_everything = False
        """Whether its latest request was for rows of the system, too."""
        self._coming: list[Any] | None = None
        """Rows of a look that runs, if those of the look before are shown until it is complete."""
        self._replaces = True
        """Whether the next rows replace those that are shown."""
        self._arranged: tuple[Batch, Arranged] | None = None
        self.is_wide = False
        """Whether it is on a wide screen; the app sets it."""
        self.session: dict[str, Any] = {}
        """What screens of one store keep for each other; the app gives all panes the same."""

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks from which it is drawn."""
        return (self.look, *self.spec.also, *(self.spec.wide if self.is_wide else ()))

    def takes(self, batch: Batch) -> bool:
        """Whether rows are for this pane: of a walk only those of the last request, and of what
        was stopped those of the last one or of a later one by another pane."""
        asked = batch.asked
        if asked.place != self.place or not any(asked.look is look for look in self.looks):
            return False
        if self.look.walk:
            return asked.number == self.number
        return not batch.stopped or 0 < self.numbers.get(asked.look, self.number) <= asked.number

    def wants_everything(self) -> bool:
        """Whether rows of the system are read: a condition that names ``kind`` decides itself."""
        return self.everything or decides_kind(self.table.fields, self.table.view)

    @property
    def lacks_rows(self) -> bool:
        """Whether it shows other rows than those that its condition is about."""
        other = self.look.users_only and self.wants_everything() != self.asked_everything
        return other or not self.number

    def follow(self, pane: "Pane") -> None:
        """Take note of the cursor of the pane that others follow."""

    # Walks

    @property
    def walks(self) -> bool:
        """Whether its look is a walk that runs, or will."""
        return self.look.walk and self.loading and not self.empty

    @property
    def can_be_stopped(self) -> bool:
        """Whether it is read, and ``x`` ends that."""
        reads = self.loading or self.rereading is not None
        return bool(self.number) and reads and not self.empty

    def begin_again(self) -> None:
        """Read a walk, or what is to be stopped, anew with the next look."""
        self.number, self.numbers = 0, {}
        self.loading, self.stopped = True, False

    def leave(self) -> None:
        """Take note that the screen is left, which ends what is read for it."""
        self.rereading = None
        if not self.loading or self.empty:
            return
        if self.look.walk and self.as_of is not None:
            self.loading, self.stopped = False, True
        else:  # without rows, nothing would be there to come back to
            self.begin_again()

    # Rows

    def prepare(self, batch: Batch) -> None:
        """Arrange the rows of a whole look. It is called before :meth:`take`, by the thread that
        has read them: of many rows it takes longer than a key may wait."""
        self._arranged = None
        rows = self._whole(batch)
        if rows is not None and len(rows) >= _MANY:
            with suppress(Exception):  # the table was given another shape meanwhile
                self._arranged = batch, self.table.arranged(rows, batch.as_of)

    def _whole(self, batch: Batch) -> list[Any] | None:
        """The rows of a look with its last batch; None if there is more, or they are shown."""
        if not batch.complete or batch.error is not None:
            return None
        if batch.first:
            return batch.rows
        return None if self._coming is None else [*self._coming, *batch.rows]

    def take(self, batch: Batch) -> None:
        """Show the rows of a look once it is complete; where none are shown, as they come. One
        that fails, or is stopped, leaves the rows of the look before, or those that have come."""
        if batch.goes_on and self.as_of is not None and not self.loading:
            self._take_state(batch)
            return  # all rows of an earlier look are shown
        if batch.first:
            self._coming, self._replaces = None if self._shows_at_once() else [], True
        if self._leaves_rows(batch):
            self._take_beside(batch)
            return
        self._take_state(batch)
        self.loading = batch.goes_on or not batch.complete
        self.progress, self.stopped, self.rereading = batch.progress, batch.stopped, None
        if self._is_without_rows(batch):
            return
        self.partial = self.loading or batch.stopped or batch.error is not None
        key = self.cursor_key() if self._replaces or self._sought is None else self._sought
        self._show_rows(batch)
        self._replaces = False
        self.as_of, self.hidden = batch.as_of, batch.hidden
        self._keep_cursor(key)
        self._sought = key if self.loading and self.cursor_key() != key else None

    def _leaves_rows(self, batch: Batch) -> bool:
        """Whether the rows of the look before are still shown."""
        if self._coming is not None:
            return batch.error is not None or batch.stopped or not batch.complete
        return self.as_of is not None and self._is_without_rows(batch)

    def _take_beside(self, batch: Batch) -> None:
        """Take note of a look whose rows are not shown, or not yet."""
        self.rereading = None if batch.complete else batch.progress
        self.stopped = batch.stopped
        if self._coming is None:
            self._take_state(batch)
            self.loading = not batch.complete
        elif batch.complete:
            self._coming = None
            if batch.error is not None:
                self._take_state(batch)
        else:
            self._coming += batch.rows

    def _is_without_rows(self, batch: Batch) -> bool:
        """Whether a look whose rows are shown as they come has not found its first row, or has
        ended before."""
        if batch.rows or self._coming is not None or not self._replaces:
            return False
        if batch.error is not None:
            return True
        return not self.look.endless and (batch.stopped or not batch.complete)

    def _take_state(self, batch: Batch) -> None:
        self.took_ms, self.notices, self.error = batch.took_ms, batch.notices, batch.error
        self.lost = batch.lost
        self._failed_at = None if batch.error is None else batch.as_of

    def _shows_at_once(self) -> bool:
        """Whether rows are shown as they come."""
        return self.as_of is None or self.loading or self.look.walk

    def _show_rows(self, batch: Batch) -> None:
        self.table.set_now(batch.as_of)
        of, arranged = self._arranged or (None, None)
        if arranged is not None and of is batch:
            self.table.set_rows(arranged.rows, arranged)
        elif (rows := self._whole(batch)) is not None or self._replaces:
            self.table.set_rows(batch.rows if rows is None else rows)
        else:
            self.table.add_rows(batch.rows)
        self._arranged = None

    def show(self, place: Place | None) -> bool:
        """Show another place, for a pane that follows a cursor; whether it must be read.

        None is no place: the pane is empty.
        """
        if place == self.place and not self.empty:
            return False
        self.empty = place is None
        self.place = self.place if place is None else place
        self.table.set_rows([])
        self.cursor = self.top = 0
        self.as_of, self.error, self.loading = None, None, place is not None
        self.notices, self.progress, self.rereading = (), None, None
        self.stopped, self.partial = False, True
        return place is not None

    def cursor_key(self) -> tuple[Any, ...] | None:
        """The key of the row under the cursor."""
        row = self.row()
        return None if row is None else self.table.key_of(row)

    def row(self) -> Any:
        """The row under the cursor; None without rows."""
        shown = self.table.shown
        return shown[self.cursor] if self.cursor < len(shown) else None

    def _keep_cursor(self, key: tuple[Any, ...] | None) -> None:
        place = self.table.place_of(key) if self._is_placed else 0
        if place is not None:
            self.cursor = place
        self.move(0)

    # Moves

    def move(self, by: int) -> None:
        """Move the cursor by so many rows, within the rows that there are."""
        self.column = None if by else self.column
        if by:
            self._is_placed, self._sought = True, None
        self.cursor = max(0, min(self.cursor + by, len(self.table.shown) - 1))

    def step(self, by: int) -> None:
        """Move the cursor in the order of the pane's picture; a list has none of its own."""
        self.move(by)

    def next_order(self) -> None:
        """Sort by the next of the pane's own orders; a list has none but its columns."""
        self.next_sort()

    def move_to_end(self, *, last: bool) -> None:
        """Move the cursor to the first or the last row."""
        self._is_placed, self._sought = last, None
        self.cursor = max(0, len(self.table.shown) - 1) if last else 0

    # Shape

    def sort_by(self, name: str, *, descending: bool) -> None:
        """Sort by a field."""
        self._reshape(self.table.view._replace(sort=(f"-{name}" if descending else name,)))

    def next_sort(self) -> None:
        """Sort the other way; from the largest first, by the next column that is shown."""
        left_out = self.table.left_out()
        names = [name for name in self.table.columns() if name not in left_out]
        now = self.table.view.sort[0] if self.table.view.sort else ""
        place = names.index(name) if (name := now.lstrip("+-")) in names else -1
        if place >= 0 and not now.startswith("-"):
            self.sort_by(name, descending=True)
        elif names:
            self.sort_by(names[(place + 1) % len(names)], descending=False)

    def cell_text(self) -> str | None:
        """What is copied of the row under the cursor: the cell that was clicked, or of the column
        that was chosen to sort by, else what names the row. None without one."""
        row = self.row()
        if row is None:
            return None
        sort = self.table.view.sort
        chosen = sort[0].lstrip("+-") if sort and sort != self.look.sort else None
        column = self.column or chosen
        if column in self.table.columns():
            return self.table.exact_cell(self.cursor, column)
        named = [getattr(row, name) for name in self.look.named or self.look.key[:1]]
        known = [value for value in named if value is not None]
        return str(known[0]) if known else None

    def click(self, line: int, cell: int) -> bool:
        """Move the cursor to the row, and its cell, that a line of the pane shows; whether the
        cursor was on it before."""
        place = self.top + line - self._above
        if self._above < 0 or not self._above <= line < self._above + self.height:
            return False
        if place >= len(self.table.shown):
            return False
        before = self.cursor
        self.move(place - before)
        self.column = self.table.column_at(cell - _MARGIN)
        return place == before

    def reverse(self) -> None:
        """Sort the other way."""
        for name in self.table.view.sort[:1]:
            self.sort_by(name.lstrip("+-"), descending=not name.startswith("-"))

    def set_wide(self, wide: bool) -> None:
        """Show all columns, or the usual ones, which are those that were chosen."""
        self.wide = wide
        columns = () if wide else self._chosen
        self._reshape(view_of(self.table.view._replace(columns=columns), wide=wide))

    def usual_columns(self) -> tuple[str, ...]:
        """The columns of the view that the pane was made with; none: those of its format."""
        return self._base.columns

    def chosen_columns(self) -> tuple[str, ...]:
        """The columns that are shown while the pane is not wide; none: those of its format."""
        return self._chosen

    def set_columns(self, names: Sequence[str]) -> None:
        """Show these columns in this order; none: the usual ones.

        UsageProblem for a name that is not a field.
        """
        chosen = tuple(names) or self.usual_columns()
        self._reshape(view_of(self.table.view._replace(columns=chosen)))
        self._chosen, self.wide = chosen, False

    def set_where(self, where: str | None) -> None:
        """Show the rows of a condition. UsageProblem if it is malformed."""
        self._reshape(self.table.view._replace(where=where))

    def set_filter(self, wanted: Filter) -> None:
        """Show the rows that have a text."""
        key = self.cursor_key()
        self.table.set_filter(wanted)
        self._keep_cursor(key)

    def _reshape(self, view: View) -> None:
        key = self.cursor_key()
        self.table.set_view(view)
        self._keep_cursor(key)

    @property
    def by_cursor(self) -> bool:
        """Whether the cursor of another pane selects its rows."""
        return self.spec.of_row is not None or self.spec.of_row_at is not None

    def known_rows(self) -> Sequence[Any] | None:
        """Its rows, whatever the filter and the other cursor; None if not all are read."""
        return None if self.by_cursor else self.table.all_rows

    def mark(self) -> None:
        """Mark the row under the cursor, or take the mark off."""
        key = self.cursor_key()
        if key is not None:
            self.table.marked ^= {key}

    def mark_all(self) -> None:
        """Mark all rows that are shown; if all are, none."""
        keys = {self.table.key_of(row) for row in self.table.shown}
        self.table.marked = set() if keys <= self.table.marked else self.table.marked | keys

    # Lines

    def command(self) -> str:
        """The command that prints what is shown."""
        everything = ("--all",) if self.everything and self.look.users_only else ()
        return self.look.command(self.place, *everything, *shape_options(self.table.view))

    def count_text(self) -> str:
        """How many rows there are, how many of them are shown, and what is left out."""
        if self.as_of is None:
            return UNKNOWN + (self.walk_text() if self.progress or self.stopped else "")
        shown, total = len(self.table.shown), self.table.total
        text = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
        text += self.walk_text()
        if self.table.marked:
            text += f"   marked: {len(self.table.marked):,}"
        if self.hidden and not self.loading:
            text += f" ({self.hidden:,} of the system not shown)"
        if wanted := self.table.filter:
            text += f"   filter: {'not ' if wanted.excludes else ''}{wanted.text}"
        return text

    def age_text(self) -> str:
        """How old the rows are, where no look has read them anew; else nothing.

        Where a later look has failed, the age of the rows stands above them.
        """
        look = self.look
        if self.as_of is None or self.empty or look.endless:
            return ""
        if self.error is not None and self.as_of != self._failed_at:
            return ""
        if look.walk and self.loading:
            return ""
        least = self.every_ms * (1 if look.walk else 2)  # a look takes some time, too
        if now_ms() - self.as_of < max(least, _LEAST_AGE_MS):
            return ""
        said = self.stopped or self.error is not None
        return age_of(self.as_of) + (_AGAIN if look.walk and not said else "")

    def said_of_rows(self) -> str:
        """The count of the rows and their age, for the line above them."""
        return "   ".join(filter(None, (self.count_text(), self.age_text())))

    def part_text(self) -> str:
        """Of what the rows are a part, if they are not whole."""
        if not self._is_part:
            if self.stopped:
                return "the last look was stopped"
            return "" if self.error is None else "the last look failed"
        text = "so far"
        if self.stopped or self.failed:
            text += ", stopped" if self.stopped else ", failed"
        progress = self._progress()
        return text + (f", {progress_text(progress)} read" if progress else "")

    def export_view(self, form: Format) -> View:
        """The view of what is shown, in another format."""
        view = self.table.view._replace(format=form, where=None, sort=(), limit=None)
        return view._replace(terminal=False, color=False)

    @property
    def failed(self) -> bool:
        """Whether the rows are those of a look that has failed before its end."""
        return self.error is not None and self.partial

    @property
    def ended(self) -> str:
        """How a look has ended before its end, and how it begins again."""
        if self.stopped:
            return STOPPED
        return f"failed{_AGAIN if self.look.walk else ''}"

    def walk_text(self) -> str:
        """How far the look is, if it is not complete."""
        text, progress = "", self._progress()
        if self._is_part and (self.stopped or self.as_of is not None):
            text += " so far"
        if progress is not None:
            text += f"   {progress_text(progress)} read"
        if self.stopped:
            text += f", {self.ended}"
        elif self.rereading or (self.loading and (self.look.walk or progress is not None)):
            text += " (x stops)"
        elif self.failed:
            text += f", {self.ended}"
        return text

    @property
    def _is_part(self) -> bool:
        return self.loading or self.partial

    def _progress(self) -> Progress | None:
        """How far the look is that runs, or has come that ended before its end."""
        return self.rereading or (self.progress if self.partial else None)

    def lines(self, width: int, height: int, *, active: bool, titled: bool) -> list[Line]:
        """The pane's lines, exactly so many."""
        found = self.above(width, titled=titled)
        self.notes_cut = len(found) > height
        room = max(1, height - len(found) - 1)
        self.height = room
        self.top = max(0, min(self.top, self.cursor, max(0, len(self.table.shown) - room)))
        if self.cursor >= self.top + room:
            self.top = self.cursor - room + 1
        self.table.layout(width - _MARGIN, self.top, room)
        found.append([Span("  "), *self.table.header()])
        self._above = len(found)
        for place in range(self.top, min(self.top + room, len(self.table.shown))):
            line = self.table.line(place)
            marked = self.table.key_of(self.table.shown[place]) in self.table.marked
            here = place == self.cursor and active
            margin = Span((">" if here else " ") + ("*" if marked else " "), Role.MARK)
            whole = cut_line([margin, *line], width)
            found.append(with_role(whole, Role.CURSOR) if here else whole)
        if not self.table.shown:
            found.append(text_line(f"  {self._nothing()}", Role.DIM))
        found += [text_line("")] * (height - len(found))
        return [spread(line, [], width) for line in found[:height]]

    def above(self, width: int, *, titled: bool) -> list[Line]:
        """The lines above the headings: title, why the look failed, and notices."""
        found: list[Line] = []
        if titled:
            title = text_line(f"{RULE * 2} {self.spec.title}  {self.said_of_rows()} ", Role.HEAD)
            rule = RULE * max(0, width - width_of(title))
            found.append(cut_line([*title, Span(rule, Role.DIM)], width))
        return [*found, *self.said(width)]

    def said(self, width: int) -> list[Line]:
        """Why the look failed, and notices."""
        as_of = None if self.as_of == self._failed_at else self.as_of
        failed = [] if self.error is None else problem_lines(self.error, as_of, width)
        return [*failed, *note_lines(self.notices, width)]

    def _nothing(self) -> str:
        if self.error is not None and self.as_of is None:
            return ""
        if self.stopped and not self.table.total:
            return STOPPED
        if self.loading and (self.as_of is None or not (self.table.total or self.look.endless)):
            return "reading ..."
        if self.table.total:
            return f"no row of {self.table.total:,} is shown"
        return "there is none"
