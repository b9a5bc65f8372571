"""What the keys of the screens of messages do."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rmqctl.console.looks.filters import parse
from rmqctl.errors import UsageProblem
from storage.clock import now_ms

from .details import DetailPane
from .looks.dead_letters import BY, by_of
from .looks.look import Place
from .looks.messages import ALL, position_of, window_of

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def go(app: "ConsoleApp", word: str, words: Sequence[str]) -> None:
    """Do ``:from POSITION``, ``:follow TOPIC [QUEUE] [FILTERS]`` and ``:search WORDS``."""
    if word == "from":
        if app.place.screen != "messages":
            raise UsageProblem(":from is for the messages of a topic")
        start = " ".join(words)
        if start:
            position_of(start, now_ms(), app.cli.zone, lambda sentence: None)
        app.go(window_of(app.place)._replace(start=start).place())
    elif word == "follow":
        if not words:
            raise UsageProblem("'follow' takes TOPIC [QUEUE] [FILTERS]")
        topic, *rest = words
        queue = rest.pop(0) if rest and not rest[0].startswith("-") else ALL
        parse(rest)
        app.go(Place("follow", (topic, queue, shlex.join(rest))))
    else:
        others, given = parse(words)
        if not words:
            raise UsageProblem("'search' takes [PATTERN] [TOPIC] [FILTERS], as 'message search'")
        here = [] if len(others) > 1 or "topic" in given else _topic_here(app.place)
        app.go(Place("search", (shlex.join([*words, *here]),)))


def _topic_here(place: Place) -> list[str]:
    """The options that keep a search to the topic, and the queue, of a place."""
    if place.screen not in ("topic", "messages", "follow", "message"):
        return []
    topic, queue = (*place.names, ALL)[:2]
    return ["-t", topic, *(["-Q", queue] if queue != ALL else [])]


def do_follow(app: "ConsoleApp") -> None:
    """Follow new messages of the topic, with the condition of the list; or stop."""
    place = app.place
    topic, queue = (*place.names, ALL)[:2]
    if place.screen == "follow":
        app.go(Place("messages", (topic, queue)))
        return
    where = app.panes[0].table.view.where if place.screen == "messages" else None
    app.go(Place("follow", (topic, queue, shlex.join(("--where", where) if where else ()))))


def do_next_hit(app: "ConsoleApp") -> None:
    """Move to the next hit."""
    pane = app.panes[0]
    before = pane.cursor
    pane.move(1)
    if pane.cursor == before:
        if pane.loading:
            app.notice = "the search goes on"
        elif pane.stopped or pane.failed:
            app.notice = f"the search {'is' if pane.stopped else 'has'} {pane.ended}"
        else:
            app.notice = "there is no further hit"


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
