"""What a click of the mouse does: it puts the cursor on a row; a second one opens the row."""

from typing import TYPE_CHECKING, Final

from rmqctl.console.keys import KEYS

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

_HEAD: Final = 3
"""Lines above the panes."""
_OPEN: Final = next(key for key in KEYS if key.action == "open")


def click(app: "ConsoleApp", x: int, y: int) -> None:
    """Take a click at a cell of the screen. What lies over the panes takes none."""
    covered = app.desk.sheet is not None or app.overlay is not None or app.prompt is not None
    if covered or app.helping:
        return
    number, line, cell = _pane_at(app, x, y - _HEAD)
    if number is None or app.panes[number].spec.still:
        return
    pane, was_active = app.panes[number], number == app.active
    app.active = number
    before, app.clicked = app.clicked, None
    was_there = pane.click(line, cell)
    if pane.row() is None:
        return
    app.clicked = pane, pane.cursor
    if was_there and was_active and before == app.clicked:
        app.do_key(_OPEN)


def _pane_at(app: "ConsoleApp", x: int, y: int) -> tuple[int | None, int, int]:
    """The number of the pane at a place below the head, and the line and the cell within it."""
    if y < 0:
        return None, 0, 0
    for box in app.boxes:
        if y >= box.height:
            y -= box.height
            continue
        for number, width in box.panes:
            if x < width:
                return number, y, x
            x -= width + 1  # the rule between them
        break
    return None, 0, 0
