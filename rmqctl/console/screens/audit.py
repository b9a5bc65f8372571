"""The audit: all changes, and all about one of them."""

from typing import Any, Final

from rmqctl.console.drawing import Line, Role, Span, text_line
from rmqctl.console.looks import audit
from rmqctl.console.looks.look import Place
from rmqctl.console.parts import DrawnPane
from rmqctl.console.specs import PaneSpec, ScreenSpec
from rmqctl.output.cells import ELLIPSIS
from rmqctl.output.fields import fields_of
from rmqctl.output.headings import Times
from rmqctl.output.values import for_people
from storage.clock import now_ms

_NAME: Final = 12


class ChangePane(DrawnPane):
    """All that the journal has about one change, a field a line."""

    def body(self, width: int, height: int) -> list[Line]:
        """The lines."""
        rows = self.rows_of(self.look)
        if not rows:
            return []
        row, lines = rows[0], []
        times = Times(self.table.view.zone, now_ms())
        for field, value in zip(fields_of(self.look.row_type), row, strict=True):
            if value is None and field.omit_null:
                continue
            if field.name == "moves":
                lines += self._moves(value)
                continue
            text = for_people(value, field.kind, times, raw=self.table.view.raw)
            lines.append(_line(field.name, text))
        if len(lines) > height:
            left = len(lines) - height + 1
            lines = [*lines[: height - 1], text_line(f" {ELLIPSIS} {left:,} lines more", Role.DIM)]
        return lines

    @staticmethod
    def _moves(moves: Any) -> list[Line]:
        lines = []
        for n, move in enumerate(moves):
            old, new = (
                "none" if offset is None else f"{offset:,}"
                for offset in (move.old_offset, move.new_offset)
            )
            text = f"{move.group}  {move.topic}:{move.queue_id}  {old} to {new}"
            lines.append(_line("" if n else f"moves {len(moves):,}", text))
        return lines


def _line(name: str, text: str) -> Line:
    return [Span(f" {name:<{_NAME}} ", Role.HEAD), *text_line(text)]


def _change_of(row: Any) -> Place | None:
    return None if row.change_id is None else Place("change", (str(row.change_id),))


SCREENS: Final = {
    "audit": ScreenSpec(
        lambda place: "Audit",
        [
            PaneSpec(audit.CHANGES, "CHANGES"),
            PaneSpec(audit.CHANGE, "CHANGE", of_row=_change_of, still=True, pane=ChangePane),
        ],
    ),
    "change": ScreenSpec(
        lambda place: f"Audit > {place.name}",
        [PaneSpec(audit.CHANGE, still=True, pane=ChangePane)],
    ),
}
