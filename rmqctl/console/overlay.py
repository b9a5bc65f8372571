"""What is shown over the panes: a text that can be scrolled, or a list that takes all keys."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from .drawing import Line, Role, cut_line, text_line, with_role

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
            self.move(_MOVES[action])
        else:
            return False
        return True

    def move(self, by: int) -> None:
        """Show the lines that are so many further down."""
        self._top += by


class ListOver(ABC):
    """A list over the panes. It takes every key until it is closed."""

    _STEPS: Final = {"down": 1, "ctrl+n": 1, "up": -1, "ctrl+p": -1}
    """Keys that move the cursor, whatever else is typed."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.cursor = 0
        self._top = 0
        self._height = 1

    @abstractmethod
    def items(self, width: int) -> Sequence[Line]:
        """The lines of the list."""

    @abstractmethod
    def count(self) -> int:
        """How many lines the list has."""

    @abstractmethod
    def key(self, name: str, character: str | None) -> bool:
        """Do what a key does; whether the list stays open."""

    def head(self, width: int) -> Line:
        """The line above the list."""
        return text_line(f" {self.title}", Role.HEAD)

    def moved(self, name: str) -> bool:
        """Move the cursor, if the key does that; whether it does."""
        page = max(1, self._height // 2)
        steps = {**self._STEPS, "pagedown": page, "pageup": -page}
        if name not in steps:
            return False
        self.move(steps[name])
        return True

    def move(self, by: int) -> None:
        """Move the cursor, within the list."""
        self.cursor = max(0, min(self.cursor + by, self.count() - 1))

    def lines(self, width: int, room: int) -> list[Line]:
        """Exactly ``room`` lines."""
        height = self._height = max(1, room - 1)
        self.move(0)
        self._top = max(0, min(self._top, self.cursor, self.count() - height))
        self._top = max(self._top, self.cursor - height + 1)
        lines = list(self.items(width))
        found = [cut_line(self.head(width), width)]
        for n, line in enumerate(lines[self._top : self._top + height], self._top):
            whole = cut_line([*text_line("> " if n == self.cursor else "  "), *line], width)
            found.append(with_role(whole, Role.CURSOR) if n == self.cursor else whole)
        found += [cut_line([], width)] * (room - len(found))
        return found[:room]
