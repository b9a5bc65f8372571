"""A picture of a screen: an SVG of its cells that needs nothing from elsewhere. Pure.

Each piece of a line stands at the column that it has on the terminal, whatever font the reader of
the picture has. There are no links, scripts, styles or fonts from other files in it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from .drawing import Line, Role
from .painting import Cell, Painter
from .shapes import SHAPES
from .themes import Look, Theme, rgb

_WIDTH: Final = 9
_HEIGHT: Final = 20
"""Of a cell. The advance of monospaced fonts is three fifths of their size."""
_SIZE: Final = 15
_BASE: Final = 15
"""From the top of a cell to the line on which letters stand."""
_PAPER: Final = ((0, 0, 0), (255, 255, 255))
"""Ink and paper of a screen without colors."""
_STYLE: Final = (
    f"text{{font:{_SIZE}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "white-space:pre}"
)


class _Colors(NamedTuple):
    """How a role is drawn."""

    fore: str
    back: str
    more: str
    """Further declarations of its class."""


class _Piece(NamedTuple):
    """Cells of one role that follow each other."""

    x: int
    text: str
    cells: int
    role: Role


def svg(lines: Sequence[Line], width: int, theme: Theme, painter: Painter, title: str) -> str:
    """The picture of lines of ``width`` cells. ``painter`` says which letters are shown."""
    colors = {role: _colors(look) for role, look in theme.looks.items()}
    pieces = [list(_pieces(painter.cells(line, width))) for line in lines]
    used = [role for role in Role if any(piece.role is role for line in pieces for piece in line)]
    base = colors[Role.TEXT]
    size = f"{width * _WIDTH} {len(lines) * _HEIGHT}"
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img">',
        f"<title>{_escaped(title)}</title>",
        "<style>",
        _STYLE,
        *(f".{role}{{fill:{colors[role].fore}{colors[role].more}}}" for role in used),
        "</style>",
        f'<rect width="100%" height="100%" fill="{base.back}"/>',
    ]
    for y, line in enumerate(pieces):
        found += _backgrounds(line, y, colors, base)
        found += _texts(line, y, colors)
    return "\n".join([*found, "</svg>", ""])


def _pieces(cells: Sequence[Cell]) -> Iterator[_Piece]:
    """Cells of one role together; a letter whose width fonts may see otherwise is by itself."""
    first = 0
    for n in range(1, len(cells) + 1):
        if (
            n == len(cells)
            or cells[n][1] is not cells[first][1]
            or not (_is_certain(cells[n][0]) and _is_certain(cells[n - 1][0]))
        ):
            if n < len(cells) and not cells[n][0]:
                continue  # the second half of a wide letter
            text = "".join(letter for letter, _ in cells[first:n])
            yield _Piece(first, text, n - first, cells[first][1])
            first = n


def _is_certain(letter: str) -> bool:
    return bool(letter) and (letter.isascii() or letter in SHAPES)


def _backgrounds(
    line: Iterable[_Piece], y: int, colors: dict[Role, _Colors], base: _Colors
) -> Iterator[str]:
    for x, _, cells, role in line:
        back = colors[role].back
        if back != base.back:
            yield (
                f'<rect x="{x * _WIDTH}" y="{y * _HEIGHT}" width="{cells * _WIDTH}" '
                f'height="{_HEIGHT}" fill="{back}"/>'
            )


def _texts(line: Iterable[_Piece], y: int, colors: dict[Role, _Colors]) -> Iterator[str]:
    for x, text, cells, role in line:
        if "underline" not in colors[role].more:
            kept = text.rstrip(" ")
            cells -= len(text) - len(kept)
            text = kept.lstrip(" ")
            x += len(kept) - len(text)
            cells -= len(kept) - len(text)
        if text:
            yield (
                f'<text class="{role}" x="{x * _WIDTH}" y="{y * _HEIGHT + _BASE}" '
                f'textLength="{cells * _WIDTH}">{_escaped(text)}</text>'
            )


def _colors(look: Look) -> _Colors:
    fore, back = _PAPER
    if look.fore is not None:
        fore = rgb(look.fore)
    if look.back is not None:
        back = rgb(look.back)
    if look.reverse:
        fore, back = back, fore
    more = ";font-weight:bold" if look.bold else ""
    more += ";text-decoration:underline" if look.underline else ""
    return _Colors(_hex(fore), _hex(back), more)


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
