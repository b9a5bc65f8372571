"""The help of a screen, in pages: the notices in full, and the keys."""

from typing import TYPE_CHECKING, Final

from rmqctl.output.cells import wrapped
from rmqctl.output.values import escape_controls

from .drawing import Line, Role, cut_line, text_line
from .keys import keys_of
from .notes import all_notices

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

_AROUND: Final = 6
"""Lines of the screen above and below the help."""


def help_lines(app: "ConsoleApp", width: int, room: int) -> list[Line]:
    """The page that the app shows."""
    pages = _pages(app, width, room)
    page = min(app.helping, len(pages))
    count = f"page {page} of {len(pages)}, ? for the next; " if len(pages) > 1 else ""
    lines = [text_line(f" Help ({count}esc closes)", Role.DIM), *pages[page - 1]]
    lines += [text_line("")] * (room - len(lines))
    return [cut_line(line, width) for line in lines[:room]]


def next_page(app: "ConsoleApp") -> int:
    """The page after the one that is shown; 0, which is none, after the last."""
    pages = _pages(app, app.size.width, app.size.height - _AROUND)
    return (app.helping + 1) % (len(pages) + 1)


def _pages(app: "ConsoleApp", width: int, room: int) -> list[list[Line]]:
    lines: list[Line] = []
    notices = all_notices(app)
    if notices:
        lines.append(text_line(" Notes on what is shown", Role.HEAD))
    for note in notices:
        texts = wrapped(escape_controls(note), width - 4)
        lines += [text_line(f"  {text}", Role.WARN) for text in texts]
    lines.append(text_line(" Keys of this screen", Role.HEAD))
    lines += [app.desk.help_line(key) for key in keys_of(app.place.screen)]
    each = max(1, room - 1)
    return [lines[at : at + each] for at in range(0, len(lines), each)]
