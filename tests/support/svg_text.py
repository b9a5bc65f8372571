"""What a picture of the console shows: its text by lines and columns."""

import xml.etree.ElementTree as ET
from typing import Any

from rmqctl.output.cells import cells_of

_CELL = (9, 20)
"""Width and height of a cell."""
_SVG = "{http://www.w3.org/2000/svg}"


def lines_of(picture: str) -> list[str]:
    """The lines of a picture, from what stands at which column."""
    root: Any = ET.fromstring(picture)
    width, height = map(int, root.get("viewBox").split()[2:])
    lines = [[" "] * (width // _CELL[0]) for _ in range(height // _CELL[1])]
    for text in root.iter(f"{_SVG}text"):
        letters = text.text or ""
        x, y = int(text.get("x")) // _CELL[0], int(text.get("y")) // _CELL[1]
        cells = int(text.get("textLength")) // _CELL[0]
        assert cells == cells_of(letters)
        wide = list(letters) if cells == len(letters) else [letters, *[""] * (cells - 1)]
        lines[y][x : x + cells] = wide
    return ["".join(line).rstrip() for line in lines]
