"""What a screen and a pane are."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqctl.console.looks.look import Look, Place

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane


class PaneSpec(NamedTuple):
    """A part of a screen: the rows of a look."""

    look: Look
    title: str = ""
    share: int = 1
    """Its part of the height that is left, in relation to the other panes."""
    height: int = 0
    """A fixed number of lines; 0: by its share."""
    tall: int = 0
    """The number of lines on a tall screen, instead of ``height``."""
    still: bool = False
    """Whether it has no cursor of its own, so that tab passes over it."""
    also: Sequence[Look] = ()
    """Further looks from which it is drawn."""
    wide: Sequence[Look] = ()
    """Those from which it is drawn on a wide screen only."""
    beside: bool = False
    """Whether it stands at the right of the pane before it, where the screen is wide."""
    of_row: Callable[[Any], Place | None] | None = None
    """What it shows, by the row under the cursor of the first pane; None: the screen's place."""
    follows: int = 0
    """The number of the pane whose cursor it follows."""
    room: int = 0
    """It is shown only where the panes have so many lines together."""
    of_row_at: Callable[[Place], Callable[[Any], Place | None]] | None = None
    """The same, where the place of the screen is needed, too."""
    pane: "Callable[..., Pane] | None" = None
    """The class that draws it; None: a list of rows."""


class ScreenSpec(NamedTuple):
    """A screen."""

    title: Callable[[Place], str]
    panes: Sequence[PaneSpec]
    keys: Sequence[str] = ()
    """The actions of its own that the last line names first."""
    start: int = 0
    """The pane that has the cursor at first; others may follow it."""
