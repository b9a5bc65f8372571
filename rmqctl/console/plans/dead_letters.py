"""Dead letters: sending them again, acknowledging them, and taking the marks off."""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.admin.changes import Change
from rmqctl.console.looks.look import Progress, typed_command
from rmqctl.console.prompt import Prompt
from rmqctl.errors import NotFound
from storage.counted import counted
from storage.parse.durations import parse_rate

from .questions import Question, Questions
from .wish import Making, Stopped, Wish

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import MessageSelection
    from rmqctl.produce.rate_limit import Pace

_KEY: Final = ("queue_offset", "msg_id")
_WHERE: Final = (
    "origin: to the original topic, whose other groups get them, too; retry: to this group only; "
    "or the name of a topic. A rate may follow: origin 50/s"
)


class Letters(NamedTuple):
    """Some dead letters of a group: by id, those of a value such as a reason, or all unhandled."""

    group: str
    ids: tuple[str, ...] = ()
    by: str | None = None
    value: str | None = None
    zone: tzinfo | None = None
    unhandled: bool = False
    """Whether the ids are those of marks: what was handled since is not meant."""

    def selection(self, making: Making) -> "MessageSelection":
        """The selection of the functions of rmqctl.admin. NotFound for an unknown group or id,
        and where all that were marked are handled."""
        from rmqctl.admin.dead_letters import in_group
        from rmqctl.admin.message_filter import MessageFilter, MessageSelection

        if self.by is None:
            return MessageSelection(self._left(making) if self.unhandled else self.ids)
        test = in_group(self.by, self.value, self.zone, making.now_ms)
        return MessageSelection(wanted=MessageFilter(predicate=test))

    def _left(self, making: Making) -> tuple[str, ...]:
        """The ids of those that are not handled; a sentence has the number of the others."""
        from rmqctl.admin.dead_letters.dead_letters import DeadLetters, place_of

        letters = DeadLetters(making.view, making.broker, self.group)
        left = []
        for done, one in enumerate(self.ids):
            making.advance(Progress(done, len(self.ids), "messages"))
            if not letters.is_handled(place_of(letters.find(one))):
                left.append(one)
        gone = len(self.ids) - len(left)
        if not left:
            raise NotFound("all marked dead letters were handled meanwhile")
        if gone:
            verb = "was handled meanwhile and is" if gone == 1 else "were handled meanwhile and are"
            making.warn(f"{gone} of the marked dead letters {verb} left out")
        return tuple(left)

    def words(self, change: Change | None = None) -> tuple[str, ...]:
        """The arguments that select the same: ids, or ``--all``."""
        if self.by is None and (change is None or not self.unhandled):
            return self.ids or ("--all",)
        if change is None:
            return ("OFFSET...",)
        return tuple(str(row.queue_offset) for row in change.plan)


class Redrive(Questions):
    """Where dead letters are sent."""

    title = "redrive"

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self.subject = letters.group
        super().__init__([Question(Prompt("to: ", "origin"), _WHERE)])

    def check(self, number: int) -> None:
        """See Questions."""
        target, rate = self._answer()
        if not target:
            raise ValueError(f"say where to: {_WHERE}")
        if rate:
            parse_rate(rate)

    def _answer(self) -> tuple[str, str]:
        """Where to, and the rate as it is typed."""
        words = self.questions[0].prompt.text.split()
        return (" ".join(words[:-1]), words[-1]) if len(words) > 1 else ("".join(words), "")

    def command(self) -> str:
        """See Questions."""
        return typed_command(self._words(*self._answer(), None), [self.subject])

    def _words(self, target: str, rate: str, change: Change | None) -> tuple[str, ...]:
        to = () if target in ("origin", "") else ("--target", target)
        paced = ("--rate", rate) if rate else ()
        return ("dlq", "redrive", self._letters.group, *self._letters.words(change), *to, *paced)

    def wish(self) -> Wish:
        """The redrive."""
        letters, (target, rate) = self._letters, self._answer()
        pace = _Pace(parse_rate(rate) if rate else None)

        def make(making: Making) -> Change:
            from rmqctl.admin import dead_letters

            return dead_letters.redrive(
                making.view,
                making.broker,
                letters.group,
                letters.selection(making),
                target=target,
                writing=dead_letters.Writing(making.java_check, pace=pace.wait),
                now_ms=making.now_ms,
                warn=making.warn,
                left_out=making.warn,
                on_progress=_told(making),
            )

        return Wish(
            f"redrive to {target}{f' at {rate}' if rate else ''}",
            "dlq redrive",
            self._words(target, rate, None),
            make,
            letters.group,
            "the group",
            _KEY,
            words_of=lambda change: self._words(target, rate, change),
            after=_left,
            stopped=_goes_on,
            hurry=pace.end,
        )


def _told(making: Making) -> Callable[[int, int], object]:
    """Says how many dead letters were looked at."""
    return lambda done, total: making.advance(Progress(done, total, "messages"))


class _Pace:
    """Waits before each message as long as a rate demands."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._pace: Pace | None = None
        self._ends = threading.Event()

    def wait(self) -> None:
        """Wait until the next message may be sent. Raises Stopped once :meth:`end` is called."""
        from rmqctl.produce.rate_limit import Pace

        if self._pace is None:  # it begins with the first message, not with the plan
            self._pace = Pace(self._rate, sleep=self._sleep)
        self._pace.portion(1)
        self._sleep(0)

    def _sleep(self, seconds: float) -> None:
        if self._ends.wait(seconds):  # not at the due time, which may be centuries away
            raise Stopped

    def end(self) -> None:
        """End the wait."""
        self._ends.set()


def _goes_on(change: Any) -> Iterable[str]:
    """What goes on with a redrive that was stopped, or has failed."""
    task = change.task
    yield f"'rmqctl dlq redrive {task.group} --resume {task.run}' goes on"


def _left(change: object) -> Iterable[str]:
    """What a redrive did not try, after an error."""
    left = getattr(change, "left", 0)
    if left:
        task = change.task  # type: ignore[attr-defined]
        yield (
            f"{counted(left, 'dead letter')} not tried; 'rmqctl dlq redrive "
            f"{task.group} --resume {task.run}' goes on"
        )


def acknowledge(letters: Letters) -> Wish:
    """Mark dead letters as handled."""

    def make(making: Making) -> Change:
        from rmqctl.admin import dead_letters

        return dead_letters.acknowledge(
            making.view,
            making.broker,
            letters.group,
            letters.selection(making),
            left_out=making.warn,
            java_check=making.java_check,
            on_progress=_told(making),
        )

    def words(change: Change | None) -> tuple[str, ...]:
        return ("dlq", "ack", letters.group, *letters.words(change))

    def undo(change_id: int | None) -> Wish | None:
        return None if change_id is None else undo_acknowledge(letters.group, change_id)

    return _marks("acknowledge", words, make, letters.group, undo)


def undo_acknowledge(group: str, change_id: int) -> Wish:
    """Take the marks of an acknowledgement off."""

    def make(making: Making) -> Change:
        from rmqctl.admin import dead_letters

        return dead_letters.undo_acknowledge(
            making.view, making.broker, group, change_id, java_check=making.java_check
        )

    def words(change: Change | None) -> tuple[str, ...]:
        offsets = () if change is None else (str(row.queue_offset) for row in change.plan)
        return ("dlq", "ack", group, *offsets, "--undo")

    return _marks(f"undo change {change_id}", words, make, group, None)


def _marks(
    title: str,
    words: Callable[[Change | None], tuple[str, ...]],
    make: Callable[[Making], Change],
    group: str,
    undo: "Callable[[int | None], Wish | None] | None",
) -> Wish:
    return Wish(
        title,
        "dlq ack",
        words(None),
        make,
        group,
        "the group",
        _KEY,
        words_of=words,
        undo=undo,
    )


def ids_of(rows: Sequence[Any]) -> tuple[str, ...]:
    """The queue offsets of rows of dead letters."""
    return tuple(str(row.queue_offset) for row in rows if hasattr(row, "handled"))
