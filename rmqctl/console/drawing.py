"""Lines of a screen: pieces of text with a role, which a theme colors."""

from enum import StrEnum
from typing import Final, NamedTuple

from rmqctl.output.cells import cells_of
from rmqctl.output.fields import Fit

from .cells import fitted, safe


class Role(StrEnum):
    """What a piece of text is. Colors only repeat what the words say."""

    TEXT = "text"
    DIM = "dim"
    HEAD = "head"
    TITLE = "title"
    BAD = "bad"
    WARN = "warn"
    GOOD = "good"
    KEY = "key"
    CURSOR = "cursor"
    MARK = "mark"
    WRITE = "write"


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    role: Role = Role.TEXT


Line = list[Span]
_LONGEST: Final = 4096
"""More letters than any screen is wide."""


def text_line(text: str, role: Role = Role.TEXT) -> Line:
    """A line of one piece. Of a text that no screen has room for, only the beginning."""
    return [Span(safe(text[:_LONGEST]), role)]


def width_of(line: Line) -> int:
    """Cells of a line."""
    return sum(cells_of(span.text) for span in line)


def cut_line(line: Line, width: int, fill: Role = Role.TEXT) -> Line:
    """The line with exactly this many cells."""
    found: Line = []
    left = width
    for span in line:
        cells = cells_of(span.text)
        if cells <= left:
            found.append(span)
            left -= cells
        else:
            if left:
                found.append(Span(fitted(span.text, left, Fit.END), span.role))
            left = 0
            break
    if left:
        found.append(Span(" " * left, fill))
    return found


def spread(left: Line, right: Line, width: int) -> Line:
    """A line with parts at its ends; the left part is cut first."""
    room = max(0, width - width_of(right))
    return cut_line([*cut_line(left, room), *right], width)


def with_role(line: Line, role: Role) -> Line:
    """The line, all of one role."""
    return [span._replace(role=role) for span in line]
