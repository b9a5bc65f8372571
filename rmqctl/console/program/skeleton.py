"""The first frame: no module of its screen has been imported, and no store has been opened."""

from typing import TYPE_CHECKING

from rmqctl.console.drawing import Line, Role, Span, cut_line, spread, text_line
from rmqctl.console.frame import first_line
from rmqctl.console.looks.look import Place
from rmqctl.console.screens.table import TABLE
from rmqctl.console.shapes import RULE

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def skeleton(app: "ConsoleApp", place: Place, width: int, height: int) -> list[Line]:
    """The lines of a place whose panes are not there yet."""
    rule = cut_line([Span(RULE * width, Role.DIM)], width)
    title = text_line(f" {TABLE[place.screen].title(place)}", Role.TITLE)
    every = [Span(f"  every {app.every:g} s ", Role.DIM)]
    head = [first_line(app, width), spread(title, every, width), rule]
    head.append(cut_line(text_line("  reading ...", Role.DIM), width))
    blank = cut_line([], width)
    foot = [rule, blank, blank]
    return [*head, *[blank] * (height - len(head) - len(foot)), *foot]
