"""Looks at dead letters: the groups that have some, and those of one group."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import dead_letters
from rmqctl.admin.dead_letters.rows import DeadLetterGroupRow, DeadLetterRow, DlqRow

from .look import Look, Place, Source


def _groups(source: Source, place: Place) -> Iterable[Any]:
    return dead_letters.list_groups(source.view, source.broker)


def _reasons(source: Source, place: Place) -> Iterable[Any]:
    found = dead_letters.DeadLetters(source.view, source.broker, place.name)
    return dead_letters.grouped(found.messages(unhandled=True), "reason", None, source.now_ms)


def _letters(source: Source, place: Place) -> Iterable[Any]:
    found = dead_letters.DeadLetters(source.view, source.broker, place.name)
    return found.rows(unhandled=True, now_ms=source.now_ms)


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
    _reasons,
    lambda place: ("dlq", "groups", place.name),
    ("value",),
)
LETTERS: Final = Look(
    "letters",
    DeadLetterRow,
    _letters,
    lambda place: ("dlq", "browse", place.name),
    ("queue_offset",),
)
