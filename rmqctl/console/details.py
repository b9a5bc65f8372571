"""A pane with one row in full: its body, its properties and every other field."""

from collections.abc import Iterator
from typing import Any, Final

from rmqctl.console.specs import PaneSpec
from rmqctl.output.fields import Kind
from rmqctl.output.headings import Times
from rmqctl.output.values import for_people
from rmqctl.output.view import View
from storage.parse.durations import format_size

from .bodies import MOST_BYTES, Form, body_lines, body_of, forms_of, wrapped_line
from .cells import safe
from .drawing import Line, Role, Span, cut_line, text_line, width_of
from .looks.look import Place
from .panes import Pane
from .reading import Batch
from .shapes import RULE

_BODY: Final = ("body", "body_base64", "properties", "life")
_GAP: Final = Span("   ")


class DetailPane(Pane):
    """One row in full. The cursor's keys move its lines."""

    shows_marks = False

    def __init__(self, spec: PaneSpec, place: Place, view: View) -> None:
        super().__init__(spec, place, view)
        self.form: Form | None = None
        """The wanted form of the body; None: the best one."""
        self.wrap = True
        self._count = 0
        """Lines in all."""
        self._made: tuple[Any, list[Line]] | None = None

    def take(self, batch: Batch) -> None:
        """Show a row; its lines stay where they are if it is the same one."""
        super().take(batch)
        self.cursor = 0

    def show(self, place: Place | None) -> bool:
        """Show another row from its first line."""
        changed = super().show(place)
        if changed:
            self.top = 0
        return changed

    def move(self, by: int) -> None:
        """Move the lines."""
        self.top = max(0, min(self.top + by, self._count - self.height))

    def move_to_end(self, *, last: bool) -> None:
        """Show the first or the last lines."""
        self.top = max(0, self._count - self.height) if last else 0

    def next_form(self) -> None:
        """Show the body in the next form that it has."""
        body = self._body()
        if body is not None:
            forms = forms_of(body)
            now = self._form(forms)
            self.form = forms[(forms.index(now) + 1) % len(forms)]

    def _form(self, forms: list[Form]) -> Form:
        return self.form if self.form in forms else forms[0]

    def _body(self) -> bytes | None:
        row = self.row()
        return None if row is None else body_of(row)

    def count_text(self) -> str:
        """The form of the body, and which lines are shown."""
        body = self._body()
        if body is None:
            return ""
        forms = forms_of(body)
        text = f"{self._form(forms)} (v)" if len(forms) > 1 else str(forms[0])
        if len(body) > MOST_BYTES:
            shown, whole = format_size(MOST_BYTES), format_size(len(body))
            text += f"   the first {shown} of {whole}; --save FILE writes all"
        if self._count > self.height:
            last = min(self._count, self.top + self.height)
            text += f"   lines {self.top + 1:,}-{last:,} of {self._count:,}"
        return text

    def lines(self, width: int, height: int, *, active: bool, titled: bool) -> list[Line]:
        """The pane's lines, exactly so many."""
        found: list[Line] = []
        found += self.said(width)
        self.notes_cut = len(found) > height - titled
        row = self.row()
        self.height = max(1, height - len(found) - (1 if titled else 0))
        if row is not None:
            lines = self._lines(row, width - 2)
            self._count = len(lines)
            self.top = max(0, min(self.top, self._count - self.height))
            found += [[Span(" "), *line] for line in lines[self.top : self.top + self.height]]
        elif self.error is None:
            found.append(text_line(f"  {'' if self.empty else self._nothing()}", Role.DIM))
        if titled:
            mark = ">" if active else RULE
            name = self.spec.title if row is None else _title(row)
            title = text_line(f"{mark}{RULE} {name}  {self.said_of_rows()} ", Role.HEAD)
            found.insert(0, [*title, Span(RULE * max(0, width - width_of(title)), Role.DIM)])
        found += [text_line("")] * (height - len(found))
        return [cut_line(line, width) for line in found[:height]]

    def _lines(self, row: Any, width: int) -> list[Line]:
        body = body_of(row)
        form = None if body is None else self._form(forms_of(body))
        asked = (row, form, self.wrap, width, self.table.view)
        if self._made is None or self._made[0] != asked:
            lines = list(self._all_lines(row, body, form, width))
            self._made = (asked, lines)
        return self._made[1]

    def _all_lines(
        self, row: Any, body: bytes | None, form: Form | None, width: int
    ) -> Iterator[Line]:
        whole = (
            [] if body is None or form is None else body_lines(body, form, width, wrap=self.wrap)
        )
        if body == b"":
            whole = [text_line("(the body is empty)", Role.DIM)]
        named = sorted(row.properties.items())
        facts = list(self._facts(row))
        if self.look.row_type.__name__ == "MessageRow":
            yield from whole
            yield from _flow("properties", named, width)
            yield from _flow("message", facts, width)
        else:
            yield from _flow("message", facts, width)
            yield from whole
            yield from _flow("properties", named, width)

    def _facts(self, row: Any) -> Iterator[tuple[str, str]]:
        """Names and values of all fields but the body and the properties."""
        view = self.table.view
        times = Times(view.zone, view.now_ms)
        for field, value in zip(self.table.fields, row, strict=True):
            if field.name in _BODY:
                continue
            members = value.items() if isinstance(value, dict) else [("", value)]
            for name, member in members:
                kind = field.kind
                if name:
                    kind = Kind.TIMESTAMP if name.endswith("_timestamp") else Kind.STRING
                text = for_people(member, kind, times, raw=view.raw)
                yield f"{field.name}.{name}" if name else field.name, text


def _title(row: Any) -> str:
    place = f"{row.queue_id}:{row.queue_offset}"
    return f"{place}  id {row.msg_id}  {row.tags or ''}"


def _flow(name: str, pairs: list[tuple[str, str]], width: int) -> Iterator[Line]:
    """Names and values one after the other, on as many lines as they need."""
    line: Line = [Span(name, Role.HEAD), Span("  ")]
    for label, value in pairs:
        pair: Line = [Span(safe(label), Role.DIM), Span(" "), Span(safe(value)), _GAP]
        if width_of(line) + width_of(pair) - len(_GAP.text) > width and len(line) > 2:
            yield line
            line = [Span("  ")]
        line += pair
        if width_of(line) - len(_GAP.text) > width:
            *whole, line = wrapped_line(line, width)
            yield from whole
    yield line
