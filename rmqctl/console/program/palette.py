"""``^p``: every action with its key, and why it does nothing now; what ``:`` takes, too."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.console.drawing import Line, Role, Span, text_line
from rmqctl.console.keys import KEYS, WORDS, Key, Word
from rmqctl.console.overlay import ListOver
from rmqctl.console.plans.desk import CHANGING
from rmqctl.console.program.shaping import no_columns
from rmqctl.console.prompt import Asks, Prompt
from rmqctl.console.screens.table import TABLE
from rmqctl.errors import CliError

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

_LABEL: Final = 8
_HELP: Final = 44


class Entry(NamedTuple):
    """A line of the palette."""

    action: Key | Word
    off: str
    """Why it does nothing now; empty: it works."""

    @property
    def label(self) -> str:
        """Its key, or what is typed."""
        return f":{self.action.word}" if isinstance(self.action, Word) else self.action.label

    @property
    def text(self) -> str:
        """What it does."""
        return self.action.help


def why_off(app: "ConsoleApp", key: Key) -> str:
    """Why a key does nothing on the screen that is shown; empty if it does something."""
    if key.screens and app.place.screen not in key.screens:
        return "on " + ", ".join(screen for screen in key.screens if screen in TABLE)
    if key.action in CHANGING:
        return app.desk.why_off(key.action, app.place, app.pane, app.panes)
    test = _TESTS.get(key.action)
    return "" if test is None else test(app)


def _no_row(app: "ConsoleApp") -> str:
    return "" if app.pane.row() is not None else "the cursor is on no row"


def _no_mark(app: "ConsoleApp") -> str:
    from rmqctl.console.program.actions import no_marks

    return no_marks(app) or _no_row(app)


def _opens_nothing(app: "ConsoleApp") -> str:
    look = app.pane.look
    if look.opens is None and look.opens_at is None and app.place.screen != "contexts":
        return "a row of this pane leads nowhere"
    return _no_row(app)


def _nothing_is_read(app: "ConsoleApp") -> str:
    reads = any(pane.can_be_stopped for pane in app.panes)
    return "" if reads else "nothing is read now that can be stopped"


def _no_export(app: "ConsoleApp") -> str:
    from rmqctl.console.program.exporting import rows_of
    from rmqctl.output.view import Format

    try:
        rows_of(app.pane, Format.JSON)
    except CliError as error:
        return str(error)
    return ""


_TESTS: Final[Mapping[str, Callable[["ConsoleApp"], str]]] = {
    "open": _opens_nothing,
    "mark": _no_mark,
    "mark_all": _no_mark,
    "copy_cell": _no_row,
    "columns": no_columns,
    "export": _no_export,
    "stop": _nothing_is_read,
    "last_place": lambda app: "" if app.at > 0 else "no screen was shown before",
    "history_back": lambda app: "" if app.at > 0 else "no screen was shown before",
    "history_forward": lambda app: (
        "" if app.at + 1 < len(app.places) else "this is the newest screen of the history"
    ),
}
"""Why an action that is no change does nothing, where that depends on what is shown."""


class Palette(ListOver):
    """All actions; what is typed leaves those with its words, and Enter does the one chosen."""

    def __init__(self, app: "ConsoleApp") -> None:
        super().__init__("Actions")
        self._app = app
        self._typed = Prompt("action: ")
        entries = [Entry(key, why_off(app, key)) for key in KEYS if key.action != "palette"]
        entries += [Entry(word, "") for word in WORDS]
        self._all = sorted(entries, key=lambda entry: bool(entry.off))
        self._found = self._all

    def count(self) -> int:
        """See ListOver."""
        return len(self._found)

    def head(self, width: int) -> Line:
        """What is typed."""
        many = f"{len(self._found)} of {len(self._all)}"
        text = f"   {many} (enter does it, esc closes)"
        return [*self._typed.line(width - len(text)), *text_line(text, Role.DIM)]

    def items(self, width: int) -> list[Line]:
        """See ListOver."""
        lines = []
        for entry in self._found:
            off = bool(entry.off)
            line: Line = [
                Span(f"{entry.label:<{_LABEL}} ", Role.DIM if off else Role.KEY),
                *text_line(f"{entry.text:<{_HELP}}", Role.DIM if off else Role.TEXT),
            ]
            if off:
                line += text_line(f"  off: {entry.off}", Role.WARN)
            lines.append(line)
        return lines

    def key(self, name: str, character: str | None) -> bool:
        """See ListOver."""
        if name in ("escape", "ctrl+c"):
            return False
        if name == "enter":
            if not self._found:
                return True
            self._do(self._found[self.cursor])
            return False
        if not self.moved(name) and self._typed.key(name, character):
            words = self._typed.text.casefold().split()
            self._found = [one for one in self._all if _has(one, words)]
            self.cursor = 0
        return True

    def _do(self, entry: Entry) -> None:
        action = entry.action
        if isinstance(action, Word):
            self._app.ask_for(
                Asks.WHERE_TO, ":", f"{action.word} " if action.takes else action.word
            )
        elif entry.off and (action.action not in CHANGING or self._elsewhere(action)):
            self._app.notice = f"{action.label} is off: {entry.off}"
        else:
            self._app.do_key(action)

    def _elsewhere(self, key: Key) -> bool:
        return bool(key.screens) and self._app.place.screen not in key.screens


def _has(entry: Entry, words: list[str]) -> bool:
    text = f"{entry.label} {entry.text}".casefold()
    return all(word in text for word in words)


def do_palette(app: "ConsoleApp") -> None:
    """Show all actions."""
    app.overlay = Palette(app)
