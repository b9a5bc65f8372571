"""What stands above and below the panes: store, place and state; the command, and keys."""

import time
from typing import TYPE_CHECKING, Final

from .drawing import Line, Role, Span, cut_line, spread, text_line
from .keys import keys_of
from .notes import rule
from .shapes import RULE

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

_USUAL_KEYS: Final = ("open", "find", "go_to", "sort", "mark", "copy_command", "help", "quit")


def head(app: "ConsoleApp", width: int) -> list[Line]:
    """The lines above the panes."""
    clock = time.strftime("%H:%M:%S")
    store = str(app.cli.store.path)
    left = [Span(" rmqctl", Role.TITLE), *text_line(f"  {store}", Role.TEXT)]
    right = [*app.desk.state(), Span(f"  {clock} ", Role.DIM)]
    title = app.spec.title(app.place)
    state = "paused" if app.paused else f"every {app.every:g} s"
    crumbs = [*text_line(f" {title}", Role.TITLE), *text_line(f"   {app.pane.count_text()}")]
    age = [Span(f"{state}   look took {app.pane.took_ms} ms ", Role.DIM)]
    return [spread(left, right, width), spread(crumbs, age, width), rule(app, width)]


def foot(app: "ConsoleApp", width: int) -> list[Line]:
    """The lines below the panes: the command, and keys."""
    line = cut_line([Span(RULE * width, Role.DIM)], width)
    command = text_line(f" = {app.desk.command or app.pane.command()}", Role.TEXT)
    keys: Line = [Span(" ")]
    if app.prompt is not None:
        keys = app.prompt.line()
    elif app.notice:
        keys = text_line(f" {app.notice}", Role.WARN)
    else:
        by_action = {key.action: key for key in keys_of(app.place.screen)}
        for name in (*app.spec.keys, *_USUAL_KEYS):
            if name not in by_action:
                continue
            key = by_action[name]
            keys += [Span(key.label, Role.KEY), Span(f" {key.action.replace('_', ' ')}  ")]
            if name == "open":
                keys += app.desk.key_spans(app.place.screen)
    return [line, cut_line(command, width), cut_line(keys, width)]


def over(app: "ConsoleApp", action: str) -> bool:
    """Do what a key does with a text over the panes; whether that is all that it does."""
    if app.overlay is None:
        return False
    if app.overlay.scroll(action):
        return True
    app.overlay = None
    return action in ("back", "explain")
