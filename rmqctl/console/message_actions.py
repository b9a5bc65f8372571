"""What the keys of the screens of messages do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqctl.errors import UsageProblem

from .details import DetailPane
from .looks.dead_letters import BY, by_of
from .looks.look import Place
from .looks.messages import window_of

if TYPE_CHECKING:
    from .app import ConsoleApp


def go(app: "ConsoleApp", word: str, words: Sequence[str]) -> None:
    """Do ``:from POSITION`` and ``:search WORDS``."""
    if word == "from":
        if app.place.screen != "messages":
            raise UsageProblem(":from is for the messages of a topic")
        app.go(window_of(app.place)._replace(start=" ".join(words)).place())


def do_more(app: "ConsoleApp") -> None:
    """Show twice as many messages."""
    window = window_of(app.place)
    app.go(window._replace(most=str(2 * window.number())).place())


def do_by(app: "ConsoleApp") -> None:
    """Count dead letters by the next property."""
    by = by_of(app.place)
    following = BY[(BY.index(by) + 1) % len(BY)] if by in BY else BY[0]
    marked = app.panes[1].table.marked
    app.go(Place("dlq", (app.place.name, following)))
    app.panes[1].table.marked = marked


def do_form(app: "ConsoleApp") -> None:
    """Show the body in its next form."""
    for pane in _details(app):
        pane.next_form()


def do_wrap(app: "ConsoleApp") -> None:
    """Wrap long lines, or cut them."""
    for pane in _details(app):
        pane.wrap = not pane.wrap


def do_life(app: "ConsoleApp") -> None:
    """Show the history of the message."""
    _open(app, "life")


def do_trace(app: "ConsoleApp") -> None:
    """Show what clients with tracing stored about the message."""
    _open(app, "trace")


def _open(app: "ConsoleApp", screen: str) -> None:
    row = app.pane.row()
    if row is not None and hasattr(row, "msg_id"):
        app.go(Place(screen, (row.msg_id,)))


def _details(app: "ConsoleApp") -> list[DetailPane]:
    return [pane for pane in app.panes if isinstance(pane, DetailPane)]
