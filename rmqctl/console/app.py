"""The Textual application: keys in, lines out. What is shown comes from screens and panes."""

import sys
import time
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.events import Key as KeyEvent, MouseScrollDown, MouseScrollUp, Paste, Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from rmqctl.output.cells import wrapped
from rmqctl.output.view import Format, View

from .boxes import beside, boxes
from .drawing import Line, Role, Span, cut_line, spread, text_line
from .keys import action_of, keys_of
from .looks.look import Place
from .panes import Pane
from .prompt import Prompt
from .reading import Asked, Batch, Reader
from .screens.table import TABLE, place_named, spec_of
from .tables import Filter
from .themes import Theme

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_LEAST_WIDTH: Final = 60
_LEAST_HEIGHT: Final = 15


class Asks(Enum):
    """What the prompt asks for."""

    NOTHING = 0
    WHERE_TO = 1
    TEXT = 2
    LETTERS = 3


class Canvas(Widget):
    """Draws the lines of the screen; only what has changed is written."""

    can_focus = True

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._lines: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Show these lines."""
        before, self._lines = self._lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [
            Region(0, y, self.size.width, 1)
            for y, (old, new) in enumerate(zip(before, lines, strict=True))
            if old != new
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One line, for Textual."""
        line = self._lines[y] if y < len(self._lines) else []
        style = self._theme.style
        segments = [Segment(span.text, style(span.role)) for span in line]
        return Strip(segments).adjust_cell_length(self.size.width, style(Role.TEXT))


class ConsoleApp(App[int], inherit_bindings=False):
    """The console of one store."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Canvas { width: 100%; height: 100%; }
    """

    def __init__(self, cli: "Cli", place: Place, every: float, theme: Theme) -> None:
        super().__init__(ansi_color=True)
        self.cli = cli
        self.every = every
        self.theme_of_lines = theme
        self.canvas = Canvas(theme)
        self.prompt: Prompt | None = None
        self.places: list[Place] = []
        self.at = -1
        self.panes: list[Pane] = []
        self.active = 0
        self.paused = False
        self.everything = False
        """Whether rows of the system are shown, too."""
        self.notice = ""
        self.helping = False
        self._asks = Asks.NOTHING
        self._number = 0
        self._answered = True
        self._base = self._view()
        self._first = place
        self.reader = Reader(cli.store.path, self._from_reader)

    def _view(self) -> View:
        given = self.cli.view
        return given._replace(format=Format.TABLE, terminal=True, remark=None, nothing=None)

    def compose(self) -> ComposeResult:
        """The one widget."""
        yield self.canvas

    def on_mount(self) -> None:
        """Show the skeleton; the store is opened by the reader's thread."""
        self.screen.styles.background = self.theme_of_lines.background
        self.canvas.focus()
        self.reader.start()
        self.go(self._first)
        self.set_interval(self.every, self._look, name="looks")

    # Places

    def go(self, place: Place) -> None:
        """Show a place, and remember it."""
        self.places = [*self.places[: self.at + 1], place]
        self.at = len(self.places) - 1
        self._enter()

    def _enter(self) -> None:
        place = self.places[self.at]
        self.spec = spec_of(place.screen)
        self.panes = [(spec.pane or Pane)(spec, place, self._base) for spec in self.spec.panes]
        self._follow()
        self.active = 0
        self.notice = ""
        self.reader.forget()
        self._look()
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

    def _look(self) -> None:
        if self.paused or self.reader.busy:
            return  # a slow look skips the next
        for pane in self.panes:
            self._read(pane)

    def _read(self, pane: Pane) -> None:
        if not pane.empty:
            self._number += 1
            self.reader.ask(Asked(pane.look, pane.place, self.everything, self._number))

    def _follow(self) -> None:
        """Show in the panes that follow the first one's cursor what it is on."""
        row = self.panes[0].row()
        for pane in self.panes[1:]:
            of_row = pane.spec.of_row
            if of_row is not None and pane.show(None if row is None else of_row(row)):
                self._read(pane)

    def _from_reader(self, batch: Batch) -> None:
        self.call_from_thread(self._take, batch)

    def _take(self, batch: Batch) -> None:
        for pane in self.panes:
            if pane.look is batch.asked.look and pane.place == batch.asked.place:
                pane.take(batch)
        self.draw()

    # Drawing

    def draw(self) -> None:
        """Draw the screen as it is now."""
        self._follow()
        size = self.size
        if size.width < _LEAST_WIDTH or size.height < _LEAST_HEIGHT:
            text = f"rmqctl console needs {_LEAST_WIDTH}x{_LEAST_HEIGHT} cells"
            lines = [text_line(line) for line in wrapped(text, max(1, size.width))]
            lines += [text_line("")] * (size.height - len(lines))
            self.canvas.show([cut_line(line, size.width) for line in lines[: size.height]])
            return
        self.canvas.show(self.lines(size.width, size.height))

    def lines(self, width: int, height: int) -> list[Line]:
        """All lines of the screen."""
        head = self._head(width)
        foot = self._foot(width)
        room = height - len(head) - len(foot)
        body = self._help(width, room) if self.helping else self._body(width, room)
        return [*head, *body, *foot]

    def _head(self, width: int) -> list[Line]:
        clock = time.strftime("%H:%M:%S")
        store = str(self.cli.store.path)
        left = [Span(" rmqctl", Role.TITLE), *text_line(f"  {store}", Role.TEXT)]
        right = [Span("READ ONLY", Role.GOOD), Span(f"  {clock} ", Role.DIM)]
        title = self.spec.title(self.place)
        state = "paused" if self.paused else f"every {self.every:g} s"
        crumbs = [*text_line(f" {title}", Role.TITLE), Span(f"   {self.pane.count_text()}")]
        age = [Span(f"{state}   look took {self.pane.took_ms} ms ", Role.DIM)]
        rule = [Span("\u2500" * width, Role.DIM)]
        return [spread(left, right, width), spread(crumbs, age, width), rule]

    def _body(self, width: int, room: int) -> list[Line]:
        found: list[Line] = []
        for box in boxes([pane.spec for pane in self.panes], width, room):
            parts = [
                self.panes[n].lines(
                    wide, box.height, active=n == self.active, titled=len(self.panes) > 1
                )
                for n, wide in box.panes
            ]
            found += beside(parts)
        return found

    def _foot(self, width: int) -> list[Line]:
        rule = cut_line([Span("\u2500" * width, Role.DIM)], width)
        command = text_line(f" = {self.pane.command()}", Role.TEXT)
        keys: Line = [Span(" ")]
        if self.prompt is not None:
            keys = self.prompt.line()
        elif self.notice:
            keys = text_line(f" {self.notice}", Role.WARN)
        else:
            for name in ("open", "find", "go_to", "sort", "mark", "copy_command", "help", "quit"):
                key = next(key for key in keys_of(self.place.screen) if key.action == name)
                keys += [Span(key.label, Role.KEY), Span(f" {key.action.replace('_', ' ')}  ")]
        return [rule, cut_line(command, width), cut_line(keys, width)]

    def _help(self, width: int, room: int) -> list[Line]:
        lines: list[Line] = [text_line(" Keys of this screen (esc closes)", Role.HEAD)]
        lines += [
            [Span(f"  {key.label:<8}", Role.KEY), Span(key.help)]
            for key in keys_of(self.place.screen)
        ]
        lines += [text_line("")] * (room - len(lines))
        return [cut_line(line, width) for line in lines[:room]]

    # Events

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size."""
        if self.panes:
            self.draw()

    def on_key(self, event: KeyEvent) -> None:
        """Do what the table of keys says."""
        if self.prompt is not None:
            event.stop()
            self._prompt_key(self.prompt, event)
            self.draw()
            return
        action = action_of(event.key, self.place.screen)
        if action is not None:
            event.stop()
            self.notice = ""
            getattr(self, f"do_{action}")()
            self.draw()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move down."""
        self.pane.move(3)
        self.draw()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move up."""
        self.pane.move(-3)
        self.draw()

    def on_paste(self, event: Paste) -> None:
        """Insert what was pasted, if something is asked."""
        if self.prompt is not None:
            self.prompt.insert(event.text)
            self._typed(self.prompt)
            self.draw()

    # Prompt

    def _ask(self, asks: Asks, label: str, text: str = "") -> None:
        self._asks, self.prompt = asks, Prompt(label, text)

    def _prompt_key(self, prompt: Prompt, event: KeyEvent) -> None:
        if event.key in ("escape", "ctrl+c"):
            self.prompt = None
        elif event.key == "enter":
            self.prompt = None
            if self._asks is Asks.WHERE_TO and prompt.text.strip():
                self._command(prompt.text.strip())
        elif prompt.key(event.key, event.character):
            self._typed(prompt)

    def _typed(self, prompt: Prompt) -> None:
        """Filter while it is typed."""
        if self._asks is Asks.WHERE_TO:
            return
        excludes = prompt.text.startswith("!")
        fuzzy = self._asks is Asks.LETTERS
        self.pane.set_filter(Filter(prompt.text.removeprefix("!"), excludes, fuzzy))

    def _command(self, text: str) -> None:
        import shlex

        from rmqctl.errors import CliError

        word, _, rest = text.partition(" ")
        try:
            if word in ("q", "quit"):
                self.exit(0)
            elif word == "where":
                self.pane.set_where(rest.strip() or None)
            elif word == "sort":
                self.pane.sort_by(rest.strip().lstrip("+-"), descending=rest.strip()[:1] == "-")
            else:
                self.go(place_named(shlex.split(text)))
        except (ValueError, CliError) as error:
            self.notice = str(error)

    # What keys do

    def do_down(self) -> None:
        """Move the cursor."""
        self.pane.move(1)

    def do_up(self) -> None:
        """Move the cursor."""
        self.pane.move(-1)

    def do_first(self) -> None:
        """Move the cursor."""
        self.pane.move_to_end(last=False)

    def do_last(self) -> None:
        """Move the cursor."""
        self.pane.move_to_end(last=True)

    def do_page_down(self) -> None:
        """Move the cursor."""
        self.pane.move(max(1, self.pane.height // 2))

    def do_page_up(self) -> None:
        """Move the cursor."""
        self.pane.move(-max(1, self.pane.height // 2))

    def do_open(self) -> None:
        """Go where the row leads."""
        row = self.pane.row()
        if row is not None and self.pane.look.opens is not None:
            place = self.pane.look.opens(row)
            if place is not None:
                self.go(place)

    def do_back(self) -> None:
        """Close the help, drop the filter, or go up."""
        if self.helping:
            self.helping = False
        elif self.pane.table.filter:
            self.pane.set_filter(Filter())
        elif (parent := TABLE[self.place.screen].parent) is not None:
            self.go(Place(parent))

    def do_last_place(self) -> None:
        """Go to the place before."""
        if self.at > 0:
            self.go(self.places[self.at - 1])

    def do_history_back(self) -> None:
        """Go back."""
        if self.at > 0:
            self.at -= 1
            self._enter()

    def do_history_forward(self) -> None:
        """Go forward."""
        if self.at + 1 < len(self.places):
            self.at += 1
            self._enter()

    def do_next_pane(self) -> None:
        """Move the cursor to the next pane."""
        self.active = (self.active + 1) % len(self.panes)

    def do_go_to(self) -> None:
        """Ask where to go."""
        self._ask(Asks.WHERE_TO, ":")

    def do_find(self) -> None:
        """Ask for a text."""
        self._ask(Asks.TEXT, "/", self.pane.table.filter.text)

    def do_find_fuzzy(self) -> None:
        """Ask for letters."""
        self._ask(Asks.LETTERS, "~", self.pane.table.filter.text)

    def do_sort(self) -> None:
        """Sort by the next column."""
        self.pane.next_sort()

    def do_reverse(self) -> None:
        """Sort the other way."""
        self.pane.reverse()

    def do_wide(self) -> None:
        """Show all columns, or the usual ones."""
        self.pane.set_wide(not self.pane.wide)

    def do_mark(self) -> None:
        """Mark the row."""
        self.pane.mark()
        self.pane.move(1)

    def do_mark_all(self) -> None:
        """Mark all rows."""
        self.pane.mark_all()

    def do_pause(self) -> None:
        """Pause, or go on."""
        self.paused = not self.paused

    def do_look_now(self) -> None:
        """Look now."""
        paused, self.paused = self.paused, False
        self._look()
        self.paused = paused

    def do_copy_cell(self) -> None:
        """Copy the row's name."""
        key = self.pane.cursor_key()
        if key:
            self._copy(str(key[0]))

    def do_copy_command(self) -> None:
        """Copy the command."""
        self._copy(self.pane.command())

    def _copy(self, text: str) -> None:
        self.copy_to_clipboard(text)
        self.notice = f"copied: {text}"

    def do_help(self) -> None:
        """Show the keys, or hide them."""
        self.helping = not self.helping

    def do_quit(self) -> None:
        """End."""
        self.exit(0)

    def do_suspend(self) -> None:
        """Suspend the process, as a shell does."""
        self.action_suspend_process()


def run_console(cli: "Cli", place: Place, every: float, theme: str, *, mouse: bool) -> int:
    """Run the console until it is ended; returns the exit code."""
    app = ConsoleApp(cli, place, every, Theme(theme, color=cli.colored(sys.stdout)))
    try:
        code: Any = app.run(mouse=mouse)
    finally:
        app.reader.end(2)
    return code if isinstance(code, int) else app.return_code or 0
