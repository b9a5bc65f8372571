"""Moving offsets: the questions of a reset, and the undo of a change."""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.changes import Change
from rmqctl.console.looks.look import typed_command
from rmqctl.console.prompt import Prompt
from storage.read.by_time import Boundary

from .questions import Question, Questions
from .wish import Making, Wish

if TYPE_CHECKING:
    from rmqctl.admin.offsets.reset_targets import Destination

    from .timeline import Timeline

_KEY: Final = ("group", "topic", "queue_id")
_COLUMNS: Final = (
    *("topic", "queue_id", "old_offset", "new_offset", "move"),
    *("lag_old", "lag_new", "lands_on_timestamp", "note"),
)
_ALL: Final = "*"
_MINUTE_MS: Final = 60_000
_WHOSE: Final = "topics of the group: orders, orders:0,2-4 for some queues, * for all that it reads"
_WHERE: Final = (
    "a time (13:20, 2026-01-31 13:20, -15m, yesterday 18:00), earliest, latest, offset N, "
    "shift -N or shift N"
)


class _Goal(NamedTuple):
    """Where offsets are to go."""

    option: tuple[str, ...]
    """The option of ``offset reset``."""
    words: str
    """The same in words."""
    timestamp: int | None = None
    short: str = ""
    """The same in few words."""
    rule: Boundary = Boundary.LOWER
    """What a time means for a queue."""


class Reset(Questions):
    """Whose offsets go where: the questions of a reset of one group."""

    title = "reset"

    def __init__(self, group: str, topics: Sequence[str], zone: tzinfo | None, store: str) -> None:
        """``topics`` are the first answer, each as ``--topic`` takes it; none: all of them.
        ``store`` is the name of the store's folder."""
        self.group = self.subject = group
        self._zone = zone
        self._store = store
        super().__init__(
            [
                Question(Prompt(f"whose: {group} in ", " ".join(topics) or _ALL), _WHOSE),
                Question(Prompt("to: "), _WHERE),
            ]
        )

    def check(self, number: int) -> None:
        """See Questions."""
        if number == 0:
            self._topics()
        else:
            self._goal()

    def understood(self) -> str:
        """How the destination is read."""
        if self.at == 0 or not self._typed():
            return ""
        try:
            return f"that is {self._goal().words}"
        except ValueError:
            return ""

    def command(self) -> str:
        """The command, with TIME for a place that has not been typed."""
        try:
            option = self._goal().option
        except ValueError:
            option = ("--to-datetime", "TIME")
        return typed_command(self._words(option), [self.group])

    def wish(self) -> Wish:
        """The reset."""
        return self._wish(self._goal(), self._topics())

    def _wish(self, goal: _Goal, topics: Sequence[str]) -> Wish:
        from rmqctl.admin.offsets.queues import parse_topic_choice

        choices = [parse_topic_choice(text) for text in topics] or None

        def make(making: Making) -> Change:
            from rmqctl.admin.offsets.reset_change import reset

            return reset(
                making.view,
                making.broker,
                _destination(goal),
                groups=[self.group],
                topics=choices,
                now_ms=making.now_ms,
                warn=making.warn,
                java_check=making.java_check,
            )

        def picture(making: Making, change: Change) -> "Timeline | None":
            from .timeline import timeline

            if goal.timestamp is None:
                return None
            return timeline(making.view, change, goal.timestamp, making.now_ms)

        def about(making: Making, change: Change) -> Iterable[str]:
            from .pace import rule_sentence, sentences

            found = list(sentences(making, self.group, change))
            if goal.timestamp is not None:
                found.insert(0, rule_sentence(goal.timestamp, goal.rule, making.now_ms))
            if found:
                yield "; ".join(found)

        def other(changed: _Goal) -> Callable[[], Wish]:
            return lambda: self._wish(changed, topics)

        return Wish(
            f"reset to {goal.short or goal.words}",
            "offset reset",
            self._words(goal.option),
            make,
            self.group,
            "the group",
            _KEY,
            _COLUMNS,
            undo=lambda change_id: _undo_of(change_id, self.group, self._store),
            picture=picture,
            others={name: other(found) for name, found in _others(goal, self._zone).items()},
            about=about,
        )

    def _words(self, option: Sequence[str]) -> tuple[str, ...]:
        topics = [word for topic in self._given() for word in ("-t", topic)] or ["--all-topics"]
        return ("offset", "reset", self.group, *topics, *option)

    def _given(self) -> list[str]:
        text = self.questions[0].prompt.text.split()
        return [] if text == [_ALL] else text

    def _topics(self) -> list[str]:
        """The topics; none for all."""
        from rmqctl.admin.offsets.queues import parse_topic_choice

        given = self._given()
        if not self.questions[0].prompt.text.strip():
            raise ValueError("name topics, or type * for all that the group reads")
        for text in given:
            parse_topic_choice(text)
        return given

    def _typed(self) -> str:
        return self.questions[1].prompt.text.strip()

    def _goal(self) -> _Goal:
        return goal_of(self._typed(), self._zone)


def goal_of(text: str, zone: tzinfo | None, now_ms: int | None = None) -> _Goal:
    """Where offsets are to go. ValueError says what is possible."""
    from rmqctl.parse.offsets import parse_offset, parse_shift
    from storage.parse.times import read_time

    word, _, number = text.partition(" ")
    word, number = word.lower(), number.strip()
    if not text:
        raise ValueError(f"say where to: {_WHERE}")
    if text.lower() in ("earliest", "latest"):
        return _Goal((f"--to-{text.lower()}",), text.lower())
    if word == "offset":
        return _Goal(("--to-offset", str(parse_offset(number))), f"offset {parse_offset(number)}")
    if word == "shift":
        count = parse_shift(number)
        return _Goal((f"--shift-by={count}",), f"{abs(count)} {'back' if count < 0 else 'forward'}")
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    instant = read_time(text, now, zone)
    if instant.doubt is not None:
        raise ValueError(f"{instant.doubt.problem}; {instant.doubt.remedy}")
    return _time_goal(instant.timestamp, Boundary.LOWER, zone, instant.understood())


def _time_goal(timestamp: int, rule: Boundary, zone: tzinfo | None, words: str = "") -> _Goal:
    """A time; the option has the rule unless it is the command's own."""
    from storage.parse.times import format_time

    exact = format_time(timestamp, zone, iso=True)
    short = format_time(timestamp, zone).partition(".")[0]
    more = () if rule is Boundary.LOWER else ("--boundary", rule.value)
    return _Goal(("--to-datetime", exact, *more), words or exact, timestamp, short, rule)


def _others(goal: _Goal, zone: tzinfo | None) -> dict[str, _Goal]:
    """What the keys of a plan make of a time, by their actions."""
    if goal.timestamp is None:
        return {}
    rules = list(Boundary)
    following = rules[(rules.index(goal.rule) + 1) % len(rules)]
    return {
        "rule": _time_goal(goal.timestamp, following, zone),
        "earlier": _time_goal(goal.timestamp - _MINUTE_MS, goal.rule, zone),
        "later": _time_goal(goal.timestamp + _MINUTE_MS, goal.rule, zone),
    }


def _destination(goal: _Goal) -> "Destination":
    from rmqctl.admin.offsets import reset_targets

    option = goal.option[0]
    if goal.timestamp is not None:
        return reset_targets.to_time(goal.timestamp, goal.rule)
    if option == "--to-earliest":
        return reset_targets.to_earliest
    if option == "--to-latest":
        return reset_targets.to_latest
    if option == "--to-offset":
        return reset_targets.to_offset(int(goal.option[1]))
    return reset_targets.shift_by(int(option.removeprefix("--shift-by=")))


def _undo_of(change_id: int | None, group: str | None, store: str) -> Wish | None:
    return None if change_id is None else undo(change_id, group, store)


def undo(change_id: int | None, group: str | None, store: str) -> Wish:
    """Take a change of offsets back; None: the last one.

    ``group`` is the only one of it, as far as is known before its plan is made; None: unknown.
    ``store`` is the name of the store's folder: that of a change of several groups.
    """

    def make(making: Making) -> Change:
        from rmqctl.admin.offsets.undo_change import undo as undo_change

        return undo_change(
            making.view,
            making.broker,
            change_id,
            now_ms=making.now_ms,
            warn=making.warn,
            java_check=making.java_check,
        )

    def fitted(change: Change) -> Wish:
        groups = {row.group for row in change.plan}
        return wish if groups <= {group} else undo(change_id, None, store)

    wish = Wish(
        "undo the last change" if change_id is None else f"undo change {change_id}",
        "offset undo",
        ("offset", "undo", "--last" if change_id is None else str(change_id)),
        make,
        store if group is None else group,
        "the store" if group is None else "the group",
        _KEY,
        _COLUMNS if group is not None else ("group", *_COLUMNS),
        fitted=None if group is None else fitted,
        undo=lambda done: _undo_of(done, group, store),
    )
    return wish
