"""A text over the panes, such as the meaning of a word; it can be scrolled."""

from collections.abc import Callable, Sequence
from typing import Final

from .drawing import Line, Role, cut_line, text_line

_PAGE: Final = 8
_MOVES: Final = {"down": 1, "up": -1, "page_down": _PAGE, "page_up": -_PAGE}
_FAR: Final = 1 << 30


class Overlay:
    """Lines that are made for a width, and the first of them that is shown."""

    def __init__(self, title: str, make: Callable[[int], Sequence[Line]]) -> None:
        self.title = title
        self._make = make
        self._made: tuple[int, Sequence[Line]] = (0, ())
        self._top = 0

    def lines(self, width: int, room: int) -> list[Line]:
        """Exactly ``room`` lines; the first says which ones are shown, if not all are."""
        if self._made[0] != width:
            self._made = (width, self._make(width))
        lines = self._made[1]
        height = max(1, room - 1)
        self._top = max(0, min(self._top, len(lines) - height))
        shown = lines[self._top : self._top + height]
        part = ""
        if len(shown) < len(lines):
            last = self._top + len(shown)
            part = f"   lines {self._top + 1}-{last} of {len(lines)} (j, k)"
        found = [text_line(f" {self.title} (esc closes){part}", Role.HEAD), *shown]
        found += [text_line("")] * (room - len(found))
        return [cut_line(line, width) for line in found[:room]]

    def scroll(self, action: str) -> bool:
        """Do what a key does that moves; whether it is one."""
        if action in ("first", "last"):
            self._top = _FAR if action == "last" else 0
        elif action in _MOVES:
            self._top += _MOVES[action]
        else:
            return False
        return True
