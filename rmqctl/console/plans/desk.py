"""What the app calls for changes: whether they are on, the screen of one, and its threads."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rmqctl.console.drawing import Line, Role, Span
from rmqctl.console.keys import Key, keys_of
from rmqctl.console.looks.look import Place, Progress
from rmqctl.errors import CliError

from .allowed import forbidden
from .offered import OF_STORE, OFFERED, SHOWN, Here

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from rmqctl.console.panes import Pane
    from rmqctl.console.reading import Reader

    from .planning import Plan
    from .sheet import Sheet
    from .wish import Wish
    from .work import Done, Work

CHANGING: Final = frozenset({*OFFERED, *SHOWN})
"""Actions of keys that this module does."""
_TOLD_S: Final = 0.1
"""How often a plan that is being made says how far it is."""


class Desk:
    """Changes of one console."""

    def __init__(
        self,
        cli: "Cli",
        reader: "Reader",
        *,
        from_thread: Callable[..., Any],
        walker: "Callable[[], Reader | None]" = lambda: None,
        changed: Callable[[], object],
        copy: Callable[[str], object],
        quit_: Callable[[], object],
    ) -> None:
        """``from_thread`` has a function called later by the thread that draws; it does not wait.
        ``walker`` is the thread of what may take long. ``changed`` draws."""
        self._cli = cli
        self._reader = reader
        self._from_thread = from_thread
        self._walker = walker
        self._changed = changed
        self._copy = copy
        self._quit = quit_
        self._work: Work | None = None
        self._meant: Sequence[Pane] = ()
        """The panes of whose rows the change is; their marks end with it."""
        self._unwanted = threading.Event()
        """Set once the plan that is being made is not wanted any more."""
        self.writes = False
        """Whether changes are on."""
        self.sheet: Sheet | None = None
        """The change whose screen is shown."""
        self.then: Callable[[], object] | None = None
        """Called once what is being carried out has been done."""
        self.command: str | None = None
        """The command that a key would have done; shown until the next key."""

    # Whether changes are on

    @property
    def store_name(self) -> str:
        """What is typed to turn changes on: the name of the store's folder."""
        return self._cli.store.path.name

    def turn_on(self, name: str) -> str:
        """Turn changes on, if the name is that of the store; a sentence about it."""
        reason = forbidden(self._cli)
        if reason is not None:
            return reason
        if name != self.store_name:
            given = f"{name!r} is not the store's name; " if name else ""
            return f"{given}type ':write {self.store_name}' to turn changes on"
        self.writes = True
        return "changes are on; ':readonly' turns them off. Each is a plan first"

    def turn_off(self) -> str:
        """Turn changes off; a sentence about it."""
        self.writes = False
        return "read only"

    def state(self) -> Line:
        """The words of the header."""
        if self.writes:
            return [Span(" CHANGES ON ", Role.WRITE)]
        return [Span("READ ONLY", Role.GOOD)]

    def key_spans(self, screen: str) -> Line:
        """The changing keys of a screen, for the last line."""
        line: Line = []
        for key in keys_of(screen):
            if key.changes and key.action != "undo":
                word = key.action.replace("_", " ")
                line += [Span(key.label, self._role(Role.KEY))]
                line += [Span(f" {word}...{self._off()}  ", self._role(Role.TEXT))]
        return line

    def help_line(self, key: Key) -> Line:
        """A key, for the help."""
        if not key.changes:
            return [Span(f"  {key.label:<8}", Role.KEY), Span(key.help)]
        label, text = f"  {key.label:<8}", f"{key.help}{self._off()}"
        return [Span(label, self._role(Role.KEY)), Span(text, self._role(Role.TEXT))]

    def _role(self, role: Role) -> Role:
        return role if self.writes else Role.DIM

    def _off(self) -> str:
        return "" if self.writes else " (:write)"

    # Keys

    def scroll(self, by: int) -> bool:
        """Move the cursor of the plan, if one is shown."""
        if self.sheet is None:
            return False
        if self.sheet.pane is not None:
            self.sheet.pane.move(by)
            self._changed()
        return True

    def _here(self, action: str, place: Place, pane: "Pane", panes: "Sequence[Pane]") -> Here:
        return Here(place, pane, self._cli.zone, self.store_name, action, panes)

    def why_off(self, action: str, place: Place, pane: "Pane", panes: "Sequence[Pane]" = ()) -> str:
        """Why a changing key does nothing here; empty if it opens a plan, or shows a command.
        ``panes`` are those of the screen, ``pane`` is the one with the cursor."""
        here = self._here(action, place, pane, panes)
        try:
            if action in SHOWN:
                SHOWN[action](here)
                return ""
            OFFERED[action](here)
            if self.writes:
                return ""
            return forbidden(self._cli) or f"read only (:write {self.store_name})"
        except (ValueError, CliError) as error:
            return str(error)

    def begin(self, action: str, place: Place, pane: "Pane", panes: "Sequence[Pane]" = ()) -> str:
        """Open the screen of a change, or say the command that does it; gives a sentence."""
        here = self._here(action, place, pane, panes)
        self.command = None
        try:
            if action in SHOWN:
                self.command = SHOWN[action](here)
                return "the console does not delete; the command above does (Y copies it)"
            asked = OFFERED[action](here)
        except (ValueError, CliError) as error:
            return str(error)
        from .sheet import Calls, Sheet

        quiet = Calls(*(lambda *_: None for _ in Calls._fields))  # only its command is read
        sheet = Sheet(asked, place, self._cli.view, quiet, self._cli.reason or "")
        if not self.writes:
            self.command = sheet.command()
            return f"read only (:write {self.store_name}); the command above does it (Y copies it)"
        self.open(asked, place)
        self._meant = () if action in OF_STORE else (pane, *panes)
        return ""

    def open(self, asked: Any, place: Place) -> None:
        """Open the screen of a change."""
        from rmqctl.output.view import Format

        from .sheet import Calls, Sheet

        self._meant = ()
        calls = Calls(self._plan, self._apply, self._stop, self._close, self._copy, self._quit)
        view = self._cli.view._replace(
            format=Format.TABLE, terminal=True, remark=None, nothing=None
        )
        self.sheet = Sheet(asked, place, view, calls, self._cli.reason or "")

    # What a sheet asks for

    def _plan(self, wish: "Wish") -> None:
        from .planning import make_plan
        from .wish import Stopped

        self._unwanted.set()
        unwanted = self._unwanted = threading.Event()
        told = 0.0

        def advance(progress: Progress) -> None:
            nonlocal told
            if unwanted.is_set():
                raise Stopped
            if time.monotonic() - told > _TOLD_S:
                told = time.monotonic()
                self._from_thread(self._take_progress, wish, progress)

        def answer(found: "Plan | Exception") -> None:
            plan = _failed(found, wish) if isinstance(found, Exception) else found
            self._from_thread(self._take_plan, plan)

        self._reader.call(lambda source: make_plan(source._replace(advance=advance), wish), answer)

    def _take_progress(self, wish: "Wish", progress: Progress) -> None:
        if self.sheet is not None and self.sheet.wish is wish:
            self.sheet.progress = progress
            self._changed()

    def _take_plan(self, plan: "Plan") -> None:
        if self.sheet is not None:
            self.sheet.take_plan(plan)
            self._changed()

    def _apply(self, plan: "Plan", reason: str) -> None:
        from rmqctl.admin.changes import journal_note
        from rmqctl.console.opened import refuse_another

        from .work import Work

        assert plan.change is not None
        text = reason.encode("utf-8", "replace").decode()
        note = journal_note(plan.wish.command, reason=text or None)
        self._work = Work(
            plan.change,
            note,
            lambda done: self._from_thread(self._take_done, done),
            plan.wish.hurry,
            lambda: refuse_another(self._reader.path, plan.store),
        )

    def _stop(self) -> None:
        if self._work is not None:
            self._work.stop_soon()

    def _take_done(self, done: "Done") -> None:
        if done.complete:
            self._work = None
            for pane in () if done.untouched else self._meant:
                pane.table.marked.clear()
            if self.sheet is not None and self.sheet.wish and self.sheet.wish.replaces_files:
                for reader in filter(None, (self._reader, self._walker())):
                    reader.reopen()
        if self.sheet is not None:
            self.sheet.take_done(done)
            self._changed()
        if done.complete and self.then is not None:
            then, self.then = self.then, None
            then()

    def _close(self) -> None:
        self._unwanted.set()
        self.sheet = None

    @property
    def applying(self) -> bool:
        """Whether a change is being carried out."""
        return self._work is not None

    def end(self) -> None:
        """End what is being carried out before its next row, and wait for it."""
        self._unwanted.set()
        if self._work is not None:
            self._work.stop()


def _failed(error: Exception, wish: "Wish") -> "Plan":
    """The plan of a store that cannot be opened."""
    from rmqctl.console.faults import sentence_of
    from storage.clock import now_ms

    from .planning import Plan

    return Plan(wish, now_ms(), None, error=sentence_of(error))
