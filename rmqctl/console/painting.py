"""What is written to the terminal: the cells that differ from those it shows."""

from collections.abc import Iterator
from typing import Final

from rmqctl.output.cells import cells_of

from .cells import safe
from .drawing import Line, Role
from .shapes import SHAPES, in_ascii
from .themes import Theme

_NEAR: Final = 4
"""Cells between two changes that are written again, as that is shorter than to skip them."""

Cell = tuple[str, Role]
"""A letter with its marks. The second cell of a wide letter is empty."""


class Painter:
    """Knows what the terminal shows, and makes the bytes of the next frame."""

    def __init__(self, theme: Theme, *, ascii_only: bool = False) -> None:
        self._theme = theme
        self._ascii_only = ascii_only
        self._lines: list[Line] = []
        self._size = (0, 0)
        self._style: str | None = None
        """The style that the terminal writes in; None: unknown."""

    def forget(self) -> None:
        """Write all cells with the next frame: something else has written to the terminal."""
        self._size, self._style = (0, 0), None

    def frame(self, lines: list[Line], width: int) -> str:
        """The text that makes the terminal show these lines; empty if it shows them."""
        size = (width, len(lines))
        known, self._size = size == self._size, size
        before, self._lines = self._lines, lines
        found: list[str] = []
        for y, line in enumerate(lines):
            if known and line == before[y]:
                continue
            new = self.cells(line, width)
            old = self.cells(before[y], width) if known else [("", Role.TEXT)] * width
            for first, end in _changes(old, new):
                found.append(f"\x1b[{y + 1};{first + 1}H")
                self._write(new[first:end], first, found)
        return "".join(found)

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
        """What is written for a text, which should be safe already."""
        shown = text if text.isprintable() else safe(text)
        return in_ascii(shown) if self._ascii_only else shown

    def _write(self, cells: list[Cell], x: int, found: list[str]) -> None:
        """Append the cells. After letters whose width is not certain the column is set anew."""
        last, sure = None, True
        for n, (letter, role) in enumerate(cells):
            if not letter:
                continue
            if role is not last:
                last = role
                style = self._theme.sgr(role)
                if style != self._style:
                    found.append(style)
                    self._style = style
            certain = letter.isascii() or letter in SHAPES
            if certain and not sure:
                found.append(f"\x1b[{x + n + 1}G")
            sure = certain
            found.append(letter)


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
