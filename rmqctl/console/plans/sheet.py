"""The screen of one change: questions, the plan, the reason, the typed name, and what was done."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from rmqctl.console.faults import sentence_of
from rmqctl.console.keys import key_of
from rmqctl.console.looks.look import Look, Place, Progress
from rmqctl.console.panes import Pane
from rmqctl.console.prompt import Prompt
from rmqctl.console.specs import PaneSpec
from rmqctl.errors import CliError
from rmqctl.output.view import View

from .planning import Plan
from .questions import Questions
from .wish import Wish, words_of
from .work import Done

SCREEN: Final = "plan"
"""The name of this screen in the table of keys."""
_MOVES: Final = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}
"""Keys that move the cursor of the plan while something is typed."""


class Stage(Enum):
    """How far a change is."""

    QUESTIONS = "where to"
    READING = "making the plan"
    PLAN = "plan"
    REASON = "reason"
    NAME = "name"
    APPLYING = "being done"
    DONE = "done"


class Calls(NamedTuple):
    """What a sheet asks for."""

    plan: Callable[[Wish], object]
    """Makes a plan; it comes with :meth:`Sheet.take_plan`."""
    apply: Callable[[Plan, str], object]
    """Carries a plan out, for a reason; what is done comes with :meth:`Sheet.take_done`."""
    stop: Callable[[], object]
    """Ends what is being carried out, before its next row."""
    close: Callable[[], object]
    copy: Callable[[str], object]
    quit: Callable[[], object]


class Sheet:
    """One change, from the wish to its result. No key but Enter after the typed name does it."""

    def __init__(
        self,
        asked: "Wish | Questions",
        place: Place,
        view: View,
        calls: Calls,
        reason: str = "",
    ) -> None:
        """``view`` is how rows are shown; ``reason`` is the one that the settings give."""
        self.questions = asked if isinstance(asked, Questions) else None
        self.wish: Wish | None = None
        self.place = place
        self._view = view._replace(columns=(), sort=(), where=None, limit=None)
        self.zone = view.zone
        self._calls = calls
        self.reason = Prompt("", reason)
        self.name = Prompt("")
        self.plan: Plan | None = None
        self.progress: Progress | None = None
        """How far the plan is that is being made."""
        self.pane: Pane | None = None
        self.done = Done()
        self.count = self.refused = 0
        """Result rows, and those of them that were not done."""
        self.banner = ""
        """Why the plan was made anew."""
        self.problem = ""
        """What is wrong with what was typed."""
        self.helping = False
        if isinstance(asked, Questions):
            self.stage = Stage.QUESTIONS
        else:
            self._wanted(asked)

    # From the threads

    def take_plan(self, plan: Plan) -> None:
        """Show a plan."""
        if plan.wish is not self.wish or self.stage is not Stage.READING:
            return
        if plan.change is not None and plan.wish.fitted is not None:
            plan = plan._replace(wish=plan.wish.fitted(plan.change))
            self.wish = plan.wish
        self.plan = plan
        if plan.error is not None and self.questions is not None:
            self.stage, self.problem = Stage.QUESTIONS, plan.error
            return
        self.stage = Stage.PLAN
        self.name = Prompt("")
        change = plan.change
        if change is not None:
            self._show(change.row_type, plan.wish, done=False)
            self._fill(list(change.plan), plan.made_ms)

    def take_done(self, done: Done) -> None:
        """Show what has been done so far. A plan of which nothing was done is made anew."""
        plan = self.plan
        if self.stage is not Stage.APPLYING or plan is None or plan.change is None:
            return
        if done.error is not None and not done.rows and not self.count:
            what = "nothing was changed" if done.untouched else "it failed, perhaps halfway"
            self.banner = f"{what}: {done.error}"
            self._wanted(plan.wish)
            return
        if not self.count:
            self._show(plan.change.result_type, plan.wish, done=True)
        self.count += len(done.rows)
        self.refused += sum(getattr(row, "applied", None) is False for row in done.rows)
        assert self.pane is not None
        self.pane.table.add_rows(done.rows)
        self.pane.loading = not done.complete
        self.done = done
        if done.complete:
            self.stage = Stage.DONE

    def _wanted(self, wish: Wish) -> None:
        self.wish, self.stage, self.progress = wish, Stage.READING, None
        self.problem = ""
        self._calls.plan(wish)

    def _show(self, row_type: type, wish: Wish, *, done: bool) -> None:
        """An empty pane for rows of a type."""
        look = Look("plan", row_type, lambda source, place: (), lambda place: wish.words, wish.key)
        columns = (*wish.columns, "applied") if done and wish.columns else wish.columns
        place = self.place._replace(screen=SCREEN)
        self.pane = Pane(PaneSpec(look), place, self._view._replace(columns=columns))

    def _fill(self, rows: list[object], made_ms: int) -> None:
        assert self.pane is not None
        self.pane.table.set_now(made_ms)
        self.pane.table.set_rows(rows)
        self.pane.loading, self.pane.as_of = False, made_ms

    # Words

    @property
    def title(self) -> str:
        """What the change does."""
        if self.wish is not None:
            return self.wish.title
        assert self.questions is not None
        return self.questions.title

    @property
    def subject(self) -> str:
        """The name of what is changed."""
        if self.wish is not None:
            return self.wish.name
        assert self.questions is not None
        return self.questions.subject

    def command(self) -> str:
        """The command that does the same."""
        if self.wish is None or self.stage is Stage.QUESTIONS:
            assert self.questions is not None
            return self.questions.command()
        change = None if self.plan is None else self.plan.change
        return self.wish.command_line(words_of(self.wish, change), self.reason.text)

    # Keys

    def key(self, name: str, character: str | None) -> None:
        """Do what a key does."""
        if self.helping:
            self.helping = False
            return
        typed = self._typed_into()
        if typed is None:
            found = key_of(name, SCREEN)
            self._do(None if found is None else found.action)
        elif name in _MOVES and self.pane is not None and self.stage is not Stage.QUESTIONS:
            self.pane.move(_MOVES[name])
        elif name == "ctrl+c":
            self._calls.close()
        elif name == "escape":
            self._back()
        elif name == "enter":
            self._enter()
        elif self.stage is Stage.QUESTIONS and self.questions is not None:
            self.problem = ""
            self.questions.key(name, character)
        elif typed.key(name, character):
            self.problem = ""

    def paste(self, text: str) -> None:
        """Insert what was pasted where something is typed. It never counts as Enter."""
        typed = self._typed_into()
        if typed is not None:
            typed.insert(text)
            self.problem = ""

    def _typed_into(self) -> Prompt | None:
        match self.stage:
            case Stage.QUESTIONS:
                return None if self.questions is None else self.questions.prompt
            case Stage.REASON:
                return self.reason
            case Stage.NAME:
                return self.name
        return None

    def _enter(self) -> None:
        """Go on from what has been typed."""
        if self.stage is Stage.QUESTIONS and self.questions is not None:
            try:
                wish = self.questions.answered()
            except (ValueError, CliError) as error:
                self.problem = str(error)
                return
            except OSError as error:
                self.problem = sentence_of(error)
                return
            if wish is not None:
                self.banner = ""
                self._wanted(wish)
        elif self.stage is Stage.REASON:
            self.stage = Stage.NAME
        elif self.stage is Stage.NAME:
            self._apply()

    def _apply(self) -> None:
        """Carry the plan out, if exactly the name has been typed."""
        plan = self.plan
        if plan is None or self.wish is None or not plan.can_be_done:
            return
        name = self.name_to_type()
        if self.name.text != name:
            self.problem = f"{self.name.text!r} is not {name!r}: nothing was changed"
            return
        self.stage, self.banner, self.problem = Stage.APPLYING, "", ""
        self.count = self.refused = 0
        self._calls.apply(plan, self.reason.text)

    def name_to_type(self) -> str:
        """What has to be typed to carry the plan out."""
        assert self.plan is not None
        assert self.plan.change is not None
        return self.plan.change.confirm_name or self.plan.wish.name

    def _back(self) -> None:
        self.problem = ""
        if self.stage is Stage.NAME:
            self.stage, self.name = Stage.REASON, Prompt("")
        elif self.stage is Stage.REASON:
            self.stage = Stage.PLAN
        elif self.stage is Stage.QUESTIONS and self.questions is not None and self.questions.back():
            return
        elif self.stage is Stage.PLAN and self.questions is not None:
            self.stage, self.banner = Stage.QUESTIONS, ""
        elif self.stage is not Stage.APPLYING:
            self._calls.close()

    def _do(self, action: str | None) -> None:
        pane = self.pane
        match action:
            case "back":
                self._back()
            case "open" if self.stage is Stage.PLAN:
                if self.plan is not None and self.plan.can_be_done:
                    self.stage = Stage.REASON
            case "open" if self.stage is Stage.DONE:
                self._calls.close()
            case "undo" if self.stage is Stage.DONE:
                self._undo()
            case "stop" if self.stage is Stage.APPLYING:
                self._calls.stop()
            case "quit":
                self._calls.quit()
            case "help":
                self.helping = True
            case "copy_command":
                self._calls.copy(self.command())
            case "look_now" if self.stage is Stage.PLAN and self.wish is not None:
                self.banner = ""
                self._wanted(self.wish)
            case str() if self.stage is Stage.PLAN and action in self.others():
                self.banner = ""
                self._wanted(self.others()[action]())
            case _ if pane is not None:
                move_pane(pane, action)

    def others(self) -> Mapping[str, Callable[[], Wish]]:
        """What keys change the plan to, by their actions."""
        return {} if self.wish is None else self.wish.others

    def _undo(self) -> None:
        wish = self.undo_wish()
        if wish is not None:
            self.questions, self.plan, self.pane = None, None, None
            self.banner = ""
            self.reason = Prompt("")
            self._wanted(wish)

    def undo_wish(self) -> Wish | None:
        """What takes the change back that was done; None if nothing does."""
        if self.wish is None or self.wish.undo is None or self.stage is not Stage.DONE:
            return None
        return self.wish.undo(self.done.change_id)


def move_pane(pane: Pane, action: str | None) -> None:
    """Do what a key does that moves a cursor or changes the columns."""
    half = max(1, pane.height // 2)
    match action:
        case "down":
            pane.move(1)
        case "up":
            pane.move(-1)
        case "page_down":
            pane.move(half)
        case "page_up":
            pane.move(-half)
        case "first" | "last":
            pane.move_to_end(last=action == "last")
        case "wide":
            pane.set_wide(not pane.wide)
