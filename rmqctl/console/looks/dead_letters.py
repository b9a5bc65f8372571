"""Looks at dead letters: the groups that have some, those of one group, and one in full."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from rmqctl.admin import dead_letters, retries
from rmqctl.admin.dead_letters.description import body_error
from rmqctl.admin.dead_letters.rows import DeadLetter, DeadLetterGroupRow, DeadLetterRow, DlqRow
from rmqctl.admin.left_out import tell_unreadable
from rmqctl.admin.retries.rows import AttemptRow
from rmqctl.errors import UsageProblem
from rmqctl.output.fields import fields_of
from rmqctl.output.shaping import predicate_of
from rmqctl.output.view import Format, View

from .look import Look, Place, Progress, Source
from .messages import place_of

BY: Final = ("reason", "tag", "key", "hour")
"""What dead letters are counted by, in the order of the key."""
_FIELDS: Final = {"reason": "reason", "tag": "tags", "key": "keys"}


def by_of(place: Place) -> str:
    """What a place counts dead letters by."""
    return place.names[1] if len(place.names) > 1 else BY[0]


def _groups(source: Source, place: Place) -> Iterable[Any]:
    return dead_letters.list_groups(source.view, source.broker)


def _counts(source: Source, place: Place) -> Iterator[Any]:
    """The counts; nothing is read again while no dead letter has come, gone or been marked."""
    found = dead_letters.DeadLetters(source.view, source.broker, place.name)
    if (by := by_of(place)) not in BY:
        command = shlex.join(("rmqctl", "dlq", "groups", place.name, "--by", by))
        raise UsageProblem(f"BY is one of {', '.join(BY)}, not {by!r}; '{command}' has others")
    wanted = (_signature(found), by_of(place))
    kept = source.memory.get("dead letters")
    if kept is None or kept[0] != wanted:
        messages = _counted(found.messages(unhandled=True), found, source)
        rows = list(dead_letters.grouped(messages, by_of(place), source.zone, source.now_ms))
        kept = (wanted, rows, found.unreadable, found.bodies)
        source.memory["dead letters"] = kept
    tell_unreadable(source.notice, kept[2], kept[3])
    yield from kept[1]


def _signature(found: dead_letters.DeadLetters) -> Any:
    """What changes if a dead letter comes or goes, or is marked."""
    bounds = [found.view.queue_bounds(found.topic, queue_id) for queue_id in found.queue_ids]
    marks = [str(found.handled_in(queue_id)) for queue_id in found.queue_ids]
    return found.group, bounds, marks


def _letters(source: Source, place: Place) -> Iterator[Any]:
    found = dead_letters.DeadLetters(source.view, source.broker, place.name)
    where = where_of(place)
    wanted = (_signature(found), where)
    kept = source.memory.get("letters")
    if kept is None or kept[0] != wanted:
        rows = []
        for row in _read_letters(found, source, where):
            rows.append(row)
            yield row
        kept = (wanted, rows, source.now_ms, found.unreadable, found.bodies)
        source.memory["letters"] = kept
    else:
        later = source.now_ms - kept[2]
        yield from (row._replace(age_ms=row.age_ms + later) for row in kept[1])
    tell_unreadable(source.notice, kept[3], kept[4])
    if handled := found.marked():
        source.notice(f"not shown: {handled} of {found.depth()}, handled")


def _read_letters(
    found: dead_letters.DeadLetters, source: Source, where: str | None
) -> Iterator[Any]:
    """The rows of a condition, read now."""
    keep: Callable[[Any], bool] | None = None
    if where:
        view = View(Format.TABLE, where=where, zone=source.zone, now_ms=source.now_ms)
        keep = predicate_of(fields_of(DeadLetterRow), view)
    for row in _counted(found.rows(unhandled=True, now_ms=source.now_ms), found, source):
        if keep is None or keep(row):
            yield row


def _counted(
    letters: Iterable[Any], found: dead_letters.DeadLetters, source: Source
) -> Iterator[Any]:
    """The letters as they come; the look says how many of all it has read, and can be ended."""
    total = found.depth() - found.marked()
    for count, letter in enumerate(letters):
        source.advance(Progress(count, total, "letters"))
        yield letter


def where_of(place: Place) -> str | None:
    """The condition of the letters of a place."""
    return place.names[1] if place.screen == "letters" else None


def letters_of(place: Place) -> Callable[[Any], Place]:
    """Makes the place of the letters of a count."""

    def of_row(row: Any) -> Place:
        return Place("letters", (place.name, _condition(by_of(place), row.value)))

    return of_row


def letter_of(place: Place) -> Callable[[Any], Place]:
    """Makes the place of one dead letter."""
    return lambda row: Place("letter", (place.name, str(row.queue_offset)))


def _condition(by: str, value: str | None) -> str:
    """The condition that selects the dead letters of a value."""
    if by == "hour":
        try:
            end = (datetime.fromisoformat(str(value)) + timedelta(hours=1)).isoformat(
                timespec="minutes"
            )
        except ValueError:
            return f"dead_timestamp = {value}"
        return f"dead_timestamp >= '{value}' and dead_timestamp < '{end}'"
    field = _FIELDS[by]
    if value is None:
        return f"not {field}" if by == "key" else f"{field} = null"
    return f"{field} = {_quoted(value)}" if _can_be_quoted(value) else _pattern(field, value)


def _can_be_quoted(text: str) -> bool:
    return "'" not in text or '"' not in text


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


def _pattern(field: str, text: str) -> str:
    """A pattern that is the text, for one with both kinds of quotes."""
    import re

    pattern = re.escape(text).replace("'", r"\x27").replace(r"\ ", " ")
    return f"{field} ~ '^{pattern}$'"


def _letter(source: Source, place: Place) -> Iterable[Any]:
    group, name = place.names[:2]
    found = dead_letters.DeadLetters(source.view, source.broker, group)
    message = found.find(name)
    if error := body_error(message):
        source.notice(f"the body is not shown: {error}")
    return [dead_letters.describe(found, message, source.now_ms)]


def _attempts(source: Source, place: Place) -> Iterable[Any]:
    group, message_id = place.names
    message = retries.find(source.view, source.broker, group, message_id)
    return retries.life(source.view, group, message)


def _browse_words(place: Place) -> tuple[str, ...]:
    where = where_of(place)
    return ("dlq", "browse", place.name, *(() if where is None else ("--where", where)))


GROUPS: Final = Look(
    "groups",
    DlqRow,
    _groups,
    lambda place: ("dlq", "list"),
    ("group",),
    ("-unhandled",),
    opens=lambda row: Place("dlq", (row.group,)),
)
REASONS: Final = Look(
    "reasons",
    DeadLetterGroupRow,
    _counts,
    lambda place: ("dlq", "groups", place.name, "--by", by_of(place)),
    ("value",),
)
LETTERS: Final = Look(
    "letters",
    DeadLetterRow,
    _letters,
    _browse_words,
    ("queue_offset",),
    opens_at=lambda row, place: letter_of(place)(row),
    named=("msg_id",),
)
LETTER: Final = Look(
    "letter",
    DeadLetter,
    _letter,
    lambda place: ("dlq", "show", *place.names),
    ("queue_id", "queue_offset"),
    named=("msg_id",),
)
ATTEMPTS: Final = Look(
    "attempts",
    AttemptRow,
    _attempts,
    lambda place: ("retry", "show", *place.names),
    ("at_timestamp", "what", "topic", "queue_id", "queue_offset"),
    opens=lambda row: None if row.queue_offset is None else place_of(row),
    named=("what",),
)
