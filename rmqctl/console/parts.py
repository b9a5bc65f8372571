"""Panes that are drawn from several looks, or not as a list."""

from collections.abc import Callable, Mapping, Sequence
from operator import is_not
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from rmqctl.console.specs import PaneSpec
from rmqctl.output.layout import GAP
from rmqctl.output.view import View

from .boxes import WIDE
from .drawing import Line, Role, Span, cut_line, text_line, width_of
from .looks.look import Look, Place
from .notes import problem_lines
from .panes import STOPPED, Pane
from .reading import Batch
from .shapes import RULE
from .tables import UNKNOWN

T = TypeVar("T")


class Part:
    """The rows of one look: those of the last one that was complete."""

    def __init__(self, *, shows_some: bool = True) -> None:
        self.rows: list[Any] | None = None
        """None before the first look was complete."""
        self.goes_on = False
        """Whether these are a part of the rows, of which the next look has more."""
        self._shows_some = shows_some
        self.as_of: int | None = None
        self.error: str | None = None
        self.took_ms = 0
        self.hidden = 0
        self.lost = False
        self.stopped = False
        """Whether the last look was ended before its last row."""
        self.notices: tuple[str, ...] = ()
        self._coming: list[Any] = []

    def take(self, batch: Batch) -> None:
        """Take rows; a failed look leaves the rows of the look before."""
        self.error, self.took_ms = batch.error, batch.took_ms
        self.lost, self.notices, self.stopped = batch.lost, batch.notices, batch.stopped
        if batch.error is not None or batch.stopped:
            return
        if batch.goes_on and not (self._shows_some and (self.rows is None or self.goes_on)):
            return
        if batch.first:
            self._coming = batch.rows
        else:
            self._coming += batch.rows
        if batch.complete:
            self.rows, self.as_of, self.hidden = self._coming, batch.as_of, batch.hidden
            self.goes_on = batch.goes_on
            self._coming = []


class PartsPane(Pane):
    """A pane whose looks are kept apart. A subclass draws them, or makes rows of them."""

    SHOWS_SOME: ClassVar[bool] = True
    """Whether rows are taken before all are there. What is made of some of them, as a sum or a
    sentence, would be wrong."""

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self._parts: dict[Look, Part] = {}
        self._made: dict[str, tuple[int, tuple[object, ...], Any]] = {}
        self._prepared: dict[str, list[tuple[object, Any]]] = {}
        """What was made of the rows that were read last, and of those before them."""

    @property
    def parts(self) -> list[Part]:
        """What was read, for each of its looks."""
        return [self._part(look) for look in self.looks]

    def _part(self, look: Look) -> Part:
        found = self._parts.get(look)
        if found is None:
            found = self._parts[look] = Part(shows_some=self.SHOWS_SOME)
        return found

    def take(self, batch: Batch) -> None:
        """Take rows of one of the looks."""
        self._part(batch.asked.look).take(batch)
        parts = self.parts
        self.took_ms = sum(part.took_ms for part in parts)
        self.lost = any(part.lost for part in parts)
        self.notices = tuple(dict.fromkeys(note for part in parts for note in part.notices))
        self.error = next((part.error for part in parts if part.error is not None), None)
        unread = any(part.rows is None and part.error is None for part in parts)
        goes_on = any(part.goes_on for part in parts)
        self.stopped = any(part.stopped and (part.goes_on or part.rows is None) for part in parts)
        self.partial = goes_on or unread
        self.loading = self.partial and not self.stopped
        known = [part.as_of for part in parts if part.as_of is not None]
        self.as_of = min(known, default=None)
        self.hidden = 0
        key = self.cursor_key()
        self.table.set_now(self.as_of or batch.as_of)
        self.changed()
        self._keep_cursor(key)

    def begin_again(self) -> None:
        """See Pane."""
        super().begin_again()
        for part in self.parts:
            part.stopped = False

    def show(self, place: Place | None) -> bool:
        """Show another place; what was read of the one before is dropped."""
        reads = super().show(place)
        if reads or place is None:
            self._parts = {}
            self.changed()
        return reads

    def rows_of(self, look: Look) -> list[Any] | None:
        """The rows of a look; None before they are read."""
        return self._part(look).rows

    def changed(self) -> None:
        """Called when rows have come."""

    makes: Mapping[str, tuple[Look, Callable[[Sequence[Any]], Any]]] = MappingProxyType({})
    """What is made of all rows of a look, by its name: it may take longer than a key may wait, so
    the thread that has read them makes it."""

    def prepare(self, batch: Batch) -> None:
        """Make what is made of the rows of one look."""
        if not (batch.first and batch.complete and batch.error is None):
            return
        for name, (look, make) in self.makes.items():
            if look is batch.asked.look:
                new = batch.rows, make(batch.rows)
                self._prepared[name] = [new, *self._prepared.get(name, ())[:1]]

    def made(self, name: str) -> Any:
        """What is made of the rows of a look, which ``makes`` names; of none before they are
        there."""
        look, make = self.makes[name]
        rows = self.rows_of(look)
        for of, found in self._prepared.get(name, ()):
            if of is rows:
                return found
        return self.made_of(name, lambda: make(rows or ()), rows)

    def made_of(self, name: str, make: Callable[[], T], *things: object, at: int = 0) -> T:
        """What a function makes of some things, kept while these are the same objects: a screen is
        drawn with each key, and there may be tens of thousands of rows."""
        kept = self._made.get(name)
        if kept is None or kept[0] != at or any(map(is_not, kept[1], things)):
            kept = self._made[name] = at, things, make()
        found: T = kept[2]
        return found

    def problems(self, width: int, most: int) -> list[Line]:
        """Why looks failed, each reason once, with the age of the oldest rows that are left."""
        failed: dict[str, int | None] = {}
        for part in self.parts:
            if part.error is not None:
                ages = (part.as_of, failed.get(part.error))
                failed[part.error] = min((age for age in ages if age is not None), default=None)
        return [
            line
            for error, as_of in failed.items()
            for line in problem_lines(error, as_of, width, most)
        ]


class DrawnPane(PartsPane):
    """A pane that is drawn: no rows, no cursor."""

    SHOWS_SOME = False
    shows_notes = False

    def count_text(self) -> str:
        """Whether all is read."""
        unread = sum(part.rows is None for part in self.parts)
        if not unread or self.empty:
            return ""
        return f"{len(self.parts) - unread} of {len(self.parts)} parts read"

    def body(self, width: int, height: int) -> list[Line]:
        """The lines; too many are cut, so a subclass says what it leaves out."""
        raise NotImplementedError

    def unread(self, *looks: Look) -> Line:
        """What is said in the place of rows of these looks, one of which has none yet."""
        if any(self._part(look).error is not None for look in looks):
            return text_line(f"  {UNKNOWN}", Role.DIM)
        return text_line(f"  {STOPPED if self.stopped else 'reading ...'}", Role.DIM)

    def title(self, width: int) -> Line:
        """The line above; without a title there is none."""
        more = self.said_of_rows()
        return text_line(f"{RULE * 2} {self.spec.title}{'  ' + more if more else ''} ", Role.HEAD)

    def lines(self, width: int, height: int, *, active: bool, titled: bool) -> list[Line]:
        """The pane's lines, exactly so many."""
        found: list[Line] = []
        if self.spec.title:
            title = self.title(width)
            found.append([*title, Span(RULE * max(0, width - width_of(title)), Role.DIM)])
        found += self.problems(width, max(1, height // 4))
        self.height = max(1, height - len(found))
        if self.empty:
            found.append(text_line("  no row is under the cursor", Role.DIM))
        elif all(part.rows is None for part in self.parts):
            if not self.error:
                found.append(self.unread())
        else:
            found += self.body(width, self.height)
        found += [text_line("")] * (height - len(found))
        return [cut_line(line, width) for line in found[:height]]


class TailedPane(PartsPane):
    """The rows of its first look, each with something drawn at its end on a wide screen."""

    TAIL: tuple[str, int] = ("", 0)
    """The heading of what is drawn, and its cells."""

    def rows(self) -> list[Any] | None:
        """The rows of the list; None before they are read."""
        return self.rows_of(self.look)

    def changed(self) -> None:
        """Show the rows of the last look that was complete."""
        self.table.set_rows(self.rows() or [])

    def tail(self, row: Any) -> str:
        """What is drawn after a row."""
        raise NotImplementedError

    def lines(self, width: int, height: int, *, active: bool, titled: bool) -> list[Line]:
        """The pane's lines, exactly so many."""
        heading, cells = self.TAIL
        if width < WIDE or not cells:
            return super().lines(width, height, active=active, titled=titled)
        found = super().lines(width - cells - GAP, height, active=active, titled=titled)
        first = len(self.above(width - cells - GAP, titled=titled))
        shown = self.table.shown
        for n, line in enumerate(found):
            place = self.top + n - first - 1
            text, role = "", Role.TEXT
            if n < first:
                text, role = RULE * (cells + GAP) if titled and not n else "", Role.DIM
            elif n == first:
                text, role = " " * GAP + heading, Role.HEAD
            elif self.top <= place < len(shown) and n - first <= self.height:
                text = " " * GAP + self.tail(shown[place])
                role = Role.CURSOR if place == self.cursor and active else Role.TEXT
            line += cut_line([Span(text, role)], cells + GAP, role)
        return found
