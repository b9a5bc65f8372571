"""What is written to the terminal: the cells that differ from those it shows."""

from collections.abc import Iterator, Sequence
from typing import Final

from rmqctl.output.cells import cells_of

from .cells import safe
from .drawing import Line, Role
from .shapes import SHAPES, in_ascii
from .themes import Theme

_NEAR: Final = 3
"""Cells between two changes that are written again, as that is not longer than to skip them."""

Cell = tuple[str, Role]
"""A letter with its marks. The second cell of a wide letter is empty."""


class Painter:
    """Knows what the terminal shows, and makes the bytes of the next frame."""

    def __init__(self, theme: Theme, *, ascii_only: bool = False) -> None:
        self._theme = theme
        self._ascii_only = ascii_only
        self._lines: list[Line] = []
        self._size = (0, 0)
        self._role: Role | None = None
        """The role in which the terminal writes; None: unknown."""

    def forget(self) -> None:
        """Write all cells with the next frame: something else has written to the terminal."""
        self._size, self._role = (0, 0), None

    def frame(self, lines: list[Line], width: int) -> str:
        """The text that makes the terminal show these lines; empty if it shows them.

        What looks the same is written together, as a change of style is longer than a move. Lines
        with letters whose width is not certain are written from left to right.
        """
        size = (width, len(lines))
        known, self._size = size == self._size, size
        before, self._lines = self._lines, lines
        pen = _Pen(self._theme, self._role, width)
        runs: dict[Role, list[tuple[int, int, str]]] = {}
        for y, line in enumerate(lines):
            if known and line == before[y]:
                continue
            new = self.cells(line, width)
            old = self.cells(before[y], width) if known else [("", Role.TEXT)] * width
            if all(_is_certain(letter) for letter, _ in new):
                for first, end in _runs(old, new):
                    text = "".join([letter for letter, _ in new[first:end]])
                    runs.setdefault(new[first][1], []).append((y, first, text))
                continue
            for first, end in _changes(old, new):
                for x in range(first, end):
                    pen.write(y, x, *new[x])
        for role in sorted(runs, key=lambda role: not pen.has(role)):
            for y, x, text in runs[role]:
                pen.write(y, x, text, role)
        self._role = pen.role
        return "".join(pen.found)

    def cells(self, line: Line, width: int) -> list[Cell]:
        """The cells of a line."""
        found: list[Cell] = []
        for text, role in line:
            shown = self.shown(text)
            if shown.isascii():
                found += [(letter, role) for letter in shown]
                continue
            for letter in shown:
                cells = cells_of(letter)
                if cells:
                    found += [(letter, role), ("", role)][:cells]
                elif found:
                    place = len(found) - (1 if found[-1][0] else 2)
                    found[place] = (found[place][0] + letter, found[place][1])
        found = found[:width]
        return found + [(" ", Role.TEXT)] * (width - len(found))

    def shown(self, text: str) -> str:
        """What is written for a text: all that reaches the terminal is made safe here."""
        shown = safe(text)
        return in_ascii(shown) if self._ascii_only else shown


class _Pen:
    """Makes the text of a frame: letters, and the shortest moves and changes of style between."""

    def __init__(self, theme: Theme, role: Role | None, width: int) -> None:
        self.found: list[str] = []
        self.role = role
        """The role in which the terminal writes; None: unknown."""
        self._theme = theme
        self._width = width
        self._y = self._x = -1
        """The place of the cursor; -1: unknown."""
        self._is_sure = False
        """Whether every terminal has the cursor in that column."""

    def has(self, role: Role) -> bool:
        """Whether a role needs no change of style now."""
        return self.role is not None and not self._theme.change(self.role, role)

    def write(self, y: int, x: int, text: str, role: Role) -> None:
        """Write letters at a place. Those whose width is not certain come one at a time; after them
        the column is set anew."""
        if not text:
            return  # the second cell of a letter
        is_certain = _is_certain(text[-1])
        if (y, x) != (self._y, self._x) or (is_certain and not self._is_sure):
            self.found.append(_move(self._y, self._x if self._is_sure else -1, y, x))
        if role is not self.role:
            self.found.append(self._theme.change(self.role, role))
            self.role = role
        self.found.append(text)
        end = x + (len(text) if is_certain else cells_of(text))
        at_edge = end >= self._width  # terminals differ in where the cursor is then
        self._y, self._x, self._is_sure = y, end, is_certain and not at_edge


def _move(before_y: int, before_x: int, y: int, x: int) -> str:
    """The shortest sequence that moves the cursor."""
    ways = [f"\x1b[{y + 1};{x + 1}H"]
    if before_y == y:
        ways.append(f"\x1b[{x + 1}G")
    if before_y >= 0 and before_x >= 0:
        ways.append(_steps(y - before_y, "B", "A") + _steps(x - before_x, "C", "D"))
    return min(ways, key=len)


def _steps(count: int, forth: str, back: str) -> str:
    if not count:
        return ""
    number = "" if abs(count) == 1 else abs(count)
    return f"\x1b[{number}{forth if count > 0 else back}"


def _is_certain(letter: str) -> bool:
    """Whether every terminal shows a letter in one cell."""
    return letter in SHAPES or (letter != "" and letter.isascii())


def _runs(old: Sequence[Cell], new: Sequence[Cell]) -> Iterator[tuple[int, int]]:
    """The ranges of cells to write, each of one role: where they begin and end."""
    first = end = -1
    for x, (before, now) in enumerate(zip(old, new, strict=True)):
        if before == now:
            continue
        near = first >= 0 and x - end <= _NEAR
        if not near or any(role is not now[1] for _, role in new[end - 1 : x]):
            if first >= 0:
                yield first, end
            first = x
        end = x + 1
    if first >= 0:
        yield first, end


def _changes(old: list[Cell], new: list[Cell]) -> Iterator[tuple[int, int]]:
    """The ranges of cells to write: where they begin and end. None begins inside a letter."""
    first = end = -1
    for x, (before, now) in enumerate(zip(old, new, strict=True)):
        if before == now:
            continue
        if first < 0 or x - end > _NEAR:
            if first >= 0:
                yield first, end
            first = x
            while first and not new[first][0]:
                first -= 1
        end = x + 1
        while end < len(new) and not new[end][0]:
            end += 1
    if first >= 0:
        yield first, end
