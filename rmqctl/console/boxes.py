"""Where the panes of a screen stand: one below the other, or beside each other on a wide screen."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rmqctl.console.specs import PaneSpec

from .drawing import Line, Role, Span
from .shapes import BESIDE

WIDE: Final = 120
"""Cells from which on panes may stand beside each other."""
_LEAST: Final = 3
"""Lines of a pane: title, headings and a row."""
_TALL: Final = 30
"""Lines from which on a screen is tall."""


class Box(NamedTuple):
    """Panes beside each other."""

    height: int
    panes: Sequence[tuple[int, int]]
    """The number of each pane, and its width."""


def boxes(specs: Sequence[PaneSpec], width: int, room: int, kept: int = 0) -> list[Box]:
    """The boxes from top to bottom; they take exactly the room.

    A pane without room is left out, the last ones first, but never the one that is ``kept``.
    """
    groups: list[list[int]] = []
    if room >= _TALL:
        specs = [spec._replace(height=spec.tall or spec.height) for spec in specs]
    for n, spec in enumerate(specs):
        if spec.room > room:
            continue
        if groups and spec.beside and width >= WIDE:
            groups[-1].append(n)
        else:
            groups.append([n])
    while len(groups) > 1 and sum(_least(specs[group[0]]) for group in groups) > room:
        groups.remove([group for group in groups if kept not in group][-1])
    left = room - sum(specs[group[0]].height for group in groups)
    shares = sum(specs[group[0]].share for group in groups if not specs[group[0]].height) or 1
    found = []
    for group in groups:
        first = specs[group[0]]
        if first.height:
            height = first.height
        else:
            height = left * first.share // shares
            left -= height
            shares -= first.share
        found.append(Box(height, _widths(group, width)))
    if found and (rest := room - sum(box.height for box in found)):
        found[-1] = found[-1]._replace(height=found[-1].height + rest)
    return found


def _least(spec: PaneSpec) -> int:
    return spec.height or _LEAST


def _widths(group: Sequence[int], width: int) -> list[tuple[int, int]]:
    each = (width - len(group) + 1) // len(group)
    widths = [each] * len(group)
    widths[-1] += width - len(group) + 1 - sum(widths)
    return list(zip(group, widths, strict=True))


def beside(parts: Sequence[Sequence[Line]]) -> list[Line]:
    """The lines of panes that stand beside each other, with a rule between them."""
    found = [list(line) for line in parts[0]]
    for part in parts[1:]:
        for line, more in zip(found, part, strict=True):
            line += [Span(BESIDE, Role.DIM), *more]
    return found
