"""Sentences about the rows of a pane: why a look failed, and what is unknown or doubtful."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rmqctl.output.cells import ELLIPSIS, wrapped
from rmqctl.output.values import escape_controls
from storage.clock import now_ms
from storage.parse.durations import format_duration

from .drawing import Line, Role, Span, cut_line, text_line, width_of
from .shapes import RULE

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

_MOST_NOTES: Final = 3
_MOST_LINES: Final = 4
"""Lines of one sentence."""
_MOST_A_CELL: Final = 8
"""Characters of a sentence that are looked at for each cell: some take no cell."""


def age_of(as_of: int) -> str:
    """How old rows are, in whole seconds."""
    return f"{format_duration(max(0, now_ms() - as_of) // 1000 * 1000)} old"


def problem_lines(error: str, as_of: int | None, width: int, most: int = _MOST_LINES) -> list[Line]:
    """Why a look failed, and how old the rows are that the look before has left."""
    age = ""
    if as_of is not None:
        age = f"these rows are {age_of(as_of)}: "
    text = f"! {age}{error}"[: width * most * _MOST_A_CELL]  # it is drawn again and again
    found = wrapped(escape_controls(text), width)
    if len(found) > most:
        found = [*found[: most - 1], f"{found[most - 1]} {ELLIPSIS}"]
    return [cut_line(text_line(line, Role.BAD), width) for line in found]


def note_lines(notices: Sequence[str], width: int) -> list[Line]:
    """Sentences about a look, as many as there is room for."""
    shown = list(notices)
    if len(notices) > _MOST_NOTES:
        more = len(notices) - _MOST_NOTES + 1
        shown = [*notices[: _MOST_NOTES - 1], f"and {more} more (? shows all)"]
    return [cut_line(text_line(f"  note: {note}", Role.WARN), width) for note in shown]


def all_notices(app: "ConsoleApp", *, said: bool = True) -> list[str]:
    """The notices of the panes on the screen; without ``said`` those that no pane shows."""
    seen = [app.panes[n] for n in sorted(app.seen())]
    showing = [pane for pane in seen if pane.shows_notes and not pane.notes_cut]
    panes = [pane for pane in seen if said or pane not in showing]
    shown = set() if said else {note for pane in showing for note in pane.notices}
    found = dict.fromkeys(note for pane in panes for note in pane.notices)
    return [note for note in found if note not in shown]


def rule(app: "ConsoleApp", width: int) -> Line:
    """The line below the title, with the notices that no pane shows."""
    notices = all_notices(app, said=False)
    if not notices:
        left_out = ", ".join(app.without_room())
        text = text_line(f" no room for {left_out} ", Role.DIM) if left_out else []
        line = [Span(RULE * 2, Role.DIM), *text]
        return cut_line([*line, Span(RULE * max(0, width - width_of(line)), Role.DIM)], width)
    many = f"{len(notices):,} notes (? shows all)" if len(notices) > 1 else "note (? shows it)"
    line = [Span(RULE * 2, Role.DIM), *text_line(f" {many}: {notices[0]} ", Role.WARN)]
    return cut_line([*line, Span(RULE * max(0, width - width_of(line)), Role.DIM)], width)
