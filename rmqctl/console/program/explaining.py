"""``!`` and ``:explain``: the meaning of a word, over the panes."""

import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rmqctl.console.drawing import Line, Role, text_line
from rmqctl.console.faults import sentence_of
from rmqctl.console.overlay import Overlay

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane
    from rmqctl.console.program.app import ConsoleApp
    from rmqctl.help.terms import Term

_STATES: Final = (
    *("code", "what", "why", "status", "state", "verdict", "severity", "problem"),
    *("event", "send_status", "health", "risk"),
)
"""Fields with a word that may have a meaning, the most telling first."""
_WIDEST: Final = 100
_ONE_AT_A_TIME: Final = threading.Lock()


def do_explain(app: "ConsoleApp") -> None:
    """Explain the state of the row under the cursor, else the field that the rows are sorted by."""
    explain(app, words_of(app.pane), "no word of this row has an explanation; ':explain TERM'")


def explain(app: "ConsoleApp", words: Sequence[str], nothing: str = "") -> None:
    """Show the meaning of the first of these words that has one.

    All terms are read from the sources, which takes too long for the thread that draws.
    """
    place = app.place
    app.notice = "looking it up ..."

    def show(overlay: Overlay | None, notice: str) -> None:
        if app.place == place:
            app.notice = notice
            if overlay is not None:
                app.overlay = overlay
            app.draw()

    def work() -> None:
        from rmqctl.help.terms import find, nearest

        overlay, sentence = None, ""
        try:
            with _ONE_AT_A_TIME:
                found = next(((word, terms) for word in words if (terms := find(word))), None)
                near = nearest(words[0]) if found is None and not nothing else []
            if found is not None:
                overlay = _overlay(*found)
            else:
                hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
                sentence = nothing or f"unknown term {words[0]!r}{hint}"
        except Exception as error:  # noqa: BLE001 - the screen shows what happened
            sentence = sentence_of(error)
        with contextlib.suppress(RuntimeError):  # the app has ended
            app.call_later(show, overlay, sentence)

    threading.Thread(target=work, name="console-explain", daemon=True).start()


def words_of(pane: "Pane") -> list[str]:
    """The words that stand at the cursor, the most telling first."""
    row = pane.row()
    names = [field.name for field in pane.table.fields]
    found = []
    if row is not None:
        values = [row[names.index(name)] for name in _STATES if name in names]
        found = [str(value) for value in values if isinstance(value, str) and value]
    return found + [name.lstrip("+-") for name in pane.table.view.sort[:1]]


def _overlay(word: str, terms: "Sequence[Term]") -> Overlay:
    def make(width: int) -> list[Line]:
        from rmqctl.help.paragraphs import paragraphs

        lines: list[Line] = []
        for term in terms:
            head, *text = paragraphs(term, min(_WIDEST, width - 2)).splitlines()
            lines += [text_line(""), text_line(f" {head}", Role.TITLE)]
            lines += [text_line(line) for line in text]
        return lines

    return Overlay(f"rmqctl explain {word}", make)
