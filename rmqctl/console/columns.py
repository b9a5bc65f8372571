"""``c``: which columns a list has, and in which order."""

from collections.abc import Callable, Sequence

from .drawing import Line, Role, Span, text_line
from .overlay import ListOver
from .panes import Pane


class ColumnList(ListOver):
    """The fields of a pane's rows: first those that are shown, in their order.

    What is chosen is shown at once, below the list; Escape takes it back.
    """

    def __init__(self, pane: Pane, tell: Callable[[str], object]) -> None:
        """``tell`` takes a sentence about a key that does nothing."""
        super().__init__("Columns")
        self._pane = pane
        self._tell = tell
        self._before = (pane.chosen_columns(), pane.wide)
        self._take(pane.table.columns())

    def _take(self, shown: Sequence[str]) -> None:
        names = [field.name for field in self._pane.table.fields]
        self._shown = list(shown)
        self._names = [*shown, *(name for name in names if name not in shown)]

    def count(self) -> int:
        """See ListOver."""
        return len(self._names)

    def head(self, width: int) -> Line:
        """What the keys do."""
        line = text_line(f" {self.title}  ", Role.HEAD)
        for key, does in (
            *(("space", "show or hide"), ("J K", "move down, up"), ("u", "the usual ones")),
            *(("enter", "done"), ("esc", "as before")),
        ):
            line += [Span(key, Role.KEY), Span(f" {does}  ")]
        return line

    def items(self, width: int) -> list[Line]:
        """See ListOver."""
        meanings = {field.name: field.help for field in self._pane.table.fields}
        left_out = self._pane.table.left_out()
        lines = []
        for name in self._names:
            mark = "[x]" if name in self._shown else "[ ]"
            room = "(no room here) " if name in left_out else ""
            lines.append(
                [
                    Span(f"{mark} {name:<23} "),
                    Span(room, Role.WARN),
                    *text_line(meanings[name], Role.DIM),
                ]
            )
        return lines

    def key(self, name: str, character: str | None) -> bool:
        """See ListOver."""
        if name in ("escape", "ctrl+c"):
            self._restore()
            return False
        if name in ("enter", "c", "q"):
            return False
        here = self._names[self.cursor]
        match name:
            case "space":
                self._toggle(here)
            case "J" | "shift+down":
                self._shift(here, 1)
            case "K" | "shift+up":
                self._shift(here, -1)
            case "u":
                self._pane.set_columns(())
                self._take(self._pane.table.columns())
            case "j" | "k":
                self.move(1 if name == "j" else -1)
            case "g" | "home" | "G" | "end":
                self.move(self.count() if name in ("G", "end") else -self.count())
            case _:
                self.moved(name)
        return True

    def _restore(self) -> None:
        columns, wide = self._before
        self._pane.set_columns(columns)
        if wide:
            self._pane.set_wide(True)

    def _toggle(self, name: str) -> None:
        if name not in self._shown:
            self._shown.append(name)
        elif len(self._shown) == 1:
            self._tell("one column must be left")
            return
        else:
            self._shown.remove(name)
        self._show()

    def _shift(self, name: str, by: int) -> None:
        """Move a column that is shown; the cursor goes with it."""
        if name not in self._shown:
            self._tell(f"{name} is not shown; space shows it")
            return
        at = self._shown.index(name)
        to = max(0, min(at + by, len(self._shown) - 1))
        self._shown.insert(to, self._shown.pop(at))
        self._show()
        self.cursor = to

    def _show(self) -> None:
        self._pane.set_columns(self._shown)
        self._take(self._shown)
