"""The Textual application: keys in, lines out. What is shown comes from screens and panes."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, ComposeResult
from textual.events import Key as KeyEvent, MouseDown, MouseScrollDown, MouseScrollUp, Paste, Resize
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from rmqctl.console import frame
from rmqctl.console.boxes import WIDE, Box, beside, boxes
from rmqctl.console.drawing import Line
from rmqctl.console.driver import ConsoleDriver
from rmqctl.console.faults import sentence_of
from rmqctl.console.helping import help_lines
from rmqctl.console.keys import ANYWHERE, Key, key_of
from rmqctl.console.looks.look import Place
from rmqctl.console.overlay import ListOver, Overlay
from rmqctl.console.panes import Pane, unfit
from rmqctl.console.plans.desk import CHANGING, Desk
from rmqctl.console.program import mouse, typed
from rmqctl.console.program.skeleton import skeleton
from rmqctl.console.prompt import Asks, Prompt
from rmqctl.console.reading import Asked, Batch, Reader
from rmqctl.console.screens.table import spec_of
from rmqctl.console.tables import Filter
from rmqctl.console.target import with_target, with_zone
from rmqctl.console.terminal import LEAST_HEIGHT, LEAST_WIDTH
from rmqctl.console.themes import Theme
from rmqctl.errors import CliError
from rmqctl.output.view import Format, View

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from rmqctl.console.specs import ScreenSpec

_AROUND: Final = 6
"""Lines above and below the panes."""
_KEPT_PLACES: Final = 8
_PATIENCE_S: Final = 0.1
_TOGETHER_S: Final = 0.05
"""The looks of a screen end one after the other: what comes within so long is drawn together."""
_ROUND_S: Final = 0.1
"""The same of rows that replace others while more looks of the round follow."""


class Canvas(Widget):
    """The whole screen. It takes the keys; its lines are written by the driver."""

    can_focus = True

    def render_line(self, y: int) -> Strip:
        """Nothing: what Textual draws is not shown."""
        return Strip.blank(self.size.width)


class ConsoleApp(App[int], inherit_bindings=False):
    """The console of one store."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Canvas { width: 100%; height: 100%; }
    """

    def __init__(self, cli: "Cli", place: Place, every: float, theme: Theme) -> None:
        super().__init__(ansi_color=True)
        self.cli = self.first_cli = cli
        """The call with the store that is shown, and the one that began the console."""
        self.every = every
        self.theme_of_lines = theme
        self.canvas = Canvas()
        self.failure: Exception | None = None
        """The error that ended the app."""
        self.prompt: Prompt | None = None
        self.places: list[Place] = []
        self.at = -1
        self.panes: list[Pane] = []
        self.active = 0
        self.boxes: list[Box] = []
        """Where the panes stood when they were drawn last."""
        self.clicked: tuple[Pane, int] | None = None
        """The pane and the row of the click before."""
        self.paused = False
        self.everything = False
        """Whether rows of the system are shown, too."""
        self.notice = ""
        self.helping = 0
        """The page of the help that is shown; 0: none."""
        self.overlay: Overlay | ListOver | None = None
        """A text or a list over the panes."""
        self.in_ascii = False
        """Whether shapes are drawn in ASCII."""
        self._looks: Timer | None = None
        self._drawn_at = 0.0
        """When the screen was drawn last, as monotonic seconds."""
        self._next_draw: asyncio.TimerHandle | None = None
        self._goes_on = False
        """Whether a look of this round was a part, so that the next one is wanted at once."""
        self._asks = Asks.NOTHING
        self._number = 0
        self._answered = True
        self._base = self._view()
        self._first = place
        self.reader = Reader(cli.store.path, self.from_reader, cli.zone, cli.settings)
        self.readers = {cli.store.path: self.reader}
        """The reader of each store that was shown."""
        self._since = 0
        """The last request for the screen that was shown before."""
        self._sessions: dict[Path, dict[str, Any]] = {cli.store.path: {}}
        self.session = self._sessions[cli.store.path]
        """What the screens of the store keep for each other."""
        self.walker: Reader | None = None
        """Reads what takes long, beside the other."""
        self._left: dict[Place, list[Pane]] = {}
        """The panes of places that were left, for the way back."""
        self.desk = self._new_desk()

    def _new_desk(self) -> Desk:
        return Desk(
            self.cli,
            self.reader,
            from_thread=self.call_later,
            walker=lambda: self.walker,
            changed=self.draw,
            copy=self._copy_command,
            quit_=self.quit,
        )

    def show_store(self, cli: "Cli", reader: Reader) -> None:
        """Show another store from now on: nothing of the one before is kept."""
        if self.walker is not None:
            self.walker.end(0)
            self.walker = None
        self.cli, self.reader = cli, reader
        self.places, self.at, self.panes = [], -1, []
        self._left.clear()
        self.session = self._sessions.setdefault(cli.store.path, {})
        self._base = self._view()
        self.desk.end()
        self.desk = self._new_desk()

    def _view(self) -> View:
        given = self.cli.view
        return given._replace(format=Format.TABLE, terminal=True, remark=None, nothing=None)

    def compose(self) -> ComposeResult:
        """The one widget."""
        yield self.canvas

    def on_mount(self) -> None:
        """Show the skeleton, then the first screen; the store is opened by the reader's thread."""
        self.canvas.focus()
        if self.terminal is not None:
            self.terminal.show(self.frame_lines(), self.size.width)
            self.terminal.wait_until_shown(_PATIENCE_S)
        self.reader.start()
        self._check_view(spec_of(self._first.screen))
        self.go(self._first)
        self.look_every(self.every)

    def _check_view(self, spec: "ScreenSpec") -> None:
        """Raise for options of the call that are for no list of the screen, such as a wrong name.

        Other screens leave out what names a field that their rows do not have.
        """
        for name in ("where", "sort", "columns"):
            why = [unfit(self._base, pane.look.row_type, name) for pane in spec.panes]
            problem = why[spec.start]
            if problem is not None and None not in why:
                raise problem

    def look_every(self, seconds: float) -> None:
        """Look again and again, after so long."""
        if self._looks is not None:
            self._looks.stop()
        self.every = seconds
        self._looks = self.set_interval(seconds, self._tick, name="looks")

    @property
    def terminal(self) -> ConsoleDriver | None:
        """The terminal; None in a test that has none."""
        return self._driver if isinstance(self._driver, ConsoleDriver) else None

    def _handle_exception(self, error: Exception) -> None:
        """End; the command prints the error on the main screen, as it does every error."""
        if self.terminal is None:
            super()._handle_exception(error)
            return
        self.failure = self.failure or error
        self.panic()

    def fail_from_thread(self, error: Exception) -> None:
        """End, as a thread has failed that the console needs."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the app has ended
                loop.call_soon_threadsafe(self._handle_exception, error)

    # Places

    def go(self, place: Place, *, kept: bool = False) -> None:
        """Show a place, and remember it; ``kept``: as it was left, if it was shown not long ago."""
        self._leave()
        self.places = [*self.places[: self.at + 1], place]
        self.at = len(self.places) - 1
        self._enter(self._left.get(place) if kept else None)

    def _leave(self) -> None:
        if self.at >= 0:
            for pane in self.panes:
                pane.leave()
            self._left.pop(self.place, None)
            self._left[self.place] = self.panes
            for place in list(self._left)[:-_KEPT_PLACES]:
                del self._left[place]

    def back_to(self, at: int) -> None:
        """Show a place of the history, with the cursor and the marks that it had."""
        self._leave()
        self.at = at
        self._enter(self._left.get(self.place))

    def go_above(self, place: Place) -> None:
        """Show a place, as if the one that is shown had been entered from it."""
        self._leave()
        self.places = [*self.places[: self.at], place, *self.places[self.at :]]
        self._enter()

    def _enter(self, panes: list[Pane] | None = None) -> None:
        place = self.places[self.at]
        self.spec = spec_of(place.screen)
        self.panes = panes or [
            (spec.pane or Pane)(spec, place, self._base) for spec in self.spec.panes
        ]
        for pane in self.panes:
            pane.session = self.session
        self.active = self.spec.start
        self.notice, self.clicked = "", None
        self._goes_on, self._since = False, self._number
        self.reader.forget()
        if self.walker is not None:
            self.walker.forget()
        self._follow()
        self.look()
        self.draw()

    @property
    def place(self) -> Place:
        """Where the console is."""
        return self.places[self.at]

    @property
    def pane(self) -> Pane:
        """The pane with the cursor."""
        return self.panes[self.active]

    # Looks

    def _tick(self) -> None:
        """Look; where nothing is read, draw, as the clock and the age of old rows go on."""
        if not self.look():
            self.draw()

    def look(self, *, goes_on: bool = False) -> bool:
        """Read what the panes show anew, unless that has been asked for and has not begun; whether
        anything is read. While the console is paused, only rows that a pane lacks are; with
        ``goes_on`` also the other parts of what is read in parts."""
        if self.reader.busy:
            return False  # a slow look skips the next
        wanted = [self.panes[n] for n in sorted(self.seen())]
        for pane in wanted:
            pane.everything = self.everything
        if self.paused:
            wanted = [p for p in wanted if p.lacks_rows or (goes_on and p.loading)]
        wanted = [pane for pane in wanted if pane.lost or not (pane.look.walk and pane.number)]
        wanted = [pane for pane in wanted if not (pane.stopped or self.ends(pane))]
        for pane in wanted:
            self.read(pane)
        return any(not pane.empty for pane in wanted)

    def ends(self, pane: Pane) -> bool:
        """Whether what is read for a pane is to end, and has not ended yet."""
        reader = self.walker if pane.look.walk else self.reader
        return reader is not None and any(map(reader.stops, pane.numbers.values()))

    def read(self, pane: Pane) -> None:
        """Read what a pane shows anew, after what waits to be read."""
        if not pane.empty:
            pane.lost = False
            pane.everything = self.everything
            pane.is_wide = self.size.width >= WIDE
            pane.asked_everything = everything = pane.wants_everything()
            reader = self._walks() if pane.look.walk else self.reader
            for look in pane.looks:
                self._number += 1
                reader.ask(Asked(look, pane.place, everything, self._number))
                for other in self.panes:  # this request replaces theirs
                    if other.place == pane.place and look in other.numbers:
                        other.numbers[look] = self._number
                pane.numbers[look] = pane.number = self._number

    def _walks(self) -> Reader:
        if self.walker is not None and self.walker.path != self.cli.store.path:
            self.walker.end(0)
            self.walker = None
        if self.walker is None:
            self.walker = Reader(self.cli.store.path, self.from_reader, self.cli.zone)
            self.walker.start()
        self.walker.forget()
        return self.walker

    def seen(self) -> set[int]:
        """The numbers of the panes that the screen has room for."""
        room = max(1, self.size.height - _AROUND)
        specs = [pane.spec for pane in self.panes]
        found = boxes(specs, self.size.width, room, self.spec.start)
        return {n for box in found for n, _ in box.panes}

    def without_room(self) -> list[str]:
        """The titles of the panes that a higher screen of this width would show."""
        seen = self.seen()
        return [
            pane.spec.title
            for n, pane in enumerate(self.panes)
            if n not in seen and not pane.spec.room and pane.spec.title
        ]

    def _follow(self) -> None:
        """Show in the panes that follow the cursor of another one what it is on. A pane that is
        not shown does not have the cursor."""
        seen = self.seen()
        if self.panes and self.active not in seen:
            self.active = self.spec.start
        for n, pane in enumerate(self.panes):
            pane.follow(self.panes[pane.spec.follows])
            of_row = pane.spec.of_row
            if pane.spec.of_row_at is not None:
                of_row = pane.spec.of_row_at(self.place)
            if of_row is None or n not in seen:
                continue
            row = self.panes[pane.spec.follows].row()
            if pane.show(None if row is None else of_row(row)):
                self.read(pane)

    def from_reader(self, batch: Batch) -> None:
        """Hand a batch over to the loop and wait, so that no reader is ahead of the screen."""
        taken = threading.Event()
        for pane in list(self.panes):
            if pane.takes(batch):
                pane.prepare(batch)

        def take() -> None:
            self._take(batch)
            taken.set()

        with contextlib.suppress(RuntimeError, AttributeError):  # the app has ended
            self._loop.call_soon_threadsafe(take)  # type: ignore[union-attr]
            while not (taken.wait(_PATIENCE_S) or self._readers_end()):
                pass

    def _readers_end(self) -> bool:
        return self.reader.ending or (self.walker is not None and self.walker.ending)

    def _take(self, batch: Batch) -> None:
        if batch.asked.number <= self._since:
            return  # what was read for another screen, or store, may lack rows
        try:
            for pane in self.panes:
                if pane.takes(batch):
                    pane.take(batch)
                    self._goes_on |= batch.goes_on and batch.complete and batch.error is None
            if self.paused and batch.asked.look.endless and self.walker is not None:
                self.walker.hold(held=True)
            lacks_rows = any(pane.loading and not pane.empty for pane in self.panes)
            self._draw_soon(rows_follow=self.reader.busy and not lacks_rows)
            if self._goes_on and not self.reader.busy:  # after the other looks of this round
                self._goes_on = False
                self.look(goes_on=True)
        except Exception as error:  # noqa: BLE001 - else it would be raised in the reader's thread
            self._handle_exception(error)

    # Drawing

    def _draw_soon(self, *, rows_follow: bool) -> None:
        """Draw the screen as it is now, or a little later if it was drawn a moment ago, or if rows
        follow.

        What panes show that follow the cursor of others is asked for at once.
        """
        soon = self._drawn_at + _TOGETHER_S - monotonic()
        wait = max(soon, _ROUND_S) if rows_follow else soon
        if wait <= 0:
            self.draw()
            return
        self._follow()
        if self._next_draw is None:
            self._next_draw = asyncio.get_running_loop().call_later(wait, self._draw_later)

    def _draw_later(self) -> None:
        try:
            self.draw()
        except Exception as error:  # noqa: BLE001 - else asyncio would only log it
            self._handle_exception(error)

    def draw(self) -> None:
        """Draw the screen as it is now."""
        if self._next_draw is not None:
            self._next_draw.cancel()
            self._next_draw = None
        self._follow()
        lines = self.frame_lines()
        if self.terminal is not None:
            self.terminal.show(lines, self.size.width)
        self._drawn_at = monotonic()

    def frame_lines(self) -> list[Line]:
        """What the screen shows, whatever its size."""
        size = self.size
        fits = size.width >= LEAST_WIDTH and size.height >= LEAST_HEIGHT
        return (self.lines if fits else frame.too_small)(size.width, size.height)

    def lines(self, width: int, height: int) -> list[Line]:
        """All lines of the screen."""
        if not self.panes:
            return skeleton(self, self._first, width, height)
        if self.desk.sheet is not None:
            from rmqctl.console.plans.sheet_lines import sheet_screen

            top = frame.head(self, width)[0]
            shown = with_zone(self.desk.sheet.command(), self.cli)
            return sheet_screen(self.desk.sheet, top, width, height, self.notice, shown)
        for pane in self.panes:
            pane.every_ms = round(self.every * 1000)
        foot = frame.foot(self, width)
        room = height - frame.HEAD_LINES - len(foot)
        body = help_lines(self, width, room) if self.helping else self._body(width, room)
        if self.overlay is not None:
            body = self.overlay.lines(width, room)
        return [*frame.head(self, width), *body, *foot]  # the head has what no pane has room for

    def _body(self, width: int, room: int) -> list[Line]:
        found: list[Line] = []
        self.boxes = boxes([pane.spec for pane in self.panes], width, room, self.spec.start)
        for box in self.boxes:
            parts = [
                self.panes[n].lines(
                    wide, box.height, active=n == self.active, titled=len(self.panes) > 1
                )
                for n, wide in box.panes
            ]
            found += beside(parts)
        return found

    # Events

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size."""
        if self.panes:
            self.draw()
        if event.size.width >= WIDE and not all(pane.is_wide for pane in self.panes):
            self.call_later(self.look)  # the app has the new size then

    def on_key(self, event: KeyEvent) -> None:
        """Do what the table of keys says."""
        for anywhere in ANYWHERE:
            if event.key in anywhere.keys:
                event.stop()
                self.notice = ""
                self._do(anywhere)
                self.draw()
                return
        if self.desk.sheet is not None:
            event.stop()
            self.notice = ""
            self.desk.sheet.key(event.key, event.character)
            self.draw()
            return
        if self.prompt is not None:
            event.stop()
            self._prompt_key(self.prompt, event)
            self.draw()
            return
        if isinstance(self.overlay, ListOver):
            event.stop()
            over, self.notice = self.overlay, ""
            if not over.key(event.key, event.character) and self.overlay is over:
                self.overlay = None
            self.draw()
            return
        key = key_of(event.key, self.place.screen)
        if key is not None:
            event.stop()
            self.notice = ""
            self.do_key(key)
            self.draw()

    def do_key(self, key: Key) -> None:
        """Do what a key does on the screen that is shown."""
        if key.action in CHANGING:
            self.notice = self.desk.begin(key.action, self.place, self.pane, self.panes)
        elif not frame.over(self, key.action):
            self._do(key)
            self.desk.command = None

    def _do(self, key: Key) -> None:
        module = import_module(f"rmqctl.console.{key.module or 'program.actions'}")
        try:
            getattr(module, f"do_{key.action}")(self)
        except (CliError, OSError) as error:
            self.notice = sentence_of(error)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Move the cursor to the row."""
        if event.button == 1:
            mouse.click(self, event.screen_x, event.screen_y)
            self.draw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move down."""
        self._scroll(3)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move up."""
        self._scroll(-3)

    def _scroll(self, by: int) -> None:
        if self.desk.scroll(by):
            return
        if self.overlay is not None:
            self.overlay.move(by)
        else:
            self.pane.move(by)
        self.draw()

    def on_paste(self, event: Paste) -> None:
        """Insert what was pasted, if something is asked."""
        if self.desk.sheet is not None:
            self.desk.sheet.paste(event.text)
            self.draw()
            return
        if self.prompt is not None:
            self.prompt.insert(event.text)
            self._typed(self.prompt)
            self.draw()

    # Prompt

    def ask(self, label: str, answer: Callable[[str], None], text: str = "") -> None:
        """Ask for a line; ``answer`` is called with it when Enter is pressed."""
        self._answer = answer
        self.ask_for(Asks.ANSWER, label, text)

    def ask_for(self, asks: Asks, label: str, text: str = "") -> None:
        """Ask for a line that is used as ``asks`` says."""
        self._asks, self.prompt = asks, Prompt(label, text)

    def _prompt_key(self, prompt: Prompt, event: KeyEvent) -> None:
        if event.key in ("escape", "ctrl+c"):
            self.prompt = None
        elif event.key == "enter":
            self.prompt = None
            if self._asks is Asks.WHERE_TO and prompt.text.strip():
                typed.carry_out(self, prompt.text.strip())
            elif self._asks is Asks.ANSWER:
                self._answer(prompt.text)
        elif prompt.key(event.key, event.character):
            self._typed(prompt)

    def _typed(self, prompt: Prompt) -> None:
        """Filter while it is typed."""
        if self._asks in (Asks.WHERE_TO, Asks.ANSWER):
            return
        excludes = prompt.text.startswith("!")
        fuzzy = self._asks is Asks.LETTERS
        self.pane.set_filter(Filter(prompt.text.removeprefix("!"), excludes, fuzzy))

    def copy(self, text: str) -> None:
        """Hand a text to the terminal's clipboard, or write it into a file."""
        from rmqctl.console.program import copying

        copying.copy(self, text)

    def quit(self) -> None:
        """End, once a change that is being carried out has been done."""
        if self.desk.applying:
            self.notice = "a change is being carried out; the console ends once it is done"
            self.desk.then = self.quit
        else:
            self.exit(0)

    def _copy_command(self, command: str) -> None:
        self.copy(with_target(command, self.cli))
