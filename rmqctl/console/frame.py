"""What stands above and below the panes: store, place and state; the command, and keys."""

from typing import TYPE_CHECKING, Final

from rmqctl.output.cells import ELLIPSIS, wrapped
from rmqctl.output.fields import Fit
from storage.clock import now_ms
from storage.parse.times import near_datetime

from .cells import fitted, safe
from .drawing import Line, Role, Span, cut_line, spread, text_line, width_of
from .keys import keys_of
from .notes import rule
from .overlay import Overlay
from .shapes import RULE
from .target import with_zone
from .terminal import LEAST_HEIGHT, LEAST_WIDTH

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp

HEAD_LINES: Final = 3
_LEAST_TITLE: Final = 20
"""Cells of the place; where it has fewer, the time between looks is left out."""
_MOST_LINES: Final = 4
"""Lines of a notice."""
_USUAL_KEYS: Final = ("open", "find", "go_to", "sort", "mark", "copy_command", "help", "quit")


def head(app: "ConsoleApp", width: int) -> list[Line]:
    """The lines above the panes, once these have been drawn: what they had no room for is here."""
    return [first_line(app, width), _where(app, width), rule(app, width)]


def first_line(app: "ConsoleApp", width: int) -> Line:
    """The store, its state, and the time."""
    store = str(app.cli.store.path)
    left = [Span(" rmqctl", Role.TITLE), *text_line(f"  {store}", Role.TEXT)]
    now = near_datetime(now_ms(), app.cli.zone)
    right = [*app.desk.state(), Span(f"  {now:%H:%M:%S} ", Role.DIM)]
    return spread(left, right, width)


def _where(app: "ConsoleApp", width: int) -> Line:
    """The place, the count, the looks, and the age of rows that are older than these leave them.

    The count is never cut: that would be another count.
    """
    title = text_line(f" {app.spec.title(app.place)}", Role.TITLE)
    count = text_line(f"   {app.pane.count_text()}")
    state = "paused" if app.paused else f"every {app.every:g} s"
    old = app.pane.age_text()
    if old:
        state += f", rows {old}"
    short = f"  {state} "
    looks = (f"  {state}   look took {app.pane.took_ms:>3} ms ", short)
    room = width - width_of(count)
    fits = [text for text in looks if width_of(title) + len(text) <= room]
    kept = app.paused or old or room - len(short) >= _LEAST_TITLE
    age = fits[0] if fits else short if kept else ""
    room -= len(age)
    if width_of(title) > room:
        title = [Span(fitted(title[0].text, room, Fit.MIDDLE), Role.TITLE)]
    return spread([*title, *count], [Span(age, Role.DIM)], width)


def foot(app: "ConsoleApp", width: int) -> list[Line]:
    """The lines below the panes: the command, and keys."""
    line = cut_line([Span(RULE * width, Role.DIM)], width)
    shown = with_zone(app.desk.command or app.pane.command(), app.cli)
    command = text_line(f" = {shown}", Role.TEXT)
    keys: Line = [Span(" ")]
    if app.prompt is not None:
        keys = app.prompt.line(width)
    elif app.notice:
        return [line, cut_line(command, width), *notice_lines(app.notice, width)]
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


def notice_lines(notice: str, width: int) -> list[Line]:
    """A notice, on as many lines as it needs, but not on more than a few."""
    found = wrapped(safe(notice[: width * _MOST_LINES]), max(1, width - 2))
    if len(found) > _MOST_LINES:
        found = [*found[: _MOST_LINES - 1], f"{found[_MOST_LINES - 1]} {ELLIPSIS}"]
    return [cut_line(text_line(f" {text}", Role.WARN), width) for text in found]


def over(app: "ConsoleApp", action: str) -> bool:
    """Do what a key does with a text over the panes; whether that is all that it does."""
    if not isinstance(app.overlay, Overlay):
        return False
    if app.overlay.scroll(action):
        return True
    app.overlay = None
    return action in ("back", "explain")


def too_small(width: int, height: int) -> list[Line]:
    """All lines of a terminal that has no room for a screen."""
    text = f"rmqctl console needs {LEAST_WIDTH}x{LEAST_HEIGHT} cells"
    lines = [text_line(line) for line in wrapped(text, max(1, width))]
    lines += [text_line("")] * (height - len(lines))
    return [cut_line(line, width) for line in lines[:height]]
